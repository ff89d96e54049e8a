"""When an update through a local is stored back: where the local is sure to name the attribute."""

from __future__ import annotations

import pytest
from programs import analysed, executed, source_of

from aliaslint import fix
from aliaslint.source.files import SourceFile

PROGRAM = """\
import mlx.core as mx


class Cache:
    def __init__(self):
        self.offset = mx.array([4])
        self.other = mx.array([0])
        self.held = None

    @property
    def position(self):
        return self.offset

    def replace(self):
        self.offset = mx.array([1])

    def again(self):
        self.replace()

    def look(self):
        return self.offset

    def method(self, other, n):
        BODY
        return self.offset + other.offset


def run():
    cache, other = Cache(), Cache()
    return [a.tolist() for n in (0, 3) for a in (cache.method(other, n), cache.offset, cache.held)
            if a is not None]
"""
CERTAIN = {
    "at once": "mine = self.offset\nmine += n",
    "annotated": "mine: mx.array = self.offset\nmine += n",
    "on one path": "mine = self.offset\nif n:\n    mine += n",
    "in a loop": "mine = self.offset\nfor _ in range(n):\n    mine += 1",
    "twice": "mine = self.offset\nmine += n\nmine -= 1",
    "after a call that binds nothing": "mine = self.offset\nself.look()\nmine += n",
    "after another attribute was bound": "mine = self.offset\nself.other = n\nmine += n",
    "before it is bound": "mine = self.offset\nmine += n\nself.offset = self.offset + 1",
}
DOUBTFUL = {
    "another array on one path": "mine = self.offset\nif n:\n    mine = other.offset\nmine += n",
    "only sometimes": "mine = mx.array([0])\nif n:\n    mine = self.offset\nmine += n",
    "of another owner": "mine = other.offset\nmine += n",
    "the attribute was bound": (
        "mine = self.offset\nself.held = mine\nself.offset = mx.array([1])\nmine += n\n"
        "self.held + 0"
    ),
    "a call bound the attribute": (
        "mine = self.offset\nself.held = mine\nself.again()\nmine += n\nself.held + 0"
    ),
    "bound in the loop": (
        "mine = self.offset\nself.held = mine\nfor _ in range(n):\n    mine += 1\n"
        "    self.offset = mx.array([1])\nself.held + 0"
    ),
    "a property": "mine = self.position\nmine += n",
}


def program(body: str) -> SourceFile:
    text = PROGRAM.replace("BODY", body.replace("\n", "\n        "))
    return source_of(text)


def repairs(source: SourceFile) -> set[tuple[str, str]]:
    found = [f.repair for f in analysed([source]).findings if f.code == "AL004"]
    return {(repair.action, repair.safety) for repair in found if repair}


@pytest.mark.parametrize("body", CERTAIN.values(), ids=CERTAIN)
def test_it_is_stored_back(body: str) -> None:
    assert repairs(program(body)) == {("store-back", "safe")}


@pytest.mark.parametrize("body", DOUBTFUL.values(), ids=DOUBTFUL)
def test_it_is_rebound_on_request_only(body: str) -> None:
    assert repairs(program(body)) == {("rebind", "unsafe")}


@pytest.mark.parametrize("body", [*CERTAIN.values(), *DOUBTFUL.values()], ids=CERTAIN | DOUBTFUL)
def test_a_safe_fix_keeps_the_values(body: str) -> None:
    source = program(body)

    report = fix.run([source], analysed)

    assert executed(report.text_of(source)) == executed(source.text)


LOOP = """\
import mlx.core as mx


def run():
    xs = [mx.array([1]), mx.array([2])]
    first = xs[0]
    BODY
    return mx.concatenate(xs).tolist(), first.tolist()

"""
MEANT_FOR_ELEMENTS = {
    "a loop": "for x in xs:\n        x *= 3",
    "a loop with an index": "for i, x in enumerate(xs):\n        x *= 3",
    "an item": "for x in xs:\n        x[0] = 3",
    "an item that is added to": "for x in xs:\n        x[0] += 3",
}


@pytest.mark.parametrize("body", MEANT_FOR_ELEMENTS.values(), ids=MEANT_FOR_ELEMENTS)
def test_an_update_of_a_loop_variable_may_be_meant_for_the_elements(body: str) -> None:
    source = source_of(LOOP.replace("BODY", body))

    found = [(f.code, f.fixable) for f in analysed([source]).findings]

    assert found == [("AL202", "unsafe")]
    assert executed(fix.run([source], analysed).text_of(source)) == executed(source.text)
