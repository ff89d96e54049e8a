"""The command line as a whole: help, unknown commands, cheap start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_tools import run, write

from aliaslint import __version__
from aliaslint.rules import rules

HEAVY = ("libcst", "rich", "jinja2", "mlx", "numpy", "sqlite3", "platformdirs")


def test_without_arguments_help_is_shown() -> None:
    ran = run()
    assert ran.out.startswith("Usage: aliaslint [OPTIONS] ")
    assert (ran.err, ran.status) == ("", 2)


def test_the_version() -> None:
    assert run("--version").out == f"aliaslint {__version__}\n"


def test_help_lists_every_command() -> None:
    listed = run("--help").out.split("Commands:")[1]
    for name in ("check", "fix", "verify", "doctor", "explain", "rules"):
        assert f"\n  {name} " in listed


@pytest.mark.parametrize("name", ["check", "fix", "explain", "rules"])
def test_every_command_has_help(name: str) -> None:
    ran = run(name, "--help")
    assert (ran.out.startswith(f"Usage: aliaslint {name} "), ran.status) == (True, 0)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("chek", "; did you mean 'check'?"), ("lint", "; the commands are check, fix, ")],
)
def test_an_unknown_command_is_one_line(name: str, hint: str) -> None:
    ran = run(name)
    assert ran.err.startswith(f"aliaslint: error: no such command {name!r}{hint}")
    assert (ran.err.count("\n"), ran.status) == (1, 2)


def test_a_path_in_place_of_a_command(place: Path) -> None:
    write(place, "a.py", "")
    expected = "no such command 'a.py'; to check a path: aliaslint check a.py (aliaslint --help)"
    assert run("a.py").err == f"aliaslint: error: {expected}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["rules"], ["check"]])
def test_start_is_cheap(place: Path, arguments: list[str]) -> None:
    write(place, "a.py", "x = 1\n")
    script = (
        "import sys, contextlib\n"
        "from aliaslint.cli.main import main\n"
        f"with contextlib.suppress(SystemExit): main({arguments!r})\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(root)},
    )
    assert done.stderr == "[]\n"


def test_python_m_aliaslint(place: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "aliaslint", "--version"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(root)},
    )
    assert (done.stdout, done.returncode) == (f"aliaslint {__version__}\n", 0)


def test_a_closed_pipe_is_no_error(place: Path) -> None:
    root = Path(__file__).parents[2]
    command = f"{sys.executable} -m aliaslint rules --output-format json | head -c 1"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
    )
    assert (done.stdout, done.stderr) == ("{", "")


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run `aliaslint` with what follows it in a shell."""
    root = Path(__file__).parents[2]
    return subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m aliaslint {command}"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("command", ["rules", "explain AL101", "--help", "--version"])
def test_a_full_disk_is_no_defect(place: Path, command: str) -> None:
    done = shell(f"{command} > /dev/full")
    assert (done.stdout, done.returncode) == ("", 2)
    assert done.stderr == (
        "aliaslint: error: standard output or a temporary file cannot be written: "
        "No space left on device\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_where_nothing_can_be_told_the_status_tells(place: Path) -> None:
    assert shell("rules > /dev/full 2> /dev/full").returncode == 2


@pytest.mark.parametrize(("closed", "told"), [(">&-", ("", "")), ("2>&-", ("aliaslint", ""))])
def test_a_stream_that_is_closed(place: Path, closed: str, told: tuple[str, str]) -> None:
    done = shell(f"--version {closed}")
    assert (done.stdout.split(" ")[0], done.stderr, done.returncode) == (*told, 0)


# rules


def test_rules_are_listed_one_a_line() -> None:
    lines = run("rules").out.splitlines()
    assert [line[:5] for line in lines] == [rule.code for rule in rules()]
    stale = next(line for line in lines if line.startswith("AL101"))
    assert stale.split(maxsplit=4) == [
        "AL101",
        "stale-capture",
        "on",
        "fix",
        "captured array read after an in-place update",
    ]


def test_rules_as_json() -> None:
    document = json.loads(run("rules", "--output-format", "json").out)
    assert document["version"] == __version__
    assert [rule["code"] for rule in document["rules"]] == [rule.code for rule in rules()]


# explain


@pytest.mark.parametrize("subject", ["AL101", "al101", "stale-capture"])
def test_explains_a_rule(subject: str) -> None:
    ran = run("explain", subject)
    assert ran.out.startswith("# AL101: stale-capture\n\nSeverity error, on by default")
    assert ran.status == 0


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        ("AL105", "unknown rule 'AL105'; did you mean AL102?"),
        ("a.py", "name a line of the file: aliaslint explain a.py:LINE"),
        ("a.py:9", "a.py: has no line 9"),
        ("a.py:0", "a.py: has no line 0"),
        ("b.py:1", "b.py: cannot be read: no such file or directory"),
        ("a.py:abc", "a.py:abc: a line number has to follow the file: a.py:LINE"),
        ("a.py:1:b", "a.py:1:b: a line number has to follow the file: a.py:LINE"),
        ("a.py:", "a.py:: a line number has to follow the file: a.py:LINE"),
        ("b.py:abc", "b.py:abc: a line number has to follow the file: b.py:LINE"),
    ],
)
def test_what_cannot_be_explained_is_one_line(place: Path, subject: str, message: str) -> None:
    write(place, "a.py", "x = 1\n")
    ran = run("explain", subject)
    assert (ran.err, ran.status) == (f"aliaslint: error: {message}\n", 2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "aliaslint", "rules"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    what = "standard output or a temporary file cannot be written"
    message = f"aliaslint: error: {what}: No space left on device\n"
    assert (done.stderr, done.returncode) == (message, 2)
