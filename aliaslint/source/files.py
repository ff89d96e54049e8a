"""Reading Python files as Python reads them, and finding the files of a run.

Reading keeps the bytes: a fix writes them back untouched outside its edits.
"""

from __future__ import annotations

import codecs
import errno
import io
import re
import stat
import tokenize
from dataclasses import dataclass
from pathlib import Path

from aliaslint.findings import FileError

_LINE_END = re.compile(r"\r\n|\r|\n")
_HEADER = re.compile(rb"(?:[^\r\n]*(?:\r\n|\r|\n)?){2}")
NOTEBOOK = (
    "is a notebook, which is not read: write its code to a Python file first "
    "(jupyter nbconvert --to script)"
)
_NOTEBOOK = re.compile(rb'\s*\{.*"nbformat"\s*:', re.DOTALL)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file. `path` is absolute; `data` are its bytes as they are on disk.

    `text` is the decoded text without byte order mark and with its own line ends, so that
    `text.encode(encoding) == data`; `encoding` is "utf-8-sig" where there is a mark.
    Python ends a line at CR LF, CR or LF and nowhere else: use `split_lines`, since
    `str.splitlines` also splits at form feeds and at Unicode separators.
    """

    path: Path
    data: bytes
    text: str
    encoding: str


def split_lines(text: str) -> list[str]:
    """Return the lines of `text` without their ends; index 0 is what `ast` calls line 1."""
    if "\r" not in text:
        return text.split("\n")
    return _LINE_END.split(text)


def read_bytes(path: Path) -> bytes:
    """Return what a file holds. Raises OSError, also for a pipe, a socket or a device.

    Those may never end, or never begin: a run must not wait for them.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "not a regular file")
    return path.read_bytes()


def read(path: Path) -> SourceFile | FileError:
    """Read and decode `path`; what cannot be read or decoded is a FileError of one line."""
    path = Path(path).absolute()
    try:
        data = read_bytes(path)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        return FileError(path, None, None, f"cannot be read: {reason}")
    return from_bytes(path, data)


def from_bytes(path: Path, data: bytes) -> SourceFile | FileError:
    """Decode `data` as Python does (PEP 263: byte order mark, then cookie, then UTF-8)."""
    path = Path(path).absolute()
    if _is_notebook(path, data):
        return FileError(path, None, None, NOTEBOOK)
    try:
        encoding = detect_encoding(data)
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        return _undecodable(path, error)
    except (SyntaxError, LookupError) as error:
        return FileError(path, 1, 1, f"cannot be decoded: {error}")
    if "\0" in text:
        line, column = position(text, text.index("\0"))
        return FileError(path, line, column, "holds a null byte, which Python source cannot")
    return SourceFile(path, data, text, encoding)


def _is_notebook(path: Path, data: bytes) -> bool:
    """Whether this is JSON of a notebook, which parses as one Python expression that does nothing.

    Text on standard input has no name that would tell.
    """
    return path.suffix.lower() == ".ipynb" or _NOTEBOOK.match(data) is not None


def detect_encoding(data: bytes) -> str:
    """Return the encoding of a source file: "utf-8", "utf-8-sig" or what the cookie names.

    Raises SyntaxError for an unknown encoding or one that contradicts the byte order mark.
    """
    header = _HEADER.match(data)
    first_lines = header.group() if header else b""
    if b"coding" not in first_lines:
        return "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
    lines = io.BytesIO(first_lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    encoding = tokenize.detect_encoding(lines.readline)[0]
    if "\n".encode(encoding) not in (b"\n", codecs.BOM_UTF8 + b"\n"):
        raise SyntaxError(f"{encoding} is not an encoding that Python source can have")
    return encoding


def position(text: str, index: int) -> tuple[int, int]:
    """Return line and column (from 1, in characters) of the character at `index`."""
    before = split_lines(text[:index])
    return len(before), len(before[-1]) + 1


def _undecodable(path: Path, error: UnicodeDecodeError) -> FileError:
    before = error.object[: error.start].decode(error.encoding, "replace")
    line, column = position(before, len(before))
    hint = " (declare the encoding in the first line: # -*- coding: latin-1 -*-)"
    return FileError(
        path,
        line,
        column,
        f"cannot be decoded as {error.encoding}: byte 0x{error.object[error.start]:02x}"
        + (hint if error.encoding == "utf-8" else ""),
    )
