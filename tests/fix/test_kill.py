"""A run that is killed leaves every file whole, and the next run cleans up."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from aliaslint.fix import sweep
from aliaslint.source.files import SourceFile, read

COUNT = 300
OLD = b"# old\n" + b"x = 1\n" * 4000
NEW = b"# new\n" + b"y = 22\n" * 4000

WRITER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from aliaslint.fix import Change, write
    from aliaslint.source.files import from_bytes, read

    new = Path(sys.argv[2]).read_bytes()
    paths = sorted(Path(sys.argv[1]).rglob("*.py"))
    changes = [Change(read(path), from_bytes(path, new), ()) for path in paths]
    print("ready", flush=True)
    write(changes)
    """
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for number in range(COUNT):
        folder = root / f"package{number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"m{number}.py").write_bytes(OLD)
    (tmp_path / "new").write_bytes(NEW)
    return root


def kill_after(tree: Path, seconds: float) -> None:
    """Start a writer over the tree and kill it `seconds` after it began to write."""
    command = [sys.executable, "-c", WRITER, str(tree), str(tree.parent / "new")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_killed_at_a_random_moment(tree: Path, seed: int) -> None:
    kill_after(tree, random.Random(seed).uniform(0, 0.25))

    paths = sorted(tree.rglob("*.py"))
    assert len(paths) == COUNT
    assert {path.read_bytes() for path in paths} <= {OLD, NEW}
    sources = [source for path in paths if isinstance(source := read(path), SourceFile)]
    sweep(sources)
    assert sorted(p for p in tree.rglob("*") if p.is_file()) == paths
