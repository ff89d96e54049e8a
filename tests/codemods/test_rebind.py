"""`x op= e` becomes `x = x op e`, and nothing else changes."""

from __future__ import annotations

import sys

import pytest
from marked import edit

OPERATORS = ["+", "-", "*", "@", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"]

# What the case shows: before (« » around the statement), after.
CASES = {
    "an attribute": ("«self.offset += n»\n", "self.offset = self.offset + n\n"),
    "a local": ("«total -= n»\n", "total = total - n\n"),
    "a constant subscript": ("«lengths[0] += n»\n", "lengths[0] = lengths[0] + n\n"),
    "a string key": ("«d['k'] += b»\n", "d['k'] = d['k'] + b\n"),
    "an attribute of an element": (
        "«cache[i].offset += n»\n",
        "cache[i].offset = cache[i].offset + n\n",
    ),
    "an attribute of an attribute": (
        "«self.cache.offset -= 1»\n",
        "self.cache.offset = self.cache.offset - 1\n",
    ),
    "a slice": ("«x[a:b] += n»\n", "x[a:b] = x[a:b] + n\n"),
    "a difference keeps its parentheses": (
        "«self.offset -= a - b»\n",
        "self.offset = self.offset - (a - b)\n",
    ),
    "a product under a sum needs none": ("«x += a * b»\n", "x = x + a * b\n"),
    "a sum under a product needs some": ("«x *= a + b»\n", "x = x * (a + b)\n"),
    "operators of one level group to the left": ("«x *= a // b»\n", "x = x * (a // b)\n"),
    "a matrix product under a quotient": ("«x /= a @ b»\n", "x = x / (a @ b)\n"),
    "a shift under a shift": ("«x <<= a >> b»\n", "x = x << (a >> b)\n"),
    "a sum under a shift needs none": ("«x >>= a + b»\n", "x = x >> a + b\n"),
    "a conjunction of bits under an exclusive or": ("«x ^= a & b»\n", "x = x ^ a & b\n"),
    "a disjunction of bits under a conjunction": ("«x &= a | b»\n", "x = x & (a | b)\n"),
    "a power under a power groups to the right": ("«x **= a**b»\n", "x = x ** a**b\n"),
    "a power of simple operands is hugged": ("«x **= 2»\n", "x = x**2\n"),
    "a power of a subscript is not hugged": ("«x[i] **= 2»\n", "x[i] = x[i] ** 2\n"),
    "a power of a dotted name is hugged": ("«self.x **= a.b»\n", "self.x = self.x**a.b\n"),
    "a negative exponent": ("«x **= -1»\n", "x = x**-1\n"),
    "a product as exponent": ("«x **= a * b»\n", "x = x ** (a * b)\n"),
    "a negation as exponent": ("«x **= not a»\n", "x = x ** (not a)\n"),
    "a sign needs none": ("«x -= -a»\n", "x = x - -a\n"),
    "an inverted value": ("«x &= ~a»\n", "x = x & ~a\n"),
    "parentheses that are there are not doubled": ("«x -= (a - b)»\n", "x = x - (a - b)\n"),
    "a comparison": ("«x += a < b»\n", "x = x + (a < b)\n"),
    "a chain of comparisons": ("«x += 0 <= a < b»\n", "x = x + (0 <= a < b)\n"),
    "a membership test": ("«x += a in b»\n", "x = x + (a in b)\n"),
    "a negation": ("«x += not a»\n", "x = x + (not a)\n"),
    "a conjunction": ("«x += a and b»\n", "x = x + (a and b)\n"),
    "a disjunction": ("«x |= a or b»\n", "x = x | (a or b)\n"),
    "a conditional": ("«x += a if c else b»\n", "x = x + (a if c else b)\n"),
    "a lambda": ("«x += lambda: 1»\n", "x = x + (lambda: 1)\n"),
    "a walrus": ("«x += (y := f())»\n", "x = x + (y := f())\n"),
    "an await": (
        "async def f(x):\n    «x += await g()»\n",
        "async def f(x):\n    x = x + await g()\n",
    ),
    "an await as exponent": (
        "async def f(x):\n    «x **= await g()»\n",
        "async def f(x):\n    x = x ** await g()\n",
    ),
    "a yield": ("def f(x):\n    «x += yield»\n", "def f(x):\n    x = x + (yield)\n"),
    "a yield of a value": (
        "def f(x):\n    «x += yield x»\n",
        "def f(x):\n    x = x + (yield x)\n",
    ),
    "a yield from": (
        "def f(x):\n    «x -= yield from g»\n",
        "def f(x):\n    x = x - (yield from g)\n",
    ),
    "a tuple": ("«x += 1, 2»\n", "x = x + (1, 2)\n"),
    "a starred tuple": ("«x += *a, b»\n", "x = x + (*a, b)\n"),
    "a generator in a call": ("«x += sum(i for i in a)»\n", "x = x + sum(i for i in a)\n"),
    "a generator of its own": ("«x += (i for i in a)»\n", "x = x + (i for i in a)\n"),
    "a list": ("«x += [a]»\n", "x = x + [a]\n"),
    "a formatted string": ('«x += f"{a}"»\n', 'x = x + f"{a}"\n'),
    "adjacent strings": ('«x += "a" "b"»\n', 'x = x + "a" "b"\n'),
    "a call": ("«self.offset += f(a, b)»\n", "self.offset = self.offset + f(a, b)\n"),
    "a trailing comment": (
        "«self.offset += n»  # one token\n",
        "self.offset = self.offset + n  # one token\n",
    ),
    "a comment above": (
        "# Advance.\n«self.offset += n»\n",
        "# Advance.\nself.offset = self.offset + n\n",
    ),
    "comments in the right-hand side": (
        "«x -= (  # why\n    a  # one\n    - b\n)»\n",
        "x = x - (  # why\n    a  # one\n    - b\n)\n",
    ),
    "a call over several lines": (
        "«x += f(\n    a,\n    b,\n)»\n",
        "x = x + f(\n    a,\n    b,\n)\n",
    ),
    "a continuation after the operator": (
        "«self.offset += \\\n    n»\n",
        "self.offset = \\\n    self.offset + n\n",
    ),
    "a continuation before the operator": (
        "«self.offset \\\n    += n»\n",
        "self.offset \\\n    = self.offset + n\n",
    ),
    "a continuation in the right-hand side": (
        "«x -= a \\\n    - b»\n",
        "x = x - (a \\\n    - b)\n",
    ),
    "unusual spaces around the operator": ("«x+=n»\n", "x=x + n\n"),
    "several statements on a line": (
        "«a += 1»; b = 3; «c -= 2»\n",
        "a = a + 1; b = 3; c = c - 2\n",
    ),
    "a final semicolon": ("«a += 1»;\n", "a = a + 1;\n"),
    "a suite on one line": (
        "if x: «self.offset += 1»\n",
        "if x: self.offset = self.offset + 1\n",
    ),
    "a loop's else on one line": (
        "for i in a: pass\nelse: «x += 1»\n",
        "for i in a: pass\nelse: x = x + 1\n",
    ),
    "a parenthesised target": ("«(x) += 1»\n", "(x) = (x) + 1\n"),
    "a target over several lines": (
        "«cache[\n    i  # the layer\n].offset += 1»\n",
        "cache[\n    i  # the layer\n].offset = cache[i].offset + 1\n",
    ),
    "a call in the owner is evaluated once": (
        "def f(self):\n    «self.get().offset += n»\n",
        "def f(self):\n    owner = self.get()\n    owner.offset = owner.offset + n\n",
    ),
    "a call in the index is evaluated once": (
        "def f(lengths):\n    «lengths[i()] += n»\n",
        "def f(lengths):\n    index = i()\n    lengths[index] = lengths[index] + n\n",
    ),
    "owner and index in the order of evaluation": (
        "«self.get()[i()] += n»\n",
        "owner = self.get()\nindex = i()\nowner[index] = owner[index] + n\n",
    ),
    "an attribute that the index may replace": (
        "«self.rows[self.pick()] += n»\n",
        "owner = self.rows\nindex = self.pick()\nowner[index] = owner[index] + n\n",
    ),
    "calls in a slice": (
        "def h(x):\n    «x[f() : g()] += n»\n",
        "def h(x):\n    start = f()\n    stop = g()\n    x[start : stop] = x[start : stop] + n\n",
    ),
    "an awaited owner": (
        "async def f():\n    «(await g()).offset += 1»\n",
        "async def f():\n    owner = await g()\n    owner.offset = owner.offset + 1\n",
    ),
    "an owner that may change while the value is awaited": (
        "async def f(self):\n    «self.cache.offset += await g()»\n",
        "async def f(self):\n    owner = self.cache\n    owner.offset = owner.offset + await g()\n",
    ),
    "an index that the value assigns": (
        "«cache[i].offset += (i := i + 1)»\n",
        "owner = cache[i]\nowner.offset = owner.offset + (i := i + 1)\n",
    ),
    "a new variable does not take a name that is in use": (
        "def f(owner):\n    «owner.get().offset += 1»\n",
        "def f(owner):\n    owner_2 = owner.get()\n    owner_2.offset = owner_2.offset + 1\n",
    ),
    "new variables stand below the comment above": (
        "def f():\n    # Advance.\n    «g().offset += 1»  # one\n    return\n",
        "def f():\n    # Advance.\n    owner = g()\n"
        "    owner.offset = owner.offset + 1  # one\n    return\n",
    ),
    "new variables in a suite on one line stay there": (
        "if x: «g().offset += 1»\n",
        "if x: owner = g(); owner.offset = owner.offset + 1\n",
    ),
    "new variables among statements of one line stay there": (
        "a = 1; «g().offset += 1»; b = 2\n",
        "a = 1; owner = g(); owner.offset = owner.offset + 1; b = 2\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_rebinding(before: str, after: str) -> None:
    outcome = edit(before, "rebind")

    assert outcome.text == after
    assert outcome.refused == []


# Without a word of the analysis about it, what is written to is evaluated once in all these.
ONCE = {
    "an attribute may be a property": (
        "def f(self):\n    «self.cache.offset += n»\n",
        "def f(self):\n    owner = self.cache\n    owner.offset = owner.offset + n\n",
    ),
    "an element may be computed": (
        "def f(cs):\n    «cs[0].offset += n»\n",
        "def f(cs):\n    owner = cs[0]\n    owner.offset = owner.offset + n\n",
    ),
    "a call may rebind a global": (
        "def f():\n    «x.offset += g()»\n",
        "def f():\n    owner = x\n    owner.offset = owner.offset + g()\n",
    ),
    "and so may the property behind an attribute": (
        "def f():\n    «x.offset += y.z»\n",
        "def f():\n    owner = x\n    owner.offset = owner.offset + y.z\n",
    ),
    "a call may rebind what a nested function declares": (
        "def f(x):\n    def g():\n        nonlocal x\n    «x.offset += g()»\n",
        "def f(x):\n    def g():\n        nonlocal x\n"
        "    owner = x\n    owner.offset = owner.offset + g()\n",
    ),
    "a variable of the function around belongs to that one": (
        "def f(x):\n    def g():\n        «x.offset += h()»\n",
        "def f(x):\n    def g():\n        owner = x\n        owner.offset = owner.offset + h()\n",
    ),
    "a call may rebind the index": (
        "def f(x):\n    «x[i] += g()»\n",
        "def f(x):\n    index = i\n    x[index] = x[index] + g()\n",
    ),
    "a call in the index may rebind the owner": (
        "«x[i()] += n»\n",
        "owner = x\nindex = i()\nowner[index] = owner[index] + n\n",
    ),
    "an index that assigns the owner": (
        "def f(x):\n    «x[(x := y)] += n»\n",
        "def f(x):\n    owner = x\n    index = (x := y)\n    owner[index] = owner[index] + n\n",
    ),
}
# Nor is a word needed for these.
PLAIN = {
    "a parameter, whatever is called": (
        "def f(self):\n    «self.offset += self.g(lambda: 0)»\n",
        "def f(self):\n    self.offset = self.offset + self.g(lambda: 0)\n",
    ),
    "a local": (
        "def f():\n    for c in cs:\n        «c.offset -= g()»\n",
        "def f():\n    for c in cs:\n        c.offset = c.offset - g()\n",
    ),
    "a global, with nothing that runs code": ("«x.offset += n»\n", "x.offset = x.offset + n\n"),
    "a constant index": (
        "def f(x):\n    «x[-1] += g()»\n",
        "def f(x):\n    x[-1] = x[-1] + g()\n",
    ),
    "a name alone": ("«x += g()»\n", "x = x + g()\n"),
}


@pytest.mark.parametrize(("before", "after"), (ONCE | PLAIN).values(), ids=ONCE | PLAIN)
def test_rebinding_without_a_word_of_the_analysis(before: str, after: str) -> None:
    assert edit(before, "rebind", repeatable=False).text == after


@pytest.mark.parametrize("operator", OPERATORS)
def test_all_operators(operator: str) -> None:
    assert edit(f"«x[i] {operator}= n»\n", "rebind").text == f"x[i] = x[i] {operator} n\n"


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("class A:\n    «f().x += 1»\n", "a class body has no variables"),
        ("x[«i»] = 1\n", "there is no such code at this place"),
        ("«x = 1»\n", "this is no augmented assignment"),
        pytest.param(
            "«x[*f()] += 1»\n",
            "its index cannot be evaluated once",
            marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="new in Python 3.11"),
        ),
    ],
    ids=["temporaries in a class body", "no statement there", "an assignment", "a starred index"],
)
def test_what_cannot_be_rebound_is_left_alone(before: str, reason: str) -> None:
    outcome = edit(before, "rebind")

    assert outcome.text == before.replace("«", "").replace("»", "")
    assert len(outcome.refused) == 1
    assert reason in outcome.refused[0]


STORE_BACK = {
    "an attribute of self": (
        "def f(self):\n    mine = self.offset\n    «mine += n»  # advance\n",
        "self.offset",
        "def f(self):\n    mine = self.offset\n    self.offset = mine = mine + n  # advance\n",
    ),
    "an element of self": (
        "«mine -= a - b»\n",
        "self.rows[0]",
        "self.rows[0] = mine = mine - (a - b)\n",
    ),
}


@pytest.mark.parametrize(("before", "owner", "after"), STORE_BACK.values(), ids=STORE_BACK)
def test_storing_back(before: str, owner: str, after: str) -> None:
    assert edit(before, "store-back", owner=owner).text == after


@pytest.mark.parametrize("owner", ["", "self.get().offset", "self offset", "f(x)"])
def test_storing_back_needs_a_plain_owner(owner: str) -> None:
    outcome = edit("«mine += n»\n", "store-back", owner=owner)

    assert outcome.text == "mine += n\n"
    assert len(outcome.refused) == 1


MX = "import mlx.core as mx\n\n"
COPY_FIRST = {
    "an item assignment": (
        "def f(self):\n    # Reset.\n    «self.offset[i] = 0»  # row\n",
        "",
        "def f(self):\n    # Reset.\n    self.offset = mx.array(self.offset)\n"
        "    self.offset[i] = 0  # row\n",
    ),
    "an augmented item assignment": (
        "«self.offset[i] += 1»\n",
        "",
        "self.offset = mx.array(self.offset)\nself.offset[i] += 1\n",
    ),
    "a local": ("«o[...] = v»\n", "", "o = mx.array(o)\no[...] = v\n"),
    "a local that stands for an attribute": (
        "«o[...] = v»\n",
        "self.offset",
        "self.offset = o = mx.array(o)\no[...] = v\n",
    ),
    "a suite on one line": (
        "if x: «self.offset[i] = 0»\n",
        "",
        "if x: self.offset = mx.array(self.offset); self.offset[i] = 0\n",
    ),
    "one of several targets": (
        "«a[0], b = 1, 2»\n",
        "",
        "a = mx.array(a)\na[0], b = 1, 2\n",
    ),
    "the named one of several arrays": (
        "«a[0], [b['k'][1], *c] = v»\n",
        'b["k"]',
        "b['k'] = mx.array(b['k'])\na[0], [b['k'][1], *c] = v\n",
    ),
    "a chain of targets": (
        "«a[0] = b = 1»\n",
        "a",
        "a = mx.array(a)\na[0] = b = 1\n",
    ),
    "statements on one line": (
        "a = 1; «o[0] = 0»; b = 2\n",
        "",
        "a = 1; o = mx.array(o); o[0] = 0; b = 2\n",
    ),
}


@pytest.mark.parametrize(("before", "owner", "after"), COPY_FIRST.values(), ids=COPY_FIRST)
def test_copying_first(before: str, owner: str, after: str) -> None:
    assert edit(MX + before, "copy-first", owner=owner).text == MX + after


@pytest.mark.parametrize("before", ["«self.get()[i] = 0»\n", "«a[0], b[0] = v»\n", "«x = 1»\n"])
def test_what_cannot_be_copied_first_is_left_alone(before: str) -> None:
    outcome = edit(MX + before, "copy-first")

    assert outcome.text == MX + before.replace("«", "").replace("»", "")
    assert len(outcome.refused) == 1
