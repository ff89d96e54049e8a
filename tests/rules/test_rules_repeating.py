"""What an update writes to is evaluated once where a second time could give something else."""

from __future__ import annotations

import pytest
from programs import analysed, executed, source_of

from aliaslint import fix

PROGRAM = """\
import mlx.core as mx


class Cache:
    def __init__(self):
        self.offset = mx.array([7])
        self.kept = [self.offset]


def new():
    return Cache()


class Holder:
    def __init__(self):
        self.both = [new(), new()]
        self.cache = self.both[0]
        self.reads = 0

    @property
    def current(self):
        self.reads += 1
        return self.both[self.reads % 2]

    @property
    def rolled(self):
        return self.roll()

    def roll(self):
        self.cache = self.both[1]
        return 1

    def step(self):
        STEP


holder = Holder()
x = holder.both[0]
i = 0


def switch(*_):
    global x, i
    x = holder.both[1]
    i = 1
    return 1


def nested():
    y = holder.both[0]

    def switch():
        nonlocal y
        y = holder.both[1]
        return 1

    NESTED


first, second = holder.both[0].offset, holder.both[1].offset
BODY
result = [c.offset.tolist() for c in holder.both], holder.reads
print(first.tolist(), second.tolist())


def run():
    return result
"""
ONCE = {
    "a property": "holder.current.offset += 5",
    "a call that rebinds an attribute": "holder.cache.offset += holder.roll()",
    "a property that rebinds an attribute": "holder.cache.offset += holder.rolled",
    "a call that rebinds a global": "x.offset += switch()",
    "a call that rebinds an index": "holder.both[i].offset += switch()",
    "a call among others": "x.offset += mx.array([2]) * switch()",
    "a call by way of a builtin": "x.offset += max([1, 2], key=switch)",
    "a call by way of a comprehension": "x.offset += [switch() for _ in range(1)][0]",
}
TWICE = {
    "an attribute and a number": "holder.cache.offset += 1",
    "an element": "holder.both[i].offset += 1",
    "a global and MLX": "x.offset += mx.array([2]).astype(mx.int32).sum() + len([1])",
    "metadata": "holder.cache.offset += first.shape[0]",
    "an operation on an index": "holder.both[i + 1].offset += -int(2.0)",
}


def program(body: str, step: str = "pass", nested: str = "pass") -> str:
    return PROGRAM.replace("BODY", body).replace("STEP", step).replace("NESTED", nested)


def fixed(text: str) -> str:
    return fix.run([source_of(text)], analysed).text_of(source_of(text))


@pytest.mark.parametrize("body", ONCE.values(), ids=ONCE)
def test_the_owner_is_evaluated_once(body: str) -> None:
    text = program(body)

    after = fixed(text)

    assert "owner.offset = owner.offset + " in after
    assert executed(after) == executed(text)


@pytest.mark.parametrize("body", TWICE.values(), ids=TWICE)
def test_the_owner_is_written_twice(body: str) -> None:
    text = program(body)
    owner = body.partition(" += ")[0]

    after = fixed(text)

    assert f"{owner} = {owner} + " in after
    assert executed(after) == executed(text)


def test_an_attribute_of_self_that_the_call_rebinds() -> None:
    text = program("holder.step()", "self.cache.offset += self.roll()")

    after = fixed(text)

    assert "owner = self.cache\n" in after
    assert executed(after) == executed(text)


def test_a_variable_that_a_nested_function_rebinds() -> None:
    text = program("nested()", nested="y.offset += switch()")

    after = fixed(text)

    assert "owner = y\n" in after
    assert executed(after) == executed(text)


OTHERS = {
    "an item method": ("holder.both[i]", "def __getitem__(self, i):\n        return None"),
    "an attribute method": ("holder.cache", "def __getattr__(self, name):\n        return None"),
    "a property": ("holder.cache", "@property\n    def cache(self):\n        return None"),
    "a property of another name": ("holder.cache", "cache = property(print)"),
    "a property that is put in later": ("holder.cache", "pass\n\nOther.cache = property(print)"),
}


@pytest.mark.parametrize(("owner", "body"), OTHERS.values(), ids=OTHERS)
def test_what_any_class_of_the_program_computes_is_evaluated_once(owner: str, body: str) -> None:
    text = program(f"{owner}.offset += 1") + f"\n\nclass Other:\n    {body}\n"

    assert f"owner = {owner}\n" in fixed(text)
