"""When rebinding is safe: not where an update is lost that the program makes in place."""

from __future__ import annotations

import pytest
from programs import analysed, executed, source_of

from aliaslint import fix
from aliaslint.source.files import SourceFile

PROGRAM = """\
import mlx.core as mx


class Cache:
    def __init__(self):
        self._held = mx.array([4])
        self.offset = mx.array([4])
        self.other = mx.array([0])

    def bump(self):
        self.offset += 1
        return 10

    def count(self):
        self.other += 1
        return 10

    def through(self):
        return self.bump()

    PUSH


def run():
    cache = Cache()
    cache.push(3)
    return int(cache.offset)
"""
PROPERTY = """\
@property
    def offset(self):
        return self._held

    @offset.setter
    def offset(self, value):
        SETTER

    def push(self, n):
        self.offset += n
"""
LOST = "one such update runs in the right-hand side of another, which would undo it"
WRITES = "an update of the property runs its setter, which updates an array in place as well"
CASES = {
    "a number": ("def push(self, n):\n        self.offset += n", ""),
    "a call that updates another attribute": (
        "def push(self, n):\n        self.offset += n * self.count()",
        "",
    ),
    "a call that updates the target": (
        "def push(self, n):\n        self.offset += n * self.bump()",
        LOST,
    ),
    "a call of a call that updates the target": (
        "def push(self, n):\n        self.offset += n * self.through()",
        LOST,
    ),
    "a setter that binds": (PROPERTY.replace("SETTER", "self._held = value"), ""),
    "a setter that writes": (PROPERTY.replace("SETTER", "self._held[...] = value"), WRITES),
    "a setter that adds": (PROPERTY.replace("SETTER", "self._held += value"), WRITES),
}


def program(push: str) -> SourceFile:
    return source_of(PROGRAM.replace("PUSH", push))


@pytest.mark.parametrize(("push", "reason"), CASES.values(), ids=CASES)
def test_the_safety_of_a_rebinding(push: str, reason: str) -> None:
    source = program(push)
    line = next(
        n for n, text in enumerate(source.text.splitlines(), 1) if "self.offset += n" in text
    )

    repairs = [f.repair for f in analysed([source]).findings if f.span.line == line]

    assert [(r.action, r.safety, r.reason) for r in repairs if r] == [
        ("rebind", "unsafe" if reason else "safe", reason)
    ]


@pytest.mark.parametrize("push", [push for push, _ in CASES.values()], ids=CASES)
def test_a_safe_fix_keeps_the_value(push: str) -> None:
    source = program(push)

    report = fix.run([source], analysed)

    assert executed(report.text_of(source)) == executed(source.text)


ITEMS = """\
import mlx.core as mx


def run(a: mx.array, d: dict[str, mx.array]):
    kept, own = a, d["k"]
    WRITE
    return kept + own
"""
WRITES_BEHIND_A_COPY = {
    "an item": ("a[0] = 1", "a = mx.array(a)"),
    "a slice": ("a[1:] += 1", "a = mx.array(a)"),
    "one of several targets": ("a[0], b = 1, 2", "a = mx.array(a)"),
    "the last of several targets": ("b, [a[0], *c] = 1, (2, 3)", "a = mx.array(a)"),
    "a chain": ("b = a[0] = 1", "a = mx.array(a)"),
    "an element of a dictionary": ("d['k'][0] = 1", "d['k'] = mx.array(d['k'])"),
}
WRITES_WITHOUT_A_STATEMENT = {
    "a loop": "for a[0] in (1, 2):\n        pass",
    "a context": "with open('x') as a[0]:\n        pass",
    "a call": "a.__setitem__(0, 1)",
}


@pytest.mark.parametrize(
    ("write", "copied"), WRITES_BEHIND_A_COPY.values(), ids=WRITES_BEHIND_A_COPY
)
def test_a_copy_is_put_before_an_item_assignment(write: str, copied: str) -> None:
    text = ITEMS.replace("WRITE", write)
    source = source_of(text)

    report = fix.run([source], analysed, fix.FixOptions(unsafe=True))

    assert report.text_of(source) == text.replace(write, f"{copied}\n    {write}")
    assert report.remaining == ()


@pytest.mark.parametrize(
    "write", WRITES_WITHOUT_A_STATEMENT.values(), ids=WRITES_WITHOUT_A_STATEMENT
)
def test_what_no_copy_can_be_put_before_has_no_repair(write: str) -> None:
    source = source_of(ITEMS.replace("WRITE", write))

    assert [(f.code, f.repair) for f in analysed([source]).findings] == [("AL202", None)]
