"""A run that is killed leaves every file whole, and the next run cleans up."""

from __future__ import annotations

import builtins
import io
import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aliaslint.fix import Change, sweep, write
from aliaslint.source.files import SourceFile, from_bytes, read

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


def kill_after(tree: Path, number: int) -> None:
    """Start a writer over the tree and kill it when it has written so many files, or a few more."""
    command = [sys.executable, "-c", WRITER, str(tree), str(tree.parent / "new")]
    path = sorted(tree.rglob("*.py"))[number]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while path.stat().st_size == len(OLD) and process.poll() is None:
            pass
        process.send_signal(signal.SIGKILL)


class Killer:
    """Kills its process before or after one of the calls that change files, or within a write.

    Whatever way of writing is used goes through them: `os`, or a file object of `io`.
    """

    CALLS = "open close write fsync replace rename chmod chown unlink remove truncate".split()

    def __init__(self, step: int) -> None:
        self.left = step

    def install(self) -> None:
        for name in self.CALLS:
            setattr(os, name, self.stepped(getattr(os, name)))
        for module, name in ((os, "fdopen"), (io, "open"), (builtins, "open")):
            setattr(module, name, self.writing(getattr(module, name)))

    def tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def stepped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            self.tick()
            result = function(*args, **options)
            self.tick()
            return result

        return run

    def writing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Let the file objects that a function makes write in two parts."""

        def run(*args: Any, **options: Any) -> Any:
            self.tick()
            stream = function(*args, **options)
            self.tick()
            return HalfWriter(stream, self.tick)

        return run


class HalfWriter:
    """A file object; in the middle of each write it may be killed."""

    def __init__(self, stream: Any, tick: Callable[[], None]) -> None:
        self.stream, self.tick = stream, tick

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __enter__(self) -> HalfWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()

    def write(self, data: Any) -> int:
        for half in (data[: len(data) // 2], data[len(data) // 2 :]):
            self.stream.write(half)
            self.stream.flush()
            self.tick()
        return len(data)


def write_in_child(changes: list[Change], step: int) -> bool:
    """Write in a process that is killed at a step; whether it came to its end before."""
    child = os.fork()
    if child == 0:
        Killer(step).install()
        try:
            os._exit(len(write(changes)))
        except BaseException:
            os._exit(9)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return not os.WIFSIGNALED(status)


def test_killed_at_every_step(tmp_path: Path) -> None:
    paths = [tmp_path / f"m{number}.py" for number in range(3)]
    seen = set()
    for step in range(1, 500):
        for path in paths:
            path.write_bytes(OLD)
        changes = [Change(before(path), edited(path), ()) for path in paths]
        if write_in_child(changes, step):
            break
        found = [path.read_bytes() for path in paths]
        assert set(found) <= {OLD, NEW}, step
        seen.add(found.count(NEW))
        sweep([change.before for change in changes])
        assert sorted(tmp_path.iterdir()) == paths, step
    assert [path.read_bytes() for path in paths] == [NEW] * 3
    assert seen == {0, 1, 2, 3}


def before(path: Path) -> SourceFile:
    source = read(path)
    assert isinstance(source, SourceFile)
    return source


def edited(path: Path) -> SourceFile:
    source = from_bytes(path, NEW)
    assert isinstance(source, SourceFile)
    return source


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_killed_at_a_random_moment(tree: Path, seed: int) -> None:
    number = random.Random(seed).randrange(COUNT * 3 // 4)

    kill_after(tree, number)

    paths = sorted(tree.rglob("*.py"))
    assert len(paths) == COUNT
    found = [path.read_bytes() for path in paths]
    assert set(found) == {OLD, NEW}
    assert number < found.count(NEW) < COUNT
    sources = [source for path in paths if isinstance(source := read(path), SourceFile)]
    sweep(sources)
    assert sorted(p for p in tree.rglob("*") if p.is_file()) == paths
