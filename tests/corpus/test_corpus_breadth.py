"""Every Python file of the environment goes through check: no crash, no lost file.

A deterministic sample by default; `ALIASLINT_CORPUS=all` takes every file of site-packages.
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
SAMPLE = 300
CHUNK = 150


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


def check(paths: list[Path]) -> tuple[int, dict[str, object], str]:
    command = [sys.executable, "-m", "aliaslint", "check", "--no-cache", "--output-format", "json"]
    done = subprocess.run(
        [*command, *map(str, paths)],
        capture_output=True,
        text=True,
        cwd=SITE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(len(CHUNKS)))
def test_each_file_is_analysed_or_refused_as_python_refuses_it(chunk: int) -> None:
    files = CHUNKS[chunk]
    _, document, stderr = check(files)
    errors = document["errors"]
    assert isinstance(errors, list)
    refused = {(SITE / error["path"]).resolve() for error in errors}
    assert refused == {path.resolve() for path in files if not parses(path)}, (errors, stderr)


@pytest.mark.slow
def test_the_sample_is_not_empty() -> None:
    assert len(FILES) >= min(SAMPLE, 100)
