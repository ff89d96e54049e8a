"""What is copied at a capture: the array itself, or nothing where it has no expression."""

from __future__ import annotations

import pytest
from programs import analysed, names_of, source_of

from aliaslint import fix
from aliaslint.findings import Finding
from aliaslint.fix import FixOptions
from aliaslint.source.files import SourceFile

PROGRAM = """\
import dataclasses
from copy import copy
from typing import Any, NamedTuple

import mlx.core as mx
import mlx.nn as nn
import numpy as np


@dataclasses.dataclass
class Moment:
    length: int
    start: Any = None


class Spot(NamedTuple):
    length: int
    start: Any


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = mx.array([4])

    def push(self, n):
        self.offset += n


class Cache:
    def __init__(self):
        self.offset = mx.array([4])
        self.keys = mx.zeros((2,))

    @property
    def position(self):
        return self.offset

    @position.setter
    def position(self, value):
        self.offset = value

    @property
    def pair(self):
        return self.keys, self.offset

    @property
    def table(self):
        return {"offset": self.offset}

    def current(self):
        return self.offset

    def parts(self):
        return [self.keys, self.offset]

    def moment(self):
        return Moment(1, self.offset)

    @property
    def state(self):
        return self.keys, self.offset

    @state.setter
    def state(self, value):
        self.keys, self.offset = value

    def push(self, n):
        self.offset += n


def run(cache: Cache, counter: Counter, flag=False):
    CAPTURE
    cache.push(3)
    counter.push(3)
    return int(READ)
"""

# capture, read, what is copied
SINGLE = {
    "attribute": ("held = cache.offset", "held.item()", "cache.offset"),
    "property": ("held = cache.position", "held.item()", "cache.position"),
    "method": ("held = cache.current()", "held.item()", "cache.current()"),
    "getattr": ('held = getattr(cache, "offset")', "held.item()", 'getattr(cache, "offset")'),
    "conditional": ("held = 0 if flag else cache.offset", "held * 1", "cache.offset"),
    "or": ("held = flag or cache.offset", "held * 1", "cache.offset"),
    "walrus": ("print(held := cache.offset)", "held.item()", "cache.offset"),
    "element of a property": ("held = cache.pair[1]", "held.item()", "cache.pair[1]"),
    "element of a method": ("held = cache.parts()[1]", "held.item()", "cache.parts()[1]"),
    "key of a property": (
        'held = cache.table["offset"]',
        "held.item()",
        'cache.table["offset"]',
    ),
    "vars": ('held = vars(cache)["offset"]', "held.item()", 'vars(cache)["offset"]'),
    "__dict__": ('held = cache.__dict__["offset"]', "held.item()", 'cache.__dict__["offset"]'),
    "parameters": (
        'held = counter.parameters()["offset"]',
        "held.item()",
        'counter.parameters()["offset"]',
    ),
    "record by keyword": (
        "held = Moment(1, start=cache.offset)",
        "held.start.item()",
        "cache.offset",
    ),
    "record by position": ("held = Spot(1, cache.offset)", "held.start.item()", "cache.offset"),
    "record of a method": ("held = cache.moment()", "held.start.item()", "self.offset"),
    "replaced record": (
        "held = Spot(1, cache.offset)._replace(length=2)",
        "held.start.item()",
        "cache.offset",
    ),
    "list": ("held = [cache.offset]", "held[0].item()", "cache.offset"),
    "unpacked display": ("keys, held = cache.keys, cache.offset", "held.item()", "cache.offset"),
    "array given to a setter": (
        "held, other = cache.position, Cache()\n    other.position = held",
        "other.offset.item()",
        "held",
    ),
    "field of a record": ("held = cache.moment().start", "held.item()", "cache.moment().start"),
}
# What holds the array and was filled by a function of the program: it is copied in there.
FILLED = {
    "pair": ("held = cache.pair", "held[1].item()"),
    "list": ("held = cache.parts()", "held[1].item()"),
    "starred": ("held = [*cache.parts()]", "held[1].item()"),
    "dictionary": ("held = cache.table", 'held["offset"].item()'),
    "values": ("(held,) = cache.table.values()", "held.item()"),
    "slice": ("held = cache.parts()[1:]", "held[0].item()"),
    "element counted from the end": ("held = cache.parts()[-1]", "held.item()"),
    "walrus": ("print(len(held := cache.pair))", "held[1].item()"),
    "argument": ("held = (lambda pair: pair)(cache.pair)", "held[1].item()"),
    "comprehension": ("held = [pair for pair in [cache.pair]]", "held[0][1].item()"),
    "element of a subject": (
        "match cache.pair:\n        case (_, held):\n            pass",
        "held.item()",
    ),
    "kept and unpacked": ("held = keys, offset = cache.pair", "held[1].item()"),
    "unpacked later": ("pair = cache.pair\n    keys, held = pair", "held.item()"),
    "unpacked into an element": ("held = {}\n    keys, held[0] = cache.pair", "held[0].item()"),
}
# Capture, read, and the targets that are copied after it.
UNPACKED = {
    "pair": ("keys, held = cache.pair", "held.item()", ["held"]),
    "method": ("[keys, held] = cache.parts()", "held.item()", ["held"]),
    "starred": ("keys, *held = cache.pair", "held[0].item()", ["held"]),
    "before a star": ("*keys, held = cache.pair", "held.item()", ["held"]),
    "arm of a conditional": (
        "keys, held = (0, 0) if flag else cache.pair",
        "held * 1",
        ["held"],
    ),
    "after or": ("keys, held = flag or cache.pair", "held.item()", ["held"]),
    "two pairs": (
        "(keys, held), (_, other) = cache.pair, cache.parts()",
        "(held + other).item() // 2",
        ["held", "other"],
    ),
    "two targets": (
        "a, b = keys, held = cache.pair",
        "(b + held).item() // 2",
        ["b", "held"],
    ),
    "attribute": ("keys, counter.start = cache.pair", "counter.start.item()", ["counter.start"]),
}
MANY = {
    "vars": ("held = vars(cache)", 'held["offset"].item()'),
    "copied vars": ("held = dict(vars(cache))", 'held["offset"].item()'),
    "parameters": ("held = counter.parameters()", 'held["offset"].item()'),
    "pattern": ("match cache:\n        case Cache(offset=held):\n            pass", "held.item()"),
    "shallow copy": ("held = copy(cache)", "held.offset.item()"),
    "state that a setter takes apart": (
        "held, other = cache.state, Cache()\n    other.state = held",
        "other.offset.item()",
    ),
    "element that a setter takes apart": (
        "held, other = [cache.state], Cache()\n    other.state = held[0]",
        "other.offset.item()",
    ),
}


# The array of one record is updated, that of the other one read.
TWO = "[b.start.item() for _ in [a.start.__iadd__(3)]][0]"


def findings(capture: str, read: str) -> tuple[SourceFile, list[Finding]]:
    text = PROGRAM.replace("CAPTURE", capture).replace("READ", read)
    source = source_of(text)
    return source, [f for f in analysed([source]).findings if f.code in ("AL101", "AL201")]


def copied(source: SourceFile, finding: Finding) -> str | None:
    """Return the text that the finding's repair copies."""
    if finding.repair is None:
        return None
    span = finding.repair.span
    assert finding.repair.action == "snapshot"
    assert span.line == span.end_line
    return source.text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1]


def executed(text: str) -> int:
    """Return what `run` reads; skips where MLX is missing."""
    scope = names_of(text)
    return scope["run"](scope["Cache"](), scope["Counter"]())  # type: ignore[no-any-return]


@pytest.mark.parametrize("case", SINGLE.values(), ids=SINGLE)
def test_the_array_is_copied(case: tuple[str, str, str]) -> None:
    capture, read, wanted = case

    source, found = findings(capture, read)

    assert [copied(source, f) for f in found] == [wanted]


@pytest.mark.parametrize("case", SINGLE.values(), ids=SINGLE)
def test_the_copy_keeps_its_value(case: tuple[str, str, str]) -> None:
    source, _ = findings(*case[:2])

    report = fix.run([source], analysed, FixOptions(strategy="snapshot", unsafe=True))

    assert (executed(source.text), executed(report.text_of(source))) == (7, 4)


@pytest.mark.parametrize("case", MANY.values(), ids=MANY)
def test_what_holds_the_array_is_not_copied(case: tuple[str, str]) -> None:
    source, found = findings(*case)

    assert [copied(source, f) for f in found] == [None]


@pytest.mark.parametrize("case", FILLED.values(), ids=FILLED)
def test_what_a_function_fills_is_copied_in_it(case: tuple[str, str]) -> None:
    source, found = findings(*case)

    report = fix.run([source], analysed, FixOptions(strategy="snapshot"))

    assert [f.repair.action for f in found if f.repair] == ["copy-in-callee"]
    assert "self.keys, mx.array(self.offset)" in report.text_of(source) or (
        '{"offset": mx.array(self.offset)}' in report.text_of(source)
    )
    assert (executed(source.text), executed(report.text_of(source))) == (7, 4)


@pytest.mark.parametrize("case", UNPACKED.values(), ids=UNPACKED)
def test_what_is_unpacked_is_copied_after_it(case: tuple[str, str, list[str]]) -> None:
    *program, names = case
    source, found = findings(*program)
    repairs = [f.repair for f in found if f.repair]

    report = fix.run([source], analysed, FixOptions(strategy="snapshot"))
    again = fix.run([source_of(report.text_of(source))], analysed, FixOptions(strategy="snapshot"))

    assert {r.action for r in repairs} == {"copy-after"}
    assert [name.text for r in repairs for name in r.names] == names
    assert (executed(source.text), executed(report.text_of(source))) == (7, 4)
    assert again.changes == ()


@pytest.mark.parametrize("case", MANY.values(), ids=MANY)
def test_what_is_not_copied_says_why(case: tuple[str, str]) -> None:
    source, found = findings(*case)

    report = fix.run([source], analysed, FixOptions(strategy="snapshot"))

    assert all(f.obstacle for f in found)
    assert {s.finding.code: s.reason for s in report.skipped if not s.finding.repair} == {
        f.code: f.obstacle for f in found
    }


def test_what_a_caller_updates_is_not_copied_for_it_unasked() -> None:
    """Whoever updates what it is given means the owner's array: after a copy it would not."""
    writer = "\n\ndef write(cache: Cache):\n    held = cache.parts()[1]\n    held += 1\n"
    reader = "    return cache.offset\n"
    text = PROGRAM.replace("CAPTURE", "held = cache.parts()").replace("READ", "held[1].item()")
    text = text.replace("\n\ndef run", f"{writer}{reader}\n\ndef run")
    text += "\n\nif __name__ == '__main__':\n    print(write(Cache()))\n"

    (found,) = [f for f in analysed([source_of(text)]).findings if f.code == "AL101"]

    assert found.fixable == "unsafe"


OPTIONAL = """\
import mlx.core as mx


class Cache:
    def __init__(self, padding=None):
        self.offset = mx.array([4])
        self.lengths = None
        self.padding = padding
        self.size = 4

    def skip(self, n=None):
        if n is not None:
            self.offset -= n

    def current(self):
        return self.lengths

    def fill(self):
        self.lengths = self.padding = mx.array([4])

    def push(self, n):
        self.offset += n
        self.size += n
        if self.lengths is not None:
            self.lengths += n
        if self.padding is not None:
            self.padding += n


def run(cache: Cache):
    held = CAPTURE
    cache.push(3)
    return held + 0 if held is not None else None


def observed():
    full = Cache()
    full.fill()
    return [None if (v := run(c)) is None else int(v) for c in (Cache(), full)]
"""
# What is captured, the form of the copy, and what is read afterwards, of an empty and a full cache.
FORMS = {
    "always an array": ("cache.offset", "array", [4, 4]),
    "None at first": ("cache.lengths", "keep-any", [None, 4]),
    "a parameter that may be None": ("cache.padding", "keep-any", [None, 4]),
    "getattr with None": ('getattr(cache, "offset", None)', "keep-any", [4, 4]),
    "getattr of what may be None": ('getattr(cache, "lengths", 0)', "keep-any", [None, 4]),
    "getattr with a number": ('getattr(cache, "offset", 0)', "array", [4, 4]),
    "a method": ("cache.current()", "keep-any", [None, 4]),
}


@pytest.mark.parametrize(("capture", "form", "values"), FORMS.values(), ids=FORMS)
def test_none_is_not_copied_as_an_array(capture: str, form: str, values: list[int | None]) -> None:
    text = OPTIONAL.replace("CAPTURE", capture)
    source = source_of(text)

    report = fix.run([source], analysed, FixOptions(strategy="snapshot"))

    assert [a.finding.repair.form for a in report.applied if a.finding.repair] == [form]
    assert names_of(report.text_of(source))["observed"]() == values


COUNTING = """\
import mlx.core as mx


class Plain:
    def __init__(self):
        self.offset = 4

    @property
    def position(self):
        return self.offset

    def push(self, n):
        self.offset += n


class Batched:
    def __init__(self):
        self.offset = mx.array([4])

    @property
    def position(self):
        return self.offset

    def push(self, n):
        self.offset += n


def current(cache):
    return cache.offset


def run(cache):
    held = CAPTURE
    cache.push(3)
    return list(range(held)) if isinstance(held, int) else held.tolist()


def observed():
    return [run(cache()) for cache in (CLASSES)]
"""


@pytest.mark.parametrize("capture", ["cache.offset", "cache.position", "current(cache)"])
@pytest.mark.parametrize(
    ("classes", "form", "values"),
    [
        ("Plain, Batched", "keep-int", [[0, 1, 2, 3], [4]]),
        ("Batched, Plain", "keep-int", [[4], [0, 1, 2, 3]]),
        ("Batched, ", "array", [[4]]),
    ],
)
def test_an_int_of_another_cache_stays_one(
    capture: str, classes: str, form: str, values: list[list[int]]
) -> None:
    calls = "".join(f"    run({name.strip()}())\n" for name in classes.split(",") if name.strip())
    text = COUNTING.replace("CAPTURE", capture).replace("CLASSES", classes)
    text += f"\n\nif __name__ == '__main__':\n{calls}"
    source = source_of(text)

    report = fix.run([source], analysed, FixOptions(strategy="snapshot"))

    assert [a.finding.repair.form for a in report.applied if a.finding.repair] == [form]
    assert names_of(report.text_of(source))["observed"]() == values


def test_of_a_view_the_array_below_it_is_copied() -> None:
    """What a view sees of `+=` depends on MLX's allocator, so this one is not executed."""
    source, found = findings("held = np.asarray(cache.offset)", "held.item()")

    assert [copied(source, f) for f in found] == ["cache.offset"]


def test_a_record_is_given_a_copy_of_its_argument() -> None:
    source, found = findings("zero = mx.array(4)\n    a, b = Spot(1, zero), Spot(2, zero)", TWO)

    assert [copied(source, f) for f in found] == ["zero"]
