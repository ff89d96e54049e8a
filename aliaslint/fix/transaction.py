"""Writes edited files so that each is whole at any moment, old or new.

The new bytes go to a temporary file in the same folder, reach the disk, and take the place of the
old file by a rename, which is atomic. A run that was killed before the rename leaves a temporary
file behind; the next `write` or `sweep` over the same files takes it away.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from aliaslint.findings import FileError
from aliaslint.fix.model import Change
from aliaslint.source.files import SourceFile

_TEMPORARY = re.compile(r"\.aliaslint-(\d+)-\w+\.tmp")


def write(changes: Iterable[Change], files: Sequence[SourceFile] = ()) -> list[FileError]:
    """Write each change; return an error for each file that was left as it was.

    A file is not written if it changed since it was read, if it is read-only, or if the disk is
    full. `files` are those of the run: what a killed run left beside them is swept away.
    """
    changes = list(changes)
    sweep([*files, *(change.before for change in changes)])
    errors = []
    for change in changes:
        try:
            _write(change)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            message = f"cannot be written: {reason}; it is as it was"
            errors.append(FileError(change.before.path, None, None, message))
    return errors


def sweep(files: Iterable[SourceFile]) -> None:
    """Remove the temporary files of runs that were killed, beside the given files."""
    for folder in {Path(os.path.realpath(source.path)).parent for source in files}:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            match = _TEMPORARY.match(name)
            if match and not _is_alive(int(match[1])):
                _unlink(folder / name)


def _write(change: Change) -> None:
    """Replace one file. Raises OSError; the old file is then untouched."""
    target = Path(os.path.realpath(change.before.path))  # A symbolic link stays one.
    mode = target.stat().st_mode
    if not mode & 0o222 or not os.access(target, os.W_OK):
        raise OSError(None, "it is read-only")
    _must_be_unchanged(target, change)
    temporary = _temporary(target, change.after.data, stat.S_IMODE(mode))
    try:
        _must_be_unchanged(target, change)
        os.replace(temporary, target)
    except BaseException:
        _unlink(temporary)
        raise
    _sync_folder(target.parent)


def _must_be_unchanged(target: Path, change: Change) -> None:
    if target.read_bytes() != change.before.data:
        raise OSError(None, "it changed while fix was running")


def _temporary(target: Path, data: bytes, mode: int) -> Path:
    """Return a new file beside `target` that holds `data`, on the disk, with the same rights."""
    prefix = f".aliaslint-{os.getpid()}-"
    handle, name = tempfile.mkstemp(".tmp", prefix, target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        _keep_owner(Path(name), target)
        os.chmod(name, mode)
    except BaseException:
        _unlink(Path(name))
        raise
    return Path(name)


def _keep_owner(new: Path, target: Path) -> None:
    """Give the file to the owner and group of the old one, where that is allowed."""
    if hasattr(os, "chown"):
        old = target.stat()
        try:
            os.chown(new, old.st_uid, old.st_gid)
        except OSError:
            return  # Only root may give files away; the content matters more.


def _sync_folder(folder: Path) -> None:
    """Make the rename itself reach the disk; not every system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    with contextlib.suppress(OSError):
        os.fsync(handle)
    os.close(handle)


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _is_alive(process: int) -> bool:
    """Whether a process runs; where that cannot be asked, its file is left alone."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
