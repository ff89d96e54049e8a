"""The small alias language that function bodies are lowered to.

Only what matters for handles survives: bindings, attribute and element access, in-place
updates, calls, reads and control flow. The tree is structured (branches and loops stay
nested), so that loops can be unrolled and their positions focused where precision needs it.

Every node carries `at`, the raw `ast` position (line, column in UTF-8 bytes, end line, end
column); `source.spans` turns it into a `Span` of characters when something is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field

At = tuple[int, int, int, int]
NOWHERE: At = (0, 0, 0, 0)


@dataclass(slots=True, eq=False)
class Expr:
    at: At


@dataclass(slots=True, eq=False)
class Const(Expr):
    """A literal; `value` is kept for small integers, strings, booleans, None and `...`."""

    value: object


@dataclass(slots=True, eq=False)
class Name(Expr):
    """A variable. `scope` is "local", "cell" (lives in a frame object) or "global"."""

    name: str
    scope: str
    depth: int = 0  # for cells: how many function frames outwards


@dataclass(slots=True, eq=False)
class Attr(Expr):
    obj: Expr
    name: str


@dataclass(slots=True, eq=False)
class Item(Expr):
    """`obj[index]`; `index` is None for slices and tuples, which make a new handle."""

    obj: Expr
    index: Expr | None
    operands: tuple[Expr, ...] = ()
    plain_slice: bool = False  # `o[a:b]`: on a list, elements are kept
    bounds: tuple[int | None, ...] = ()  # `[1:]` gives (1, None); of slices by literals only


@dataclass(slots=True, eq=False)
class Fresh(Expr):
    """A new value made by reading `operands` (arithmetic, comparison, formatting).

    `how` is "arith" (an array if an operand is one), "matmul", "bool", "str" or "meta"
    (`is`: reads nothing). `ops` names the operators of a comparison, as `ast` does.
    """

    operands: tuple[Expr, ...]
    how: str
    ops: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Arg:
    """An argument: `name` is a keyword, "*" or "**" for unpacking, "" for a position."""

    name: str
    value: Expr


@dataclass(slots=True, eq=False)
class Call(Expr):
    fn: Expr
    args: tuple[Arg, ...]


@dataclass(slots=True, eq=False)
class Build(Expr):
    """A tuple, list, set or dict display. Dict: `keys[i]` is None for `**items[i]`."""

    kind: str
    items: tuple[Expr, ...]
    keys: tuple[Expr | None, ...] = ()


@dataclass(slots=True, eq=False)
class Star(Expr):
    value: Expr


@dataclass(slots=True, eq=False)
class Choice(Expr):
    """`then if test else other`, and with `test` None a value that may be any of `options`."""

    test: Expr
    then: Expr
    other: Expr


@dataclass(slots=True, eq=False)
class BoolOp(Expr):
    op: str  # "and" or "or"
    values: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Not(Expr):
    value: Expr


@dataclass(slots=True, eq=False)
class Walrus(Expr):
    target: Target
    value: Expr


@dataclass(slots=True, eq=False)
class Closure(Expr):
    """A function object: lambda, nested def or generator expression, with its defaults."""

    function: Function
    defaults: tuple[tuple[str, Expr], ...] = ()
    decorators: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False)
class Comprehension(Expr):
    """List, set or dict comprehension: `body` runs the loops and evaluates `Emit` nodes."""

    kind: str
    body: Stmt


@dataclass(slots=True, eq=False)
class Suspend(Expr):
    """`yield value`, `yield from value` (how "from") or `await value` (how "await")."""

    how: str
    value: Expr | None


@dataclass(slots=True, eq=False)
class Opaque(Expr):
    """Python that has no lowering of its own: an unresolved call on everything mentioned."""

    operands: tuple[Expr, ...]


# --- targets


@dataclass(slots=True, eq=False)
class Target:
    at: At


@dataclass(slots=True, eq=False)
class ToName(Target):
    name: str
    scope: str
    depth: int = 0


@dataclass(slots=True, eq=False)
class ToAttr(Target):
    obj: Expr
    name: str


@dataclass(slots=True, eq=False)
class ToItem(Target):
    """`obj[index] = …`; `index` None and `operands` as in `Item`."""

    obj: Expr
    index: Expr | None
    operands: tuple[Expr, ...] = ()
    plain_slice: bool = False


@dataclass(slots=True, eq=False)
class Unpack(Target):
    targets: tuple[Target, ...]
    star: int = -1  # index of the starred target, or -1


# --- statements


@dataclass(slots=True, eq=False)
class Stmt:
    at: At


@dataclass(slots=True, eq=False)
class Block(Stmt):
    body: tuple[Stmt, ...]


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    targets: tuple[Target, ...]
    value: Expr
    annotation: Expr | None = None


@dataclass(slots=True, eq=False)
class Aug(Stmt):
    """`target op= value`: in place where the target holds an array, a rebinding elsewhere."""

    target: Target
    op: str
    value: Expr


@dataclass(slots=True, eq=False)
class Do(Stmt):
    value: Expr


@dataclass(slots=True, eq=False)
class Emit(Stmt):
    """Adds an element (`key` only in a dict) to the comprehension being built."""

    value: Expr
    key: Expr | None = None


@dataclass(slots=True, eq=False)
class Return(Stmt):
    value: Expr | None


@dataclass(slots=True, eq=False)
class Raise(Stmt):
    values: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Break(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Continue(Stmt):
    pass


@dataclass(slots=True, eq=False)
class If(Stmt):
    test: Expr
    then: Stmt
    other: Stmt | None


@dataclass(slots=True, eq=False)
class While(Stmt):
    test: Expr
    body: Stmt
    orelse: Stmt | None


@dataclass(slots=True, eq=False)
class For(Stmt):
    target: Target
    iterable: Expr
    body: Stmt
    orelse: Stmt | None
    conditional_emit: bool = False  # a comprehension with a filter: positions do not line up


@dataclass(slots=True, eq=False)
class Try(Stmt):
    body: Stmt
    handlers: tuple[tuple[Target | None, Stmt], ...]
    orelse: Stmt | None
    final: Stmt | None


@dataclass(slots=True, eq=False)
class With(Stmt):
    context: Expr
    target: Target | None
    body: Stmt


@dataclass(slots=True, eq=False)
class Delete(Stmt):
    target: Target


@dataclass(slots=True, eq=False)
class Case(Stmt):
    """One arm of a match: `binds` take the subject or parts of it; may or may not be taken."""

    binds: tuple[tuple[Target, tuple[object, ...]], ...]
    guard: Expr | None
    body: Stmt
    reads: bool = False
    irrefutable: bool = False
    classes: tuple[Expr, ...] = ()  # the subject is an instance of one of them
    whole: bool = False  # and where the arm is not taken, of none


@dataclass(slots=True, eq=False)
class Match(Stmt):
    subject: Expr
    cases: tuple[Case, ...]


@dataclass(slots=True, eq=False)
class ClassDef(Stmt):
    name: ToName
    key: str
    body: Stmt
    decorators: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False)
class Function:
    """A function, method, lambda or generator expression, with its lowered body.

    `params` are in order; `kinds` give "pos", "kw", "*" or "**" for each. `cells` are the
    names of this function that nested functions use: they live in its frame object.
    """

    key: str
    name: str
    module: str
    at: At
    params: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    annotations: dict[str, Expr] = field(default_factory=dict)
    returns_annotation: Expr | None = None
    body: Stmt = field(default_factory=lambda: Block(NOWHERE, ()))
    cells: frozenset[str] = frozenset()
    uses_cells: bool = False
    generator: bool = False
    coroutine: bool = False
    class_key: str | None = None
    decorators: tuple[str, ...] = ()
    applied: tuple[Expr, ...] = ()  # the decorators again, if it is not nested in a function
    defaults: tuple[tuple[str, Expr], ...] = ()
    parent: Function | None = None
    locals: frozenset[str] = frozenset()
    inner: tuple[Function, ...] | None = None  # `scan.closures`, once they have been looked for
