"""Bytes outside an edit stay as they are; what cannot be edited is an error and stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliaslint.findings import FileError, Repair, Span
from aliaslint.fix.apply import Edit, edit
from aliaslint.source.files import SourceFile, from_bytes, position

UPDATE = "self.offset += n"
REBOUND = "self.offset = self.offset + n"
CAPTURE = "cache.offset"
COPIED = "mx.array(cache.offset)"


def source(data: bytes) -> SourceFile:
    made = from_bytes(Path("/project/model.py"), data)
    assert isinstance(made, SourceFile)
    return made


def repaired(data: bytes) -> bytes:
    """Rebind each `self.offset += n` and copy each `cache.offset`."""
    file = source(data)
    repairs = []
    for wanted, action in ((UPDATE, "rebind"), (CAPTURE, "snapshot")):
        start = file.text.find(wanted)
        while start >= 0:
            span = Span(*position(file.text, start), *position(file.text, start + len(wanted)))
            repairs.append(Repair(action, span, "safe"))  # type: ignore[arg-type]
            start = file.text.find(wanted, start + 1)
    made = edit(file, repairs, 88)
    assert isinstance(made, Edit)
    assert not made.refused
    return made.source.data


BYTES = {
    "unix line ends": b"class A:\n    def f(self, n):\n        self.offset += n\n",
    "windows line ends": b"class A:\r\n    def f(self, n):\r\n        self.offset += n\r\n",
    "old mac line ends": b"class A:\r    def f(self, n):\r        self.offset += n\r",
    "mixed line ends": b"a = 1\r\nb = 2\nif a:\r\n    self.offset += n\nc = 3\r\n",
    "a byte order mark": b"\xef\xbb\xbfself.offset += n\n",
    "a byte order mark and a cookie": b"\xef\xbb\xbf# -*- coding: utf-8 -*-\nself.offset += n\n",
    "latin-1": b"# -*- coding: latin-1 -*-\nname = 'caf\xe9'\nself.offset += n  # \xe9t\xe9\n",
    "a cookie in line two": b"#!python\n# vim: set fileencoding=cp1252 :\nself.offset += n\n",
    "characters beyond ASCII before the edit": "é = 'ö😀'; self.offset += n\n".encode(),
    "tabs": b"class A:\n\tdef f(self, n):\n\t\tself.offset += n\n",
    "tabs and spaces": b"if a:\n\tif b:\n\t    self.offset += n\n",
    "a form feed between functions": b"def g():\n    pass\n\x0c\ndef f(n):\n    self.offset += n\n",
    "a form feed before the statement": b"a = 1\n\x0c\nself.offset += n\n",
    "a form feed in the indentation": b"if a:\n\x0c    self.offset += n\n\x0c    b = 1\n",
    "a form feed after other indentation": b"if a:\r\n  \x0c \x0c    self.offset += n\r\n",
    "a form feed before the body": b"if a:\n\x0c    b = 1\n    self.offset += n\n",
    "a form feed at the start": b"\x0cself.offset += n\n",
    "a form feed and old mac line ends": b"if a:\r\x0c    self.offset += n\r",
    "a form feed in a string": b"if a:\n\x0c    self.offset += n\nb = '''\n \x0c x\n'''\n",
    "no final newline": b"self.offset += n",
    "no final newline after a comment": b"self.offset += n  # end",
    "no final newline elsewhere": b"self.offset += n\nx = 1",
    "blank lines at the end": b"self.offset += n\n\n\n",
    "spaces at line ends": b"a = 1   \nself.offset += n   \nb = 2\t\n",
    "a line separator in a string": "a = 'x\u2028y'\nself.offset += n\n".encode(),
    "a vertical tab in a string": b"a = 'x\x0by'\nself.offset += n\n",
    "two-column indentation": b"if a:\n  if b:\n    self.offset += n\n",
    "comments at odd columns": b"if a:\n    b\n  # odd\n    self.offset += n\n# end\n",
    "continuation lines": b"x = 1 + \\\n  2\nself.offset += n\n",
}


@pytest.mark.parametrize("data", BYTES.values(), ids=BYTES)
def test_only_the_statement_changes(data: bytes) -> None:
    assert repaired(data) == data.replace(UPDATE.encode(), REBOUND.encode())


def test_form_feeds_stay_where_lines_are_added() -> None:
    before = b"import os\n\n\ndef f():\n\x0c    '''What.\n\x0cElse.'''\n\x0c    o = cache.offset\n"
    after = before.replace(b"import os\n", b"import os\n\nimport mlx.core as mx\n")

    assert repaired(before) == after.replace(CAPTURE.encode(), COPIED.encode())


def test_a_form_feed_goes_before_the_variable_of_an_owner() -> None:
    file = source(b"if a:\n\x0c    g().offset += 1\n")

    made = edit(file, [Repair("rebind", Span(2, 6, 2, 21), "safe")], 88)

    assert isinstance(made, Edit)
    assert made.source.data == (
        b"if a:\n\x0c    owner = g()\n    owner.offset = owner.offset + 1\n"
    )


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_an_added_import_has_the_line_ends_of_the_file(end: bytes) -> None:
    before = b'"""What."""' + 2 * end + b"import os" + 2 * end + b"o = cache.offset" + end

    assert repaired(before) == (
        b'"""What."""'
        + 2 * end
        + b"import os"
        + 2 * end
        + b"import mlx.core as mx"
        + 2 * end
        + b"o = mx.array(cache.offset)"
        + end
    )


def test_an_added_import_stands_below_the_cookie() -> None:
    before = b"# -*- coding: latin-1 -*-\no = cache.offset  # \xe9\n"

    assert repaired(before) == (
        b"# -*- coding: latin-1 -*-\nimport mlx.core as mx\n\no = mx.array(cache.offset)  # \xe9\n"
    )


def test_spaces_that_libcst_drops_stay() -> None:
    data = b"try:\n    self.offset += n\nexcept OSError :\n    pass\n"

    assert repaired(data) == data.replace(UPDATE.encode(), REBOUND.encode())


def test_both_kinds_of_edit_in_one_statement() -> None:
    data = b"import mlx.core as mx\n\nself.offset += n; o = cache.offset\n"

    assert repaired(data) == (
        b"import mlx.core as mx\n\nself.offset = self.offset + n; o = mx.array(cache.offset)\n"
    )


def test_a_copy_inside_an_update_that_is_rebound() -> None:
    file = source(b"import mlx.core as mx\n\ntotal -= cache.offset\n")
    repairs = [
        Repair("rebind", Span(3, 1, 3, 22), "safe"),
        Repair("snapshot", Span(3, 10, 3, 22), "safe"),
    ]

    made = edit(file, repairs, 88)

    assert isinstance(made, Edit)
    assert made.source.text.splitlines()[-1] == "total = total - mx.array(cache.offset)"


def test_syntax_that_libcst_does_not_know_is_an_error_of_the_file() -> None:
    file = source(b"def f(:\n    self.offset += n\n")

    made = edit(file, [Repair("rebind", Span(2, 5, 2, 21), "safe")], 88)

    assert isinstance(made, FileError)
    assert "libcst does not parse it" in made.message


def test_a_refused_repair_leaves_the_text() -> None:
    file = source(b"x = 1\n")
    repair = Repair("rebind", Span(1, 1, 1, 6), "safe")

    made = edit(file, [repair], 88)

    assert isinstance(made, Edit)
    assert made.source.data == b"x = 1\n"
    assert made.refused == {repair: "this is no augmented assignment"}
