"""Files are read as Python reads them, and what cannot be read is one clear line."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from aliaslint.findings import FileError
from aliaslint.source.files import NOTEBOOK, SourceFile, from_bytes, position, read, split_lines

PATH = Path("module.py")


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        pytest.param(b"", "", "utf-8", id="empty"),
        pytest.param(b"a = 1\r\n", "a = 1\r\n", "utf-8", id="CRLF is kept"),
        pytest.param("é\n".encode(), "é\n", "utf-8", id="UTF-8 without a cookie"),
        pytest.param(b"\xef\xbb\xbfa\n", "a\n", "utf-8-sig", id="byte order mark"),
        pytest.param(
            b"\xef\xbb\xbf# coding: utf-8\n", "# coding: utf-8\n", "utf-8-sig", id="mark and cookie"
        ),
        pytest.param(
            b"# -*- coding: latin-1 -*-\n'\xe9'",
            "# -*- coding: latin-1 -*-\n'é'",
            "iso-8859-1",
            id="cookie in the first line",
        ),
        pytest.param(
            b"#!/usr/bin/python\n# vim: fileencoding=cp1252\n'\x80'",
            "#!/usr/bin/python\n# vim: fileencoding=cp1252\n'€'",
            "cp1252",
            id="cookie in the second line",
        ),
        pytest.param(
            b"# coding: latin-1\r'\xe9'", "# coding: latin-1\r'é'", "iso-8859-1", id="CR alone"
        ),
        pytest.param(b"a\n\n# coding: latin-1\n", "a\n\n# coding: latin-1\n", "utf-8", id="line 3"),
    ],
)
def test_decodes_as_python_does(data: bytes, text: str, encoding: str) -> None:
    source = from_bytes(PATH, data)
    assert isinstance(source, SourceFile)
    assert (source.text, source.encoding, source.data) == (text, encoding, data)


@pytest.mark.parametrize(
    "data",
    [
        b"a = 1\r\n",
        b"\xef\xbb\xbfa = 1\n",
        b"# coding: latin-1\n'\xe9'",
        b"a\rb\x0cc\n",
        "# coding: euc-jp\n'日本'".encode("euc-jp"),
    ],
)
def test_text_encodes_back_to_the_same_bytes(data: bytes) -> None:
    source = from_bytes(PATH, data)
    assert isinstance(source, SourceFile)
    assert source.text.encode(source.encoding) == data


@pytest.mark.parametrize(
    ("data", "line", "column", "message"),
    [
        pytest.param(
            "x = 1\né = '".encode() + b"\xe9'\n",
            2,
            6,
            "cannot be decoded as utf-8: byte 0xe9 "
            "(declare the encoding in the first line: # -*- coding: latin-1 -*-)",
            id="latin-1 without a cookie",
        ),
        pytest.param(
            b"\xef\xbb\xbfx = '\xe9'",
            1,
            6,
            "cannot be decoded as utf-8: byte 0xe9 "
            "(declare the encoding in the first line: # -*- coding: latin-1 -*-)",
            id="latin-1 after a byte order mark",
        ),
        pytest.param(
            b"# coding: klingon\n",
            1,
            1,
            "cannot be decoded: unknown encoding: klingon",
            id="unknown cookie",
        ),
        pytest.param(
            b"\xef\xbb\xbf# coding: latin-1\n",
            1,
            1,
            "cannot be decoded: encoding problem: utf-8",
            id="mark against cookie",
        ),
        pytest.param(
            b"# coding: utf-16\n",
            1,
            1,
            "cannot be decoded: utf-16 is not an encoding that Python source can have",
            id="an encoding that no source has",
        ),
        pytest.param(
            b"a\nb\0", 2, 2, "holds a null byte, which Python source cannot", id="null byte"
        ),
    ],
)
def test_what_cannot_be_decoded_is_one_line_with_its_place(
    data: bytes, line: int, column: int, message: str
) -> None:
    assert from_bytes(PATH, data) == FileError(PATH.absolute(), line, column, message)


@pytest.mark.parametrize(
    ("name", "data", "is_notebook"),
    [
        ("nb.ipynb", b'{"cells": [], "nbformat": 4}', True),
        ("NB.IPYNB", b"", True),
        ("stdin.py", b'\n{\n "cells": [],\n "nbformat" : 4\n}\n', True),
        ("a.py", b'{"nbformat"}\n', False),
        ("a.py", b'x = {"cells": [], "nbformat": 4}\n', False),
    ],
)
def test_a_notebook_is_no_source(name: str, data: bytes, is_notebook: bool) -> None:
    found = from_bytes(Path(name), data)
    refused = FileError(Path(name).absolute(), None, None, NOTEBOOK)
    assert (found == refused, isinstance(found, SourceFile)) == (is_notebook, not is_notebook)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "missing.py"
    assert read(path) == FileError(path, None, None, "cannot be read: no such file or directory")


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    error = read(tmp_path)
    assert error == FileError(tmp_path, None, None, "cannot be read: is a directory")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_an_error_and_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.py"
    os.mkfifo(path)
    assert read(path) == FileError(path, None, None, "cannot be read: not a regular file")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device without an end")
def test_a_device_is_an_error() -> None:
    path = Path("/dev/zero")
    assert read(path) == FileError(path, None, None, "cannot be read: not a regular file")


def test_paths_become_absolute() -> None:
    source = from_bytes(Path("a.py"), b"")
    assert isinstance(source, SourceFile)
    assert source.path == Path.cwd() / "a.py"


@pytest.mark.parametrize("text", ["a = 1\r\nb = 2\rc = 3\nd = 4", "a = '\x0c'\n\x0cb = '\u2028'\n"])
def test_lines_are_those_of_ast(text: str) -> None:
    lines = split_lines(text)
    for node in ast.parse(text).body:
        assert isinstance(node, ast.Assign)
        name = node.targets[0]
        assert isinstance(name, ast.Name)
        assert lines[node.lineno - 1][node.col_offset] == name.id


@pytest.mark.parametrize(
    ("index", "expected"), [(0, (1, 1)), (1, (1, 2)), (3, (2, 1)), (5, (3, 1)), (6, (3, 2))]
)
def test_position_counts_from_one(index: int, expected: tuple[int, int]) -> None:
    assert position("a\r\nb\rc", index) == expected
