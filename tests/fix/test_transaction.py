"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
from pathlib import Path

import pytest

from aliaslint.fix import Change, transaction, write
from aliaslint.source.files import SourceFile, from_bytes, read


def change(path: Path, after: bytes) -> Change:
    before, edited = read(path), from_bytes(path, after)
    assert isinstance(before, SourceFile)
    assert isinstance(edited, SourceFile)
    return Change(before, edited, ())


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_bytes(b"old\n")
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_new_bytes_are_written(model: Path) -> None:
    assert write([change(model, b"new\r\n")]) == []
    assert model.read_bytes() == b"new\r\n"
    assert names(model.parent) == ["model.py"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o664])
def test_the_mode_is_kept(model: Path, mode: int) -> None:
    model.chmod(mode)

    write([change(model, b"new\n")])

    assert stat.S_IMODE(model.stat().st_mode) == mode


def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "model.py", tmp_path / "link.py"
    target.write_bytes(b"old\n")
    link.symlink_to(Path("real") / "model.py")

    assert write([change(link, b"new\n")]) == []
    assert os.readlink(link) == os.path.join("real", "model.py")
    assert target.read_bytes() == b"new\n"
    assert names(tmp_path / "real") == ["model.py"]


def test_a_read_only_file_is_an_error_and_stays(model: Path) -> None:
    model.chmod(0o444)

    errors = write([change(model, b"new\n")])

    assert [error.message for error in errors] == [
        "cannot be written: it is read-only; it is as it was"
    ]
    assert model.read_bytes() == b"old\n"
    assert names(model.parent) == ["model.py"]


def test_a_file_that_changed_meanwhile_is_an_error_and_stays(model: Path) -> None:
    wanted = change(model, b"new\n")
    model.write_bytes(b"edited by hand\n")

    errors = write([wanted])

    assert [error.path for error in errors] == [model]
    assert "it changed while fix was running" in errors[0].message
    assert model.read_bytes() == b"edited by hand\n"


def test_a_file_that_went_away_is_an_error_and_stays_away(model: Path) -> None:
    wanted = change(model, b"new\n")
    model.unlink()

    errors = write([wanted])

    assert "no such file" in errors[0].message
    assert names(model.parent) == []


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_a_full_disk_is_an_error_and_the_file_stays(
    model: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(transaction.os, call, full)

    errors = write([change(model, b"new\n")])

    assert [error.message for error in errors] == [
        "cannot be written: no space left on device; it is as it was"
    ]
    assert model.read_bytes() == b"old\n"
    assert names(model.parent) == ["model.py"]


def test_a_disk_that_fills_up_within_a_write(model: Path) -> None:
    """The first bytes still go to the disk: the limit of a process does what a full disk does."""
    wanted = change(model, b"new\n" * 1000)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        errors = [error.message for error in write([wanted])]
        os._exit(errors != ["cannot be written: file too large; it is as it was"])

    assert os.waitpid(child, 0)[1] == 0
    assert model.read_bytes() == b"old\n"
    assert names(model.parent) == ["model.py"]


def test_one_failure_does_not_keep_the_others_from_being_written(tmp_path: Path) -> None:
    changes = []
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_bytes(b"old\n")
        changes.append(change(tmp_path / name, b"new\n"))
    (tmp_path / "b.py").chmod(0o444)

    errors = write(changes)

    assert [error.path.name for error in errors] == ["b.py"]
    assert [(tmp_path / n).read_bytes() for n in ("a.py", "b.py", "c.py")] == [
        b"new\n",
        b"old\n",
        b"new\n",
    ]


def test_an_interrupt_leaves_no_temporary_file(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transaction.os, "replace", interrupt)

    with pytest.raises(KeyboardInterrupt):
        write([change(model, b"new\n")])
    assert names(model.parent) == ["model.py"]


def test_what_a_killed_run_left_is_swept(model: Path) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    left = model.parent / f".aliaslint-{child}-abc_123.tmp"
    left.write_bytes(b"half")
    running = model.parent / f".aliaslint-{os.getpid()}-abc_123.tmp"
    running.write_bytes(b"half")
    (model.parent / ".aliaslint-notes.tmp").write_bytes(b"mine")
    before = read(model)
    assert isinstance(before, SourceFile)

    write([], [before])

    assert names(model.parent) == sorted([running.name, ".aliaslint-notes.tmp", "model.py"])
