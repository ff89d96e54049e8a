"""What stands on a line, by its syntax."""

from __future__ import annotations

import ast

import pytest

from aliaslint.errors import UserError
from aliaslint.explain.where import Spot, locate

SOURCE = '''\
"""A text."""

# A comment.
class Cache(
    Base,
):
    step: int
    size = 4

    @property
    def state(
        self,
    ):
        """What is
        held."""
        try:
            return self.keys
        except (
            ValueError
        ):
            pass
        finally:
            done()

    def walk(self, x: int, *rest, n=1) -> None:
        if (
            x
        ):
            def inner(y):
                return y
        else:
            for a in (
                1,
            ):
                use(a)
        match x:
            case [first, _]:
                use(first)


@register
async def serve():
    with open(
        "a"
    ) as file:
        pass
'''
LINES = SOURCE.split("\n")


def at(text: str) -> Spot:
    line = next(i for i, found in enumerate(LINES, 1) if text in found)
    return locate(ast.parse(SOURCE), LINES, line)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("class Cache", "Cache"),
        ("Base,", "Cache"),
        ("size = 4", "Cache"),
        ("@property", "Cache"),
        ("def state", "Cache.state"),
        ("        self,", "Cache.state"),
        ("return self.keys", "Cache.state"),
        ("pass", "Cache.state"),
        ("done()", "Cache.state"),
        ("            x", "Cache.walk"),
        ("def inner", "Cache.walk.inner"),
        ("return y", "Cache.walk.inner"),
        ("1,", "Cache.walk"),
        ("use(a)", "Cache.walk"),
        ("case [first, _]", "Cache.walk"),
        ("use(first)", "Cache.walk"),
        ("@register", "the module"),
        ("async def serve", "serve"),
        ('"a"', "serve"),
    ],
)
def test_names_the_unit(text: str, unit: str) -> None:
    assert at(text).unit == unit


def test_a_nested_function_belongs_to_the_one_that_is_analysed() -> None:
    spot = at("return y")
    assert (spot.root, spot.owner) == ("Cache.walk", "Cache")


def test_heads_and_decorators_are_told() -> None:
    assert at("class Cache").header is not None
    assert at("return self.keys").header is None
    decorator = at("@register").decorator
    assert isinstance(decorator, ast.Name)
    assert at("step: int").declares
    assert not at("size = 4").declares


@pytest.mark.parametrize(
    ("text", "names"),
    [("def walk", ["self", "x", "n", "rest"]), ("        self,", ["self"]), ("def state", [])],
)
def test_parameters_that_stand_on_the_line(text: str, names: list[str]) -> None:
    assert sorted(at(text).parameters) == sorted(names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"""A text."""', "line 1 is text, not code; the next statement is on line 4"),
        ("# A comment.", "line 3 is a comment; the next statement is on line 4"),
        ("):", "line 6 holds only `):`; the next statement is on line 7"),
        ("What is", "line 14 is text, not code; the next statement is on line 16"),
        ("held.", "line 15 is text, not code; the next statement is on line 16"),
        ("try:", "line 16 holds only `try:`; the next statement is on line 17"),
        ("finally:", "line 22 holds only `finally:`; the next statement is on line 23"),
        ("else:", "line 31 holds only `else:`; the next statement is on line 32"),
    ],
)
def test_lines_on_which_nothing_runs(text: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        at(text)
    assert str(raised.value) == message


def test_behind_the_last_statement() -> None:
    with pytest.raises(UserError, match=r"^line 2 is empty$"):
        locate(ast.parse("a = 1\n\n"), ["a = 1", ""], 2)
