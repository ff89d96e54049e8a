"""What project files declare about a package: each format, with line, tier and specifier."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliaslint.program.requirements import Declared, admitted, read_folder

RELEASES = ["0.28.0", "0.30.7", "0.31.0", "0.31.3", "0.32.0", "0.32.2"]


def declared(tmp_path: Path, name: str, text: str) -> list[tuple[str | None, int, str]]:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    found = read_folder(tmp_path, "mlx_lm")
    assert {d.path for d in found} <= {path}
    return [(d.specifier, d.line, d.tier) for d in found]


PYPROJECT = [
    ('[project]\ndependencies = [\n  "click",\n  "MLX_LM>=0.31",\n]\n', (">=0.31", 4, "required")),
    (
        '[project]\nname = "x"\n[project.optional-dependencies]\nmlx = ["mlx-lm<0.32"]\n',
        ("<0.32", 4, "optional"),
    ),
    ('[dependency-groups]\ndev = ["mlx-lm==0.31.3"]\n', ("==0.31.3", 2, "optional")),
    ('[tool.uv]\ndev-dependencies = ["mlx-lm"]\n', ("", 2, "optional")),
    ('[tool.pdm.dev-dependencies]\ntest = ["mlx-lm>1"]\n', (">1", 2, "optional")),
    ('[tool.hatch.envs.test]\ndependencies = ["mlx-lm>1"]\n', (">1", 2, "optional")),
    (
        '[tool.poetry.dependencies]\npython = "^3.10"\nmlx-lm = "^0.31"\n',
        (">=0.31,<0.32", 3, "required"),
    ),
    ('[tool.poetry.dependencies]\nmlx-lm = "^1.2.3"\n', (">=1.2.3,<2", 2, "required")),
    ('[tool.poetry.dependencies]\nmlx-lm = "^0.0.3"\n', (">=0.0.3,<0.0.4", 2, "required")),
    ('[tool.poetry.dependencies]\nmlx-lm = "~0.31.2"\n', (">=0.31.2,<0.32", 2, "required")),
    ('[tool.poetry.dependencies]\nmlx-lm = "~1"\n', (">=1,<2", 2, "required")),
    ('[tool.poetry.dependencies]\nmlx-lm = "0.31.3"\n', ("==0.31.3", 2, "required")),
    ('[tool.poetry.dependencies]\nmlx-lm = "*"\n', ("", 2, "required")),
    (
        '[tool.poetry.dependencies]\nmlx-lm = { version = ">=0.31,<1", optional = true }\n',
        (">=0.31,<1", 2, "optional"),
    ),
    (
        '[tool.poetry.dependencies]\nmlx-lm = { git = "https://example.org/x", tag = "v0.31.2" }\n',
        ("==0.31.2", 2, "required"),
    ),
    (
        '[tool.poetry.dependencies]\nmlx-lm = { path = "../mlx-lm" }\n',
        (None, 2, "required"),
    ),
    ('[tool.poetry.group.dev.dependencies]\nmlx-lm = "*"\n', ("", 2, "optional")),
]


@pytest.mark.parametrize(("text", "wanted"), PYPROJECT)
def test_pyproject(tmp_path: Path, text: str, wanted: tuple[str | None, int, str]) -> None:
    assert declared(tmp_path, "pyproject.toml", text) == [wanted]


@pytest.mark.parametrize(
    "text",
    [
        '[project]\ndependencies = ["mlx", "not-mlx-lm", "mlx-lmx"]\n',
        '[project]\nname = "mlx-lm"\n',
        "[project\nmlx-lm\n",
        '[project]\ndependencies = "mlx-lm"\n',
        '[project]\ndependencies = ["mlx-lm >>> 3"]\n',
    ],
)
def test_pyproject_that_declares_nothing(tmp_path: Path, text: str) -> None:
    assert declared(tmp_path, "pyproject.toml", text) == []


REQUIREMENTS = [
    ("requirements.txt", "mlx-lm\n", [("", 1, "required")]),
    ("requirements.txt", "# mlx-lm==1\nmlx-lm>=0.31 # ok\n", [(">=0.31", 2, "required")]),
    ("requirements.txt", "mlx-lm==0.31.3\n", [("==0.31.3", 1, "pin")]),
    (
        "requirements.txt",
        "a==1 \\\n  --hash=sha256:0 \\\n  --hash=sha256:1\nmlx-lm==0.31.3 \\\n  --hash=sha256:2\n",
        [("==0.31.3", 4, "pin")],
    ),
    ("requirements.txt", "mlx-lm==0.31.3 ; sys_platform == 'darwin'\n", [("==0.31.3", 1, "pin")]),
    ("requirements.txt", "--index-url https://mlx-lm.example\n-e .\n", []),
    (
        "requirements.txt",
        "git+https://example.org/mlx-lm.git@v0.31.2#egg=mlx-lm\n",
        [("==0.31.2", 1, "pin")],
    ),
    ("requirements-dev.txt", "mlx-lm>=0.31\n", [(">=0.31", 1, "optional")]),
    ("requirements.in", "mlx-lm>=0.31\n", [(">=0.31", 1, "required")]),
    ("requirements/base.txt", "mlx-lm>=0.31\n", [(">=0.31", 1, "required")]),
    ("constraints.txt", "mlx-lm==0.31.3\n", [("==0.31.3", 1, "pin")]),
    ("constraints.txt", "mlx-lm<0.32\n", []),
]


@pytest.mark.parametrize(("name", "text", "wanted"), REQUIREMENTS)
def test_requirements_file(
    tmp_path: Path, name: str, text: str, wanted: list[tuple[str | None, int, str]]
) -> None:
    assert declared(tmp_path, name, text) == wanted


def test_included_requirements_are_read(tmp_path: Path) -> None:
    (tmp_path / "needs").mkdir()
    (tmp_path / "needs" / "all.list").write_text("mlx-lm>=0.31\n-r all.list\n")
    (tmp_path / "requirements.txt").write_text("click\n-r needs/all.list\n")
    found = read_folder(tmp_path, "mlx_lm")
    assert [(d.path.name, d.specifier) for d in found] == [("all.list", ">=0.31")]


def test_setup_cfg(tmp_path: Path) -> None:
    text = (
        "[options]\ninstall_requires =\n    click\n    mlx-lm>=0.31\n"
        "[options.extras_require]\nold =\n    mlx-lm<0.31\n"
    )
    assert declared(tmp_path, "setup.cfg", text) == [
        (">=0.31", 4, "required"),
        ("<0.31", 7, "optional"),
    ]


SETUP = [
    ('setup(install_requires=["click",\n "mlx-lm>=0.31"])', [(">=0.31", 3, "required")]),
    ('N = "0.31"\nsetup(install_requires=[f"mlx-lm>={N}"])', [(">=0.31", 3, "required")]),
    ('R = ["mlx-lm"]\nsetup(install_requires=R + ["b"])', [("", 2, "required")]),
    ('setup(extras_require={"mlx": ["mlx-lm<1"]})', [("<1", 2, "optional")]),
    ('setup(install_requires=open("mlx-lm").read())', []),
    ('setup(install_requires=[f"mlx-lm{open(1)}"])', []),
    ("setup(", []),
]


@pytest.mark.parametrize(("text", "wanted"), SETUP)
def test_literal_setup_py(
    tmp_path: Path, text: str, wanted: list[tuple[str | None, int, str]]
) -> None:
    full = f"from setuptools import setup  # mlx-lm\n{text}\n"
    assert declared(tmp_path, "setup.py", full) == wanted


LOCKS = [
    (
        "uv.lock",
        'version = 1\n[[package]]\nname = "mlx"\nversion = "0.30"\n\n[[package]]\nname = "mlx-lm"\n'
        'version = "0.31.3"\nsource = { registry = "https://example.org" }\n'
        'dependencies = [\n    { name = "mlx" },\n]\n',
        7,
    ),
    (
        "poetry.lock",
        '[[package]]\nname = "mlx-lm"\nversion = "0.31.3"\ndescription = "x"\n\n'
        '[package.dependencies]\nmlx = "*"\n',
        2,
    ),
    ("pdm.lock", '[metadata]\n\n[[package]]\nname = "mlx-lm"\nversion = "0.31.3"\n', 4),
    ("pylock.toml", '[[packages]]\nname = "mlx-lm"\nversion = "0.31.3"\n', 2),
    ("pylock.dev.toml", '[[packages]]\nname = "mlx_lm"\nversion = "0.31.3"\n', 2),
    (
        "Pipfile.lock",
        '{\n "default": {\n  "mlx-lm": {"hashes": [], "version": "==0.31.3"}\n }\n}\n',
        3,
    ),
]


@pytest.mark.parametrize(("name", "text", "line"), LOCKS)
def test_lock_file(tmp_path: Path, name: str, text: str, line: int) -> None:
    assert declared(tmp_path, name, text) == [("==0.31.3", line, "lock")]


@pytest.mark.parametrize(("name", "text", "line"), LOCKS)
def test_lock_file_with_carriage_returns(tmp_path: Path, name: str, text: str, line: int) -> None:
    (tmp_path / name).write_bytes(text.replace("\n", "\r\n").encode())
    assert [(d.pinned, d.line) for d in read_folder(tmp_path, "mlx-lm")] == [("0.31.3", line)]


def test_pipfile(tmp_path: Path) -> None:
    text = '[packages]\nmlx-lm = ">=0.31"\n[dev-packages]\nclick = "*"\n'
    assert declared(tmp_path, "Pipfile", text) == [(">=0.31", 2, "required")]


def item(specifier: str | None, tier: str = "required", marker: str = "") -> Declared:
    return Declared("mlx-lm", specifier, Path("p"), 1, "", tier, marker)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("items", "wanted"),
    [
        ([item(">=0.31,<0.32")], ["0.31.0", "0.31.3"]),
        ([item("")], RELEASES),
        ([item(">=0.31"), item("<0.32")], ["0.31.0", "0.31.3"]),
        ([item("<0.30", marker="a"), item(">=0.32.2", marker="b")], ["0.28.0", "0.32.2"]),
        ([item(">=0.32"), item("==0.31.3", "pin")], ["0.32.0", "0.32.2"]),
        ([item("==0.31.3", "pin"), item(">=0.32", "optional")], ["0.31.3"]),
        ([item(None), item("==0.31.3", "lock")], ["0.31.3"]),
        ([item("==0.32.2", "optional")], ["0.32.2"]),
        ([item(None)], []),
        ([], []),
    ],
)
def test_admitted_releases(items: list[Declared], wanted: list[str]) -> None:
    assert admitted(items, reversed(RELEASES)) == wanted
