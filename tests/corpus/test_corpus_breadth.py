"""Python files of the environment go through check: no crash, no lost file.

A deterministic sample by default; `ALIASLINT_CORPUS=all` takes every file of site-packages. Each
file is checked apart from its package, so that the cost is that of the sample.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import pytest

SITE = Path(sysconfig.get_path("purelib"))
SAMPLE = 120
CHUNK = 40


def sample() -> list[Path]:
    """Return files of site-packages, in an order that no name or date decides."""
    files = [path for path in SITE.rglob("*.py") if "__pycache__" not in path.parts]
    files.sort(key=lambda path: hashlib.sha256(path.relative_to(SITE).as_posix().encode()).digest())
    return files if os.environ.get("ALIASLINT_CORPUS") == "all" else files[:SAMPLE]


FILES = sample()
CHUNKS = [FILES[start : start + CHUNK] for start in range(0, len(FILES), CHUNK)]


def parses(path: Path) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            return False
    return True


def check(folder: Path) -> tuple[dict[str, object], str]:
    command = [sys.executable, "-m", "aliaslint", "check", "--no-cache", "--output-format", "json"]
    done = subprocess.run(
        [*command, str(folder)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 1, 2)
    document: dict[str, object] = json.loads(done.stdout)
    return document, done.stderr


def lay_out(files: list[Path], folder: Path) -> list[Path]:
    """Copy each file into a folder of its own, away from its package."""
    copies = []
    for number, path in enumerate(files):
        target = folder / f"f{number:04}" / "module.py"
        target.parent.mkdir()
        target.write_bytes(path.read_bytes())
        copies.append(target)
    return copies


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(len(CHUNKS)))
def test_each_file_is_analysed_or_refused_as_python_refuses_it(chunk: int, tmp_path: Path) -> None:
    files = lay_out(CHUNKS[chunk], tmp_path)
    document, stderr = check(tmp_path)
    errors = document["errors"]
    assert isinstance(errors, list)
    refused = {(tmp_path / error["path"]).resolve() for error in errors}
    assert refused == {path.resolve() for path in files if not parses(path)}, (errors, stderr)


@pytest.mark.slow
def test_the_sample_is_not_empty() -> None:
    assert len(FILES) >= min(SAMPLE, 100)
