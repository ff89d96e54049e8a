"""The import hook's change of a module, executed with arrays that are plain objects."""

from __future__ import annotations

import operator
import textwrap
from typing import Any

import pytest

from aliaslint.verify.worker.semantics import Force, cache_classes, force_value_semantics


class Box:
    """An array in miniature: `+=` and item assignment change it for every holder."""

    def __init__(self, value: list[int]) -> None:
        self.value = list(value)

    def __add__(self, other: Any) -> Box:
        return Box([v + _number(other) for v in self.value])

    def __iadd__(self, other: Any) -> Box:
        self.value = [v + _number(other) for v in self.value]
        return self

    def __setitem__(self, index: int, value: int) -> None:
        self.value[index] = value


def _number(other: Any) -> int:
    return other.value[0] if isinstance(other, Box) else int(other)


def rebind(current: Any, other: Any, operation: str) -> Any:
    assert operation == "Add"
    return operator.add(current, other) if isinstance(current, Box) else current + other


def snapshot(value: Any) -> Any:
    return Box(value.value) if isinstance(value, Box) else value


def detach(owner: Any, attribute: str | None) -> Any:
    if attribute is None:
        return snapshot(owner)
    setattr(owner, attribute, snapshot(getattr(owner, attribute)))
    return None


def run(source: str, *forces: Force) -> dict[str, Any]:
    tree = force_value_semantics(textwrap.dedent(source), "m.py", forces)
    names: dict[str, Any] = {
        "Box": Box,
        "__aliaslint_rebind__": rebind,
        "__aliaslint_snapshot__": snapshot,
        "__aliaslint_detach__": detach,
    }
    exec(compile(tree, "m.py", "exec"), names)
    return names


CACHE = """
class C:
    def __init__(self):
        self.offset = Box([1, 2])
        self.count = 0

    def update_and_fetch(self, n):
        self.offset += n
        self.count += n

    def write(self, v):
        self.offset[0] = v
"""


def test_update_of_an_array_attribute_keeps_held_handles() -> None:
    names = run(CACHE + "c = C(); held = c.offset; c.update_and_fetch(3)")
    assert (names["held"].value, names["c"].offset.value) == ([1, 2], [4, 5])


def test_update_of_an_int_attribute_is_as_before() -> None:
    assert run(CACHE + "c = C(); c.update_and_fetch(3)")["c"].count == 3


def test_item_assignment_keeps_held_handles() -> None:
    names = run(CACHE + "c = C(); held = c.offset; c.write(9)")
    assert (names["held"].value, names["c"].offset.value) == ([1, 2], [9, 2])


PLAIN = """
class Model:
    def step(self, c):
        c.offset += 1

class Holder:
    pass

h = Holder()
h.offset = Box([1])
held = h.offset
Model().step(h)
"""


def test_other_classes_update_in_place() -> None:
    assert run(PLAIN)["held"].value == [2]


def test_edited_statement_is_forced_anywhere() -> None:
    names = run(PLAIN, Force(4, 4))
    assert (names["held"].value, names["h"].offset.value) == ([1], [2])


def test_edited_update_of_a_local_rebinds_it() -> None:
    names = run("a = Box([1])\nb = a\na += 1\n", Force(3, 3))
    assert (names["a"].value, names["b"].value) == ([2], [1])


def test_edited_capture_is_copied() -> None:
    names = run("a = Box([1])\nb = a\na += 1\n", Force(2, 2))
    assert (names["a"].value, names["b"].value) == ([2], [1])


def test_store_back_reaches_the_owner() -> None:
    source = """
    class Owner: pass
    self = Owner()
    self.offset = Box([1])
    held = self.offset
    mine = self.offset
    mine += 4
    """
    names = run(source, Force(7, 7, "self.offset"))
    values = names["mine"].value, names["self"].offset.value, names["held"].value
    assert values == ([5], [5], [1])


def test_edited_argument_is_copied() -> None:
    source = """
    kept = []
    class Owner: pass
    c = Owner()
    c.offset = Box([1])
    kept.append(c.offset)
    c.offset += 1
    """
    assert run(source, Force(6, 6))["kept"][0].value == [1]


def test_base_of_an_edited_update_is_evaluated_once() -> None:
    source = """
    calls = []
    class Owner: pass
    c = Owner()
    c.offset = Box([1])
    def get():
        calls.append(1)
        return c
    get().offset += 1
    """
    names = run(source, Force(9, 9))
    assert (len(names["calls"]), names["c"].offset.value) == (1, [2])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class A:\n def update_and_fetch(self): ...", {"A"}),
        ("class MyCache:\n def trim(self, n): ...", {"MyCache"}),
        ("class Batch:\n def filter(self, n): ...", set()),
        ("class B(KVCache): ...", {"B"}),
        (
            "class A:\n def update_and_fetch(self): ...\nclass B(A): ...\nclass C(B): ...",
            set("ABC"),
        ),
        ("class Model:\n def __call__(self): ...", set()),
    ],
)
def test_cache_classes(source: str, expected: set[str]) -> None:
    import ast

    assert cache_classes(ast.parse(source)) == expected
