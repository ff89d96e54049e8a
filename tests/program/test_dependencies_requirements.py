"""What project files declare about a package: each format, with line, tier and specifier."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliaslint.program.declared import Declared, admitted
from aliaslint.program.requirements import declaring_files, read_folder

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
    (
        '[tool.poetry.dependencies]\nmlx-lm = "^0.30 || ~0.32.1 | 1.0"\n',
        (">=0.30,<0.31||>=0.32.1,<0.33||==1.0", 2, "required"),
    ),
    ('[tool.poetry.dependencies]\nmlx-lm = ">= 0.30 < 0.32"\n', (">=0.30,<0.32", 2, "required")),
    ('[tool.poetry.dependencies]\nmlx-lm = "^0.31.0rc1"\n', (">=0.31.0rc1,<0.32", 2, "required")),
    ('[tool.poetry.dependencies]\nmlx-lm = "=0.31.x"\n', ("==0.31.*", 2, "required")),
    ('[tool.poetry.dependencies]\nmlx-lm = "<>0.31.1"\n', ("!=0.31.1", 2, "required")),
    ('[tool.poetry.dependencies.mlx-lm]\nversion = "0.31.3"\n', ("==0.31.3", 1, "required")),
    (
        '[tool.poetry.extras]\nmlx-lm = ["a"]\n[tool.poetry.dependencies]\n"mlx-lm" = "1"\n',
        ("==1", 4, "required"),
    ),
    ('[tool.poetry]\ndependencies.mlx-lm = "1"\n', ("==1", 2, "required")),
    ('[project]\nname = "mlx-lm"\ndependencies = ["mlx-lm"]\n', ("", 3, "required")),
    (
        '[project.optional-dependencies]\na = ["mlx"]\nb = [\n  "mlx-lm",\n]\n',
        ("", 4, "optional"),
    ),
    (
        '[project]\ndescription = """\n"mlx-lm"\n"""\n[dependency-groups]\na = ["mlx-lm"]\n',
        ("", 6, "optional"),
    ),
    (
        '[project]\ndependencies = ["mlx-lm<1; python_version > \\"3.8\\""]\n',
        ("<1", 2, "required"),
    ),
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
    ("requirements.txt", "# in C:\\x\\\nmlx-lm<0.32 # \\\n", [("<0.32", 2, "required")]),
]


@pytest.mark.parametrize(("name", "text", "wanted"), REQUIREMENTS)
def test_requirements_file(
    tmp_path: Path, name: str, text: str, wanted: list[tuple[str | None, int, str]]
) -> None:
    assert declared(tmp_path, name, text) == wanted


@pytest.mark.parametrize("name", ["x" * 300, ".", "/dev/zero", "https://example.org/all.txt", "\0"])
def test_what_is_no_file_is_passed_over(tmp_path: Path, name: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"-r {name}\n-c {name}\nmlx\n")
    (tmp_path / "setup.cfg").write_text(f"[options]\ninstall_requires = file: {name}\n")
    assert [found.line for found in read_folder(tmp_path, "mlx")] == [3]
    names = {path.name for path in declaring_files(tmp_path)}
    assert names == {"requirements.txt", "setup.cfg"}


Decided = list[tuple[str, int, str | None, str]]


def decided(folder: Path, files: dict[str, str], name: str = "mlx") -> Decided:
    """Return what files declare: the place that decides, the versions and the tier."""
    for place, text in files.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text)
    found = read_folder(folder, name)
    shown = [d.path.relative_to(folder).as_posix() for d in found]
    return [(s, d.line, d.specifier, d.tier) for s, d in zip(shown, found, strict=True)]


INCLUDED: list[tuple[dict[str, str], Decided]] = [
    (
        {"requirements.txt": "click\n-r needs/all.list\n", "needs/all.list": "mlx\n-r all.list\n"},
        [("needs/all.list", 1, "", "required")],
    ),
    (
        {"requirements.txt": "-rbase.txt\n", "base.txt": "\nmlx==0.31.1\n"},
        [("base.txt", 2, "==0.31.1", "pin")],
    ),
    (
        {"requirements.txt": "--requirement=base.txt\n--requirement none.txt\n", "base.txt": "mlx"},
        [("base.txt", 1, "", "required")],
    ),
    # Each of two files includes the other.
    (
        {
            "requirements.txt": "-r requirements-all.txt\nmlx\n",
            "requirements-all.txt": "-r requirements.txt\n",
        },
        [("requirements.txt", 2, "", "required")],
    ),
]


@pytest.mark.parametrize(("files", "wanted"), INCLUDED)
def test_included_requirements_are_read(
    tmp_path: Path, files: dict[str, str], wanted: Decided
) -> None:
    assert decided(tmp_path, files) == wanted


CONSTRAINED = [
    ("mlx", "mlx>=0.32", [("constraints.txt", 1, ">=0.32", "required")]),
    ("mlx", "mlx<0.32", [("constraints.txt", 1, "<0.32", "required")]),
    ("mlx", "mlx==0.31.1", [("constraints.txt", 1, "==0.31.1", "pin")]),
    ("mlx>=0.30", "click\nmlx>=0.31", [("constraints.txt", 2, ">=0.30,>=0.31", "required")]),
    ("mlx>=0.31", "mlx>=0.30", [("requirements.txt", 2, ">=0.31,>=0.30", "required")]),
    ("mlx>=0.31", "mlx<1", [("requirements.txt", 2, ">=0.31,<1", "required")]),
    ("mlx<0.30", "mlx<1", [("requirements.txt", 2, "<0.30,<1", "required")]),
    ("mlx", "mlx!=0.31.1", [("requirements.txt", 2, "!=0.31.1", "required")]),
    ("mlx==0.31.1", "mlx>=0.30", [("requirements.txt", 2, "==0.31.1", "pin")]),
    # The two exclude each other.
    ("mlx==0.31.1", "mlx>=0.32", [("requirements.txt", 2, "==0.31.1,>=0.32", "required")]),
    ("mlx", "mlx @ https://example.org/mlx", [("requirements.txt", 2, "", "required")]),
    ("mlx", "mlx-lm<0.32", [("requirements.txt", 2, "", "required")]),
    # Of a package that nothing here requires the constraint alone tells something.
    ("click", "mlx<0.32", [("constraints.txt", 1, "<0.32", "constraint")]),
    ("click", "mlx==0.31.1", [("constraints.txt", 1, "==0.31.1", "pin")]),
    # Markers.
    (
        "mlx",
        "mlx<0.31; python_version < '3.10'\nmlx>=0.32; python_version >= '3.10'",
        [
            ("constraints.txt", 1, "<0.31", "required"),
            ("constraints.txt", 2, ">=0.32", "required"),
        ],
    ),
    (
        "mlx>=0.30; sys_platform == 'darwin'",
        "mlx>=0.32; sys_platform == 'linux'",
        [("requirements.txt", 2, ">=0.30", "required")],
    ),
    (
        "mlx>=0.30; sys_platform == 'darwin'",
        "mlx>=0.32; sys_platform == 'darwin'",
        [("constraints.txt", 1, ">=0.30,>=0.32", "required")],
    ),
]


@pytest.mark.parametrize(("required", "constraint", "wanted"), CONSTRAINED)
def test_constraints_narrow_what_is_required(
    tmp_path: Path, required: str, constraint: str, wanted: Decided
) -> None:
    files = {"requirements.txt": f"-c constraints.txt\n{required}\n", "constraints.txt": constraint}
    assert decided(tmp_path, files) == wanted


TREES: list[tuple[dict[str, str], Decided]] = [
    # A constraint holds for what is included, and for what includes it.
    (
        {
            "requirements.txt": "-r base.txt\n-c limits/all.txt\n",
            "base.txt": "mlx\n",
            "limits/all.txt": "-c more.txt\n",
            "limits/more.txt": "\nmlx>=0.32\n",
        },
        [("limits/more.txt", 2, ">=0.32", "required")],
    ),
    # It holds for no other file.
    (
        {
            "requirements.txt": "-c constraints.txt\n",
            "constraints.txt": "mlx>=0.32\n",
            "setup.cfg": "[options]\ninstall_requires = mlx>=0.30\n",
        },
        [("setup.cfg", 2, ">=0.30", "required")],
    ),
    # What is also installed without the constraint is as wide as it stands there.
    (
        {
            "requirements.txt": "mlx\n",
            "requirements-dev.txt": "-r requirements.txt\n-c constraints.txt\n",
            "constraints.txt": "mlx>=0.32\n",
        },
        [("requirements.txt", 1, "", "required")],
    ),
    (
        {
            "requirements-a.txt": "-r base.txt\n-c constraints.txt\n",
            "requirements-b.txt": "-r base.txt\n",
            "base.txt": "mlx\n",
            "constraints.txt": "mlx>=0.32\n",
        },
        [("base.txt", 1, "", "required")],
    ),
    (
        {
            "requirements.txt": "-r requirements/base.txt\n-c constraints.txt\n",
            "requirements/base.txt": "mlx\n",
            "constraints.txt": "mlx>=0.32\n",
        },
        [("constraints.txt", 1, ">=0.32", "required")],
    ),
    # The requirements of the project limit those of its development, and count as well.
    (
        {"requirements.txt": "mlx==0.31.1\n", "requirements-dev.txt": "-c requirements.txt\nmlx\n"},
        [("requirements.txt", 1, "==0.31.1", "pin")],
    ),
]


@pytest.mark.parametrize(("files", "wanted"), TREES)
def test_constraints_hold_where_they_are_named(
    tmp_path: Path, files: dict[str, str], wanted: Decided
) -> None:
    assert decided(tmp_path, files) == wanted


DYNAMIC = "[tool.setuptools.dynamic]\n"
HATCH = "[tool.hatch.metadata.hooks.requirements_txt]\n"
LISTS: list[tuple[dict[str, str], Decided]] = [
    (
        {
            "pyproject.toml": f'{DYNAMIC}dependencies = {{file = ["a.txt"]}}\n',
            "a.txt": "\nmlx>=0.30\n",
        },
        [("a.txt", 2, ">=0.30", "required")],
    ),
    (
        {"pyproject.toml": f'{DYNAMIC}dependencies.file = "in/a.in"\n', "in/a.in": "mlx # why\n"},
        [("in/a.in", 1, "", "required")],
    ),
    (
        {
            "pyproject.toml": '[tool.setuptools]\ndynamic = {dependencies = {file = "a.txt"}}\n',
            "a.txt": "mlx\n",
        },
        [("a.txt", 1, "", "required")],
    ),
    (
        {
            "pyproject.toml": f'{DYNAMIC}optional-dependencies.m = {{file = ["a.txt"]}}\n',
            "a.txt": "mlx==0.31.1\n",
        },
        [("a.txt", 1, "==0.31.1", "optional")],
    ),
    # A requirements file counts once, as what the metadata make of it.
    (
        {
            "pyproject.toml": f'{DYNAMIC}dependencies = {{file = ["requirements.txt"]}}\n',
            "requirements.txt": "mlx==0.31.1\n",
        },
        [("requirements.txt", 1, "==0.31.1", "required")],
    ),
    (
        {
            "pyproject.toml": f'{DYNAMIC}dependencies = {{file = ["requirements.txt"]}}\n',
            "requirements.txt": "mlx\n",
            "requirements-all.txt": "-r requirements.txt\n-c constraints.txt\n",
            "constraints.txt": "mlx>=0.32\n",
        },
        [("requirements.txt", 1, "", "required")],
    ),
    ({"pyproject.toml": f'{DYNAMIC}dependencies = {{file = ["none.txt"]}}\n'}, []),
    ({"pyproject.toml": f'{DYNAMIC}version = {{file = ["a.txt"]}}\n', "a.txt": "mlx\n"}, []),
    (
        {"setup.cfg": "[options]\ninstall_requires = file: a.txt, b.txt\n", "b.txt": "a\nmlx\n"},
        [("b.txt", 2, "", "required")],
    ),
    (
        {"setup.cfg": "[options.extras_require]\nm = file: a.txt\n", "a.txt": "mlx\n"},
        [("a.txt", 1, "", "optional")],
    ),
    (
        {"pyproject.toml": f'{HATCH}files = ["a.txt"]\n', "a.txt": "mlx\n"},
        [("a.txt", 1, "", "required")],
    ),
    (
        {"pyproject.toml": f'{HATCH}optional-dependencies.m = ["a.txt"]\n', "a.txt": "mlx\n"},
        [("a.txt", 1, "", "optional")],
    ),
]


@pytest.mark.parametrize(("files", "wanted"), LISTS)
def test_files_that_metadata_name_are_read(
    tmp_path: Path, files: dict[str, str], wanted: Decided
) -> None:
    assert decided(tmp_path, files) == wanted


def test_declaring_files_are_those_that_are_reached(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": f'{DYNAMIC}dependencies = {{file = ["a.txt", "none.txt"]}}\n',
        "a.txt": "mlx\n",
        "requirements.txt": "-r req/b.txt\n",
        "req/b.txt": "-c ../c.txt\n-r b.txt\n",
        "c.txt": "mlx<1\n",
        "unused.txt": "mlx\n",
        "uv.lock": "",
    }
    decided(tmp_path, files)
    found = [path.relative_to(tmp_path).as_posix() for path in declaring_files(tmp_path)]
    assert sorted(found) == sorted({*files} - {"unused.txt"})


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
    ('setup(install_requires="""\nclick\nmlx-lm<1\n""")', [("<1", 4, "required")]),
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


@pytest.mark.parametrize("key", ["python", "platform", "markers"])
def test_alternatives_of_poetry_are_for_different_environments(tmp_path: Path, key: str) -> None:
    entries = f'[{{version = "^0.30", {key} = "a"}}, {{version = "^0.32", {key} = "b"}}]'
    (tmp_path / "pyproject.toml").write_text(f"[tool.poetry.dependencies]\nmlx-lm = {entries}\n")
    assert admitted(read_folder(tmp_path, "mlx-lm"), RELEASES) == ["0.30.7", "0.32.0", "0.32.2"]


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
        ([item("<0.30||>=0.32.1")], ["0.28.0", "0.32.2"]),
        ([item("<0.30||>=0.31"), item("!=0.31.3||>=1")], ["0.28.0", "0.31.0", "0.32.0", "0.32.2"]),
        ([item("<0.31", "constraint"), item("", "optional")], RELEASES),
        ([item("<0.30", "constraint"), item(None)], ["0.28.0"]),
        ([item("^^")], []),
        ([item(None)], []),
        ([], []),
    ],
)
def test_admitted_releases(items: list[Declared], wanted: list[str]) -> None:
    assert admitted(items, reversed(RELEASES)) == wanted
