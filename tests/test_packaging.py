"""What is installed: all of the tool, its codemods in the right place, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.version import Version

from aliaslint import __version__

ROOT = Path(__file__).parents[1]
BUILD = ["pyproject.toml", "setup.py", "README.md", "LICENSE", "aliaslint", "codemods"]
OTHERS = ["tests", "fixtures", "benchmarks", "docs"]


def _backend_is_here() -> bool:
    try:
        return Version(version("setuptools")) >= Version("77")
    except ModuleNotFoundError:
        return False


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _backend_is_here(), reason="needs setuptools 77 (the dev extra)"),
]


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project without what earlier builds have left in it."""
    copy = tmp_path_factory.mktemp("tree")
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in [*BUILD, *OTHERS]:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=ignore)
        elif source.is_file():
            shutil.copy(source, copy / name)
    return copy


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(tree))
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> frozenset[str]:
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


def sources(folder: Path, prefix: str) -> set[str]:
    """Return what of a source folder has to be in the wheel."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        f"{prefix}/{path.relative_to(folder).as_posix()}"
        for path in found
        if "__pycache__" not in path.parts and path.suffix != ".md"
    }


def test_the_wheel_holds_the_whole_tool(names: frozenset[str]) -> None:
    assert sources(ROOT / "aliaslint", "aliaslint") - names == set()


def test_the_wheel_holds_the_codemods_inside_the_tool(names: frozenset[str]) -> None:
    assert sources(ROOT / "codemods", "aliaslint/codemods") - names == set()


def test_the_wheel_has_no_other_top_level_package(names: frozenset[str]) -> None:
    metadata = f"aliaslint-{__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"aliaslint", metadata}


def test_the_wheel_holds_no_tests(names: frozenset[str]) -> None:
    assert not [name for name in names if {"tests", "fixtures", "benchmarks"} & {*name.split("/")}]


def outputs(python: Sequence[str], folder: Path, path: str) -> list[str]:
    """Run the installed tool far from the source tree."""
    shows = "import aliaslint.codemods as c; print(c.__name__)"
    results = []
    for arguments in (["-c", shows], ["-m", "aliaslint", "--version"]):
        done = subprocess.run(
            [*python, *arguments],
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
            env={"PYTHONPATH": path},
        )
        results.append(done.stdout.strip())
    return results


EXPECTED = ["aliaslint.codemods", f"aliaslint {__version__}"]


def test_the_installed_wheel_works(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip("install", "--no-deps", "--target", str(site), str(wheel))
    assert outputs([sys.executable], tmp_path, str(site)) == EXPECTED
    assert {path.name for path in site.iterdir()} == {
        "aliaslint",
        f"aliaslint-{__version__}.dist-info",
        "bin",
    }


def editable(tree: Path, folder: Path) -> Path:
    """Build what `pip install --editable` installs, with this environment's setuptools."""
    folder.mkdir()
    build = f"from setuptools import build_meta as b; b.build_editable({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], check=True, cwd=tree, capture_output=True)
    (built,) = folder.iterdir()
    return built


def test_the_editable_install_works(tree: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, system_site_packages=False, with_pip=False)
    python = environment / "bin" / "python"
    built = editable(tree, tmp_path / "wheel")
    pip("--python", str(python), "install", "--no-deps", str(built))
    # The tool's own dependencies are those of the environment that runs the tests.
    import click

    assert outputs([str(python)], tmp_path, str(Path(click.__file__).parents[1])) == EXPECTED
