"""A live array is copied where it is captured, in the form that the uses accept."""

from __future__ import annotations

from typing import Literal

import pytest
from marked import edit

from aliaslint.findings import Named

MX = "import mlx.core as mx\n\n"

FORMS = {
    "an assignment": ("offset = «cache.offset»\n", "offset = mx.array(cache.offset)\n"),
    "an annotated assignment": (
        "offset: mx.array = «cache.offset»\n",
        "offset: mx.array = mx.array(cache.offset)\n",
    ),
    "a chained assignment": ("a = b = «cache.offset»\n", "a = b = mx.array(cache.offset)\n"),
    "an arm of a conditional": (
        "offset = «cache.offset» if cache is not None else 0\n",
        "offset = mx.array(cache.offset) if cache is not None else 0\n",
    ),
    "the other arm of a conditional": (
        "offset = 0 if cache is None else «cache.offset»\n",
        "offset = 0 if cache is None else mx.array(cache.offset)\n",
    ),
    "a walrus": (
        "if (offset := «cache.offset») is not None:\n    pass\n",
        "if (offset := mx.array(cache.offset)) is not None:\n    pass\n",
    ),
    "elements of a tuple": (
        "a, b = «c.offset», «d.offset»\n",
        "a, b = mx.array(c.offset), mx.array(d.offset)\n",
    ),
    "an element of a list": ("l = [«c.offset»]\n", "l = [mx.array(c.offset)]\n"),
    "a value of a dictionary": ("d = {'o': «c.offset»}\n", "d = {'o': mx.array(c.offset)}\n"),
    "an argument": ("f(«c.offset»)\n", "f(mx.array(c.offset))\n"),
    "a keyword argument": ("f(offset=«c.offset»)\n", "f(offset=mx.array(c.offset))\n"),
    "an argument of a partial": (
        "g = partial(f, offset=«c.offset»)\n",
        "g = partial(f, offset=mx.array(c.offset))\n",
    ),
    "a comprehension": (
        "offsets = [«c.offset» for c in cache]\n",
        "offsets = [mx.array(c.offset) for c in cache]\n",
    ),
    "a dictionary comprehension": (
        "offsets = {i: «c.offset» for i, c in enumerate(cache)}\n",
        "offsets = {i: mx.array(c.offset) for i, c in enumerate(cache)}\n",
    ),
    "a dataclass field": (
        "class A:\n    offset: mx.array = «zero»\n",
        "class A:\n    offset: mx.array = mx.array(zero)\n",
    ),
    "a default": (
        "def f(offset=«zero»):\n    return offset\n",
        "def f(offset=mx.array(zero)):\n    return offset\n",
    ),
    "a default of a lambda": (
        "f = lambda o=«c.offset»: o\n",
        "f = lambda o=mx.array(c.offset): o\n",
    ),
    "a return": (
        "def f(c):\n    return «c.offset»\n",
        "def f(c):\n    return mx.array(c.offset)\n",
    ),
    "a yield": ("def f(c):\n    yield «c.offset»\n", "def f(c):\n    yield mx.array(c.offset)\n"),
    "a tuple that is returned": (
        "def f(c):\n    return x, «c.offset»\n",
        "def f(c):\n    return x, mx.array(c.offset)\n",
    ),
    "an item of a dictionary": ("o = «d['offset']»\n", "o = mx.array(d['offset'])\n"),
    "a getattr": ("o = «getattr(c, 'offset', 0)»\n", "o = mx.array(getattr(c, 'offset', 0))\n"),
    "a name": ("self.left = «left»\n", "self.left = mx.array(left)\n"),
    "an element of an indexed cache": (
        "o = «cache[0].offset»\n",
        "o = mx.array(cache[0].offset)\n",
    ),
    "a whole conditional": (
        "o = «a.offset if a else b.offset»\n",
        "o = mx.array(a.offset if a else b.offset)\n",
    ),
    "a whole disjunction": ("o = «a.o or b.o»\n", "o = mx.array(a.o or b.o)\n"),
    "parentheses move around the call": ("o = («c.offset»)\n", "o = (mx.array(c.offset))\n"),
    "a span with its parentheses": ("o = «(c.offset)»\n", "o = (mx.array(c.offset))\n"),
    "comments in parentheses survive": (
        "o = (\n    «c.offset»  # live\n)\n",
        "o = (\n    mx.array(c.offset)  # live\n)\n",
    ),
    "an expression over several lines": (
        "o = «f(\n    c,  # first\n)»\n",
        "o = mx.array(f(\n    c,  # first\n))\n",
    ),
    "a suite on one line": (
        "if c: o = «c.offset»; p = 1\n",
        "if c: o = mx.array(c.offset); p = 1\n",
    ),
    "a yield that is copied": (
        "def f():\n    o = «yield»\n",
        "def f():\n    o = mx.array((yield))\n",
    ),
    "a formatted string": ("s = f'{«c.offset»}'\n", "s = f'{mx.array(c.offset)}'\n"),
    "an operand that the other operand updates": (
        "use(«c.offset» + c.update(n))\n",
        "use(mx.array(c.offset) + c.update(n))\n",
    ),
    "a for loop": ("for o in «c.offsets»: pass\n", "for o in mx.array(c.offsets): pass\n"),
    "a context": ("with «c.offset» as o: pass\n", "with mx.array(c.offset) as o: pass\n"),
}


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_copying_an_array(before: str, after: str) -> None:
    outcome = edit(MX + before, "snapshot")

    assert outcome.text == MX + after
    assert outcome.refused == []


KEEP_INT = {
    "a sum keeps ints": ("o = «c.offset»\n", "o = c.offset + 0\n"),
    "in an arm of a conditional": (
        "o = «c.offset» if c else 0\n",
        "o = c.offset + 0 if c else 0\n",
    ),
    "in a call": ("f(«c.offset», b)\n", "f(c.offset + 0, b)\n"),
    "in a default": ("def f(o=«zero»): pass\n", "def f(o=zero + 0): pass\n"),
    "in a walrus": ("(o := «c.offset»)\n", "(o := c.offset + 0)\n"),
    "a conditional needs parentheses": (
        "o = «a.o if a else b.o»\n",
        "o = (a.o if a else b.o) + 0\n",
    ),
    "a disjunction needs parentheses": ("o = «a.o or b.o»\n", "o = (a.o or b.o) + 0\n"),
    "as an operand the sum needs parentheses": (
        "use(«c.offset» - c.update(n))\n",
        "use((c.offset + 0) - c.update(n))\n",
    ),
    "before an attribute the sum needs parentheses": (
        "o = «c.offset».T\n",
        "o = (c.offset + 0).T\n",
    ),
    "before an index the sum needs parentheses": ("o = «c.offset»[0]\n", "o = (c.offset + 0)[0]\n"),
    "parentheses stay where they are": ("o = («c.offset»)\n", "o = (c.offset) + 0\n"),
    "copy.copy where copy is imported": (
        "import copy\no = «c.offset»\n",
        "import copy\no = copy.copy(c.offset)\n",
    ),
    "copy under another name": (
        "import copy as cp\no = «c.offset»\n",
        "import copy as cp\no = cp.copy(c.offset)\n",
    ),
    "the function copy itself": (
        "from copy import copy\no = «c.offset»\n",
        "from copy import copy\no = copy(c.offset)\n",
    ),
    "a parameter hides the module": (
        "import copy\ndef f(copy):\n    o = «c.offset»\n",
        "import copy\ndef f(copy):\n    o = c.offset + 0\n",
    ),
    "deepcopy alone is no copy": (
        "from copy import deepcopy\no = «c.offset»\n",
        "from copy import deepcopy\no = c.offset + 0\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), KEEP_INT.values(), ids=KEEP_INT)
def test_copying_what_may_be_an_int(before: str, after: str) -> None:
    assert edit(before, "snapshot", form="keep-int").text == after


KEEP_ANY = {
    "copy is imported": ("o = «c.offset»\n", "import copy\n\no = copy.copy(c.offset)\n"),
    "copy is there": (
        "from copy import copy\no = «c.offset»\n",
        "from copy import copy\no = copy(c.offset)\n",
    ),
    "copy is a name of something else": (
        "def copy(): pass\no = «c.offset»\n",
        "import copy as copy_2\n\n\ndef copy(): pass\no = copy_2.copy(c.offset)\n",
    ),
    "in an arm of a conditional": (
        "import copy\no = «c.offset» if c else 0\n",
        "import copy\no = copy.copy(c.offset) if c else 0\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), KEEP_ANY.values(), ids=KEEP_ANY)
def test_copying_what_may_be_none(before: str, after: str) -> None:
    assert edit(before, "snapshot", form="keep-any").text == after


ALREADY = {
    "the call itself": "o = «mx.array(c.offset)»\n",
    "the argument of the call": "o = mx.array(«c.offset»)\n",
    "a sum": "o = «c.offset + 0»\n",
    "an operand of a sum": "o = «c.offset» + 0\n",
    "a sign": "o = -«c.offset»\n",
    "the operand that is evaluated last": "o = f(n) + «c.offset»\n",
    "the argument of copy": "import copy\no = copy.copy(«c.offset»)\n",
}


@pytest.mark.parametrize("form", ["array", "keep-int", "keep-any"])
@pytest.mark.parametrize("before", ALREADY.values(), ids=ALREADY)
def test_a_copy_is_not_doubled(before: str, form: str) -> None:
    outcome = edit(MX + before, "snapshot", form=form)

    assert outcome.text == MX + before.replace("«", "").replace("»", "")
    assert outcome.refused == ["it is copied already"]


@pytest.mark.parametrize(
    "before", ["o = «a, b»\n", "o = «[a]»\n", "o = «{'a': a}»\n", "o = «[x for x in y]»\n"]
)
def test_several_arrays_are_not_one(before: str) -> None:
    outcome = edit(MX + before, "snapshot")

    assert outcome.text == MX + before.replace("«", "").replace("»", "")
    assert outcome.refused == ["this is not a single array"]


@pytest.mark.parametrize("before", ["a, b = «c.parts()»\n", "[a] = «c.o»\n", "f(*«c.parts()»)\n"])
def test_what_is_unpacked_is_not_one_array(before: str) -> None:
    outcome = edit(MX + before, "snapshot")

    assert outcome.text == MX + before.replace("«", "").replace("»", "")
    assert outcome.refused == ["it is unpacked, so it is not a single array"]


@pytest.mark.parametrize("before", ["a = «Cache(o)»\n", "a = «cache._Row()»\n"])
def test_an_object_is_not_an_array(before: str) -> None:
    outcome = edit(MX + before, "snapshot")

    assert outcome.text == MX + before.replace("«", "").replace("»", "")
    assert outcome.refused == ["this makes an object, of which the array is only a part"]


NAMES = {
    "mlx.core under another name": ("import mlx.core as core\no = «c.o»\n", "core.array(c.o)"),
    "core from mlx": ("from mlx import core\no = «c.o»\n", "core.array(c.o)"),
    "core from mlx under another name": (
        "from mlx import core as mx\no = «c.o»\n",
        "mx.array(c.o)",
    ),
    "the bare module": ("import mlx.core\no = «c.o»\n", "mlx.core.array(c.o)"),
    "the bare module beside another": (
        "import mlx.core\nimport mlx.nn\no = «c.o»\n",
        "mlx.core.array(c.o)",
    ),
    "the class itself": ("from mlx.core import array\no = «c.o»\n", "array(c.o)"),
    "an import in the function": (
        "def f(c):\n    import mlx.core as mx\n    return «c.o»\n",
        "mx.array(c.o)",
    ),
    "an import that may fail": (
        "try:\n    import mlx.core as mx\nexcept ImportError:\n    mx = None\no = «c.o»\n",
        "mx.array(c.o)",
    ),
    "a default is evaluated outside": (
        "import mlx.core as mx\ndef f(mx, o=«c.o»): pass\n",
        "mx.array(c.o)",
    ),
    "a name of the class body is seen in the class body": (
        "class A:\n    import mlx.core as mx\n    o = «c.o»\n",
        "mx.array(c.o)",
    ),
    "a name declared global": (
        "import mlx.core as mx\ndef f(c):\n    global mx\n    return «c.o»\n",
        "mx.array(c.o)",
    ),
}


@pytest.mark.parametrize(("before", "call"), NAMES.values(), ids=NAMES)
def test_an_import_that_is_there_is_used(before: str, call: str) -> None:
    outcome = edit(before, "snapshot")

    assert outcome.text == before.replace("«c.o»", call)


HIDDEN = {
    "a parameter hides it": "import mlx.core as mx\n\n\ndef f(mx, c):\n    return «c.o»\n",
    "a local hides it": "import mlx.core as mx\n\n\ndef f(c):\n    mx = 1\n    return «c.o»\n",
    "a loop variable hides it": (
        "import mlx.core as mx\n\n\ndef f(c):\n    for mx in c:\n        return «c.o»\n"
    ),
    "a comprehension hides it": "import mlx.core as mx\n\no = [«c.o» for mx in c]\n",
    "a lambda hides it": "import mlx.core as mx\n\no = lambda mx: «c.o»\n",
    "an outer function hides it": (
        "import mlx.core as mx\n\n\ndef f(mx):\n    def g(c):\n        return «c.o»\n"
    ),
    "a later import in the function hides it": (
        "import mlx.core as mx\n\n\ndef f(c):\n    o = «c.o»\n    import mlx.core as mx\n"
    ),
}


@pytest.mark.parametrize("before", HIDDEN.values(), ids=HIDDEN)
def test_a_hidden_name_is_not_used(before: str) -> None:
    outcome = edit(before, "snapshot")

    assert "«" not in outcome.text
    assert "mlx_core.array(c.o)" in outcome.text
    assert "import mlx.core as mlx_core\n" in outcome.text


ONE = Named("o", "array")
REST = Named("rest", "array", many=True)
# Before, after, and the targets that are copied.
AFTER = {
    "a statement": ("«o, p = f(c)»\n", "o, p = f(c)\no = mx.array(o)\n", [ONE]),
    "two copies": (
        "«o, p = f(c)»\n",
        "o, p = f(c)\no = mx.array(o)\np = mx.array(p)\n",
        [ONE, Named("p", "array")],
    ),
    "an attribute": (
        "«self.o, p = f(c)»\n",
        "self.o, p = f(c)\nself.o = mx.array(self.o)\n",
        [Named("self.o", "array")],
    ),
    "a starred target": (
        "«o, *rest = f(c)»\n",
        "o, *rest = f(c)\nrest = [mx.array(each) for each in rest]\n",
        [REST],
    ),
    "comments stay at the statement": (
        "# above\n«o, p = f(c)»  # behind\nuse(o)\n",
        "# above\no, p = f(c)  # behind\no = mx.array(o)\nuse(o)\n",
        [ONE],
    ),
    "a statement over several lines": (
        "«(\n    o,  # first\n    p,\n) = f(\n    c,\n)»\n",
        "(\n    o,  # first\n    p,\n) = f(\n    c,\n)\no = mx.array(o)\n",
        [ONE],
    ),
    "an indented statement": (
        "def g(c):\n\t«o, p = f(c)»\n\treturn o\n",
        "def g(c):\n\to, p = f(c)\n\to = mx.array(o)\n\treturn o\n",
        [ONE],
    ),
    "a suite on one line": (
        "if c: «o, p = f(c)»\n",
        "if c: o, p = f(c); o = mx.array(o)\n",
        [ONE],
    ),
    "between two statements": (
        "a = 1; «o, p = f(c)»; use(o)  # x\n",
        "a = 1; o, p = f(c); o = mx.array(o); use(o)  # x\n",
        [ONE],
    ),
    "behind the last statement": (
        "a = 1; «o, p = f(c)»\n",
        "a = 1; o, p = f(c); o = mx.array(o)\n",
        [ONE],
    ),
    "a semicolon at the end": (
        "«o, p = f(c)»;\nuse(o)\n",
        "o, p = f(c);\no = mx.array(o)\nuse(o)\n",
        [ONE],
    ),
    "a semicolon at the end of two": (
        "a = 1; «o, p = f(c)»;\n",
        "a = 1; o, p = f(c); o = mx.array(o);\n",
        [ONE],
    ),
    "a missing line end": ("«o, p = f(c)»", "o, p = f(c)\no = mx.array(o)", [ONE]),
    "line ends": (
        "«o, p = f(c)»\r\nuse(o)\r\n",
        "o, p = f(c)\r\no = mx.array(o)\r\nuse(o)\r\n",
        [ONE],
    ),
    "a loop": (
        "«for o, p in f(c)»:\n    use(o)\n",
        "for o, p in f(c):\n    o = mx.array(o)\n    use(o)\n",
        [ONE],
    ),
    "a loop with comments": (
        "«for o, p in f(c)»:  # each\n    # first\n    use(o)\nelse:\n    done()\n",
        "for o, p in f(c):  # each\n    o = mx.array(o)\n    # first\n    use(o)\n"
        "else:\n    done()\n",
        [ONE],
    ),
    "a loop on one line": (
        "«for o in f(c)»: use(o); use(c)\n",
        "for o in f(c): o = mx.array(o); use(o); use(c)\n",
        [ONE],
    ),
    "a context": (
        "«with f(c) as (o, p), g() as h»:\n    use(o)\n",
        "with f(c) as (o, p), g() as h:\n    o = mx.array(o)\n    use(o)\n",
        [ONE],
    ),
    "an asynchronous loop": (
        "async def g(c):\n    «async for o in f(c)»:\n        use(o)\n",
        "async def g(c):\n    async for o in f(c):\n        o = mx.array(o)\n        use(o)\n",
        [ONE],
    ),
    "a long name on a line that is full": (
        f"«o, p = {'f' * 78}(c)»\n",
        f"o, p = {'f' * 78}(c)\no = mx.array(o)\n",
        [ONE],
    ),
}


@pytest.mark.parametrize(("before", "after", "names"), AFTER.values(), ids=AFTER)
def test_copying_after_a_statement(before: str, after: str, names: list[Named]) -> None:
    head = MX.replace("\n", "\r\n") if "\r" in before else MX

    outcome = edit(head + before, "copy-after", names=names)

    assert (outcome.text, outcome.refused) == (head + after, [])


@pytest.mark.parametrize("form", ["keep-int", "keep-any"])
def test_a_copy_after_a_statement_keeps_numbers_and_none(
    form: Literal["keep-int", "keep-any"],
) -> None:
    """Not by `o + 0`: of `o = o + 0` a linter would make `o += 0`, which copies nothing."""
    outcome = edit(
        "«o, *rest = f(c)»\n", "copy-after", names=[Named("o", form), Named("rest", form, True)]
    )

    assert outcome.text == (
        "import copy\n\no, *rest = f(c)\no = copy.copy(o)\n"
        "rest = [copy.copy(each) for each in rest]\n"
    )


def test_a_name_that_hides_the_function_is_not_called() -> None:
    outcome = edit(MX + "def g(c, mx):\n    «o, p = f(c)»\n", "copy-after", names=[ONE])

    assert "    o = mlx_core.array(o)\n" in outcome.text


@pytest.mark.parametrize("statement", ["del o, p", "o += f(c)", "o: int = f(c)"])
def test_a_statement_that_unpacks_nothing_is_left(statement: str) -> None:
    outcome = edit(f"«{statement}»\n", "copy-after", names=[Named("o", "array")])

    assert outcome.refused == ["this statement takes nothing apart"]


def test_an_edit_in_a_suite_leaves_the_next_line_alone() -> None:
    """A line `x = x` goes where dropping an operation leaves it, and nowhere else."""
    before = "«for o in f(c)»:\n    use(o)\n"
    outcome = edit(
        MX + f"if c:\n    {before.replace(chr(10), chr(10) + '    ')}x = x\n",
        "copy-after",
        names=[ONE],
    )

    assert outcome.text.endswith("        use(o)\n    x = x\n")
