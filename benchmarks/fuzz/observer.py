"""The second oracle: inside one run, each binding knows what hit its handle behind its back.

No values are needed. The program is rewritten so that whatever is bound (assigned, passed,
returned, put in a container) is a new view on the same handle. An update through one view makes
every other view of the handle stale; a view made of a stale one is stale. It shares nothing with
the first oracle but the coins.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterable
from typing import Any, ClassVar

from benchmarks.fuzz.oracle import Coins, Endless, load, without_imports
from benchmarks.fuzz.tree import Program, as_written


class View:
    """One binding of a handle. `log` is the handle: the views through which it was updated."""

    __slots__ = ("log", "since", "was_stale")
    shape = (2,)
    stale_lines: ClassVar[set[int]] = set()

    def __init__(self, value: Any = None) -> None:
        if isinstance(value, View):
            value.read(sys._getframe(1).f_lineno)
        self.log: list[View] = []
        self.since = 0
        self.was_stale = False

    def bound_again(self) -> View:
        new = View()
        new.log, new.since, new.was_stale = self.log, len(self.log), self.stale
        return new

    @property
    def stale(self) -> bool:
        return self.was_stale or any(view is not self for view in self.log[self.since :])

    def read(self, line: int) -> None:
        if self.stale:
            View.stale_lines.add(line)

    def _fresh(self, *others: Any) -> View:
        line = sys._getframe(2).f_lineno
        for view in (self, *others):
            if isinstance(view, View):
                view.read(line)
        return View()

    def _updated(self, other: Any) -> View:
        if isinstance(other, View):
            other.read(sys._getframe(2).f_lineno)
        self.log.append(self)
        return self

    def __add__(self, other: Any) -> View:
        return self._fresh(other)

    def __sub__(self, other: Any) -> View:
        return self._fresh(other)

    def __radd__(self, other: Any) -> View:
        return self._fresh()

    def __rsub__(self, other: Any) -> View:
        return self._fresh()

    def __neg__(self) -> View:
        return self._fresh()

    def __getitem__(self, index: Any) -> View:
        return self._fresh()

    def __iadd__(self, other: Any) -> View:
        return self._updated(other)

    def __isub__(self, other: Any) -> View:
        return self._updated(other)

    def __setitem__(self, index: Any, item: Any) -> None:
        self._updated(item)


def bind(value: Any) -> Any:
    """Return what a new binding of `value` holds."""
    return value.bound_again() if isinstance(value, View) else value


class Copies:
    """Stands for the module `copy`: an object that is copied binds its members anew."""

    @staticmethod
    def copy(value: Any) -> Any:
        if isinstance(value, View):
            value.read(sys._getframe(1).f_lineno)
            return View()
        new = object.__new__(type(value))
        vars(new).update({name: bind(member) for name, member in vars(value).items()})
        return new

    deepcopy = copy


class Rebinding(ast.NodeTransformer):
    """Wraps in `bind` each expression whose value is bound to something."""

    def wrap(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Tuple | ast.Starred):
            return node  # Its elements are wrapped.
        call = ast.Call(ast.Name("bind", ast.Load()), [node], [])
        return ast.copy_location(call, node)

    def visit_value(self, node: Any) -> Any:
        self.generic_visit(node)
        if node.value is not None:
            node.value = self.wrap(node.value)
        return node

    visit_AnnAssign = visit_NamedExpr = visit_Return = visit_value

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.Assign]:
        """Write `a = b = e` as `a = e` and `b = a`: each name is a binding of its own."""
        one: ast.Assign = self.visit_value(node)
        first, more = one.targets[0], one.targets[1:]
        if not more or not isinstance(first, ast.Name):
            return one
        again = self.wrap(ast.copy_location(ast.Name(first.id, ast.Load()), first))
        one.targets = [first]
        return [one, *(ast.copy_location(ast.Assign([t], again), one) for t in more)]

    def visit_elements(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.elts = [self.wrap(element) for element in node.elts]
        return node

    visit_Tuple = visit_List = visit_elements

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        self.generic_visit(node)
        node.values = [self.wrap(value) for value in node.values]
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.ListComp:
        self.generic_visit(node)
        node.elt = self.wrap(node.elt)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        node.args = [self.wrap(argument) for argument in node.args]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.BinOp:
        self.generic_visit(node)
        node.left = self.wrap(node.left)
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        self.generic_visit(node)
        node.defaults = [self.wrap(default) for default in node.defaults]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        self.generic_visit(node)
        node.body = self.wrap(node.body)
        return node

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        names = [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]
        for name in names:
            call = ast.Call(ast.Name("bind", ast.Load()), [ast.Name(name, ast.Load())], [])
            again = ast.Assign([ast.Name(name, ast.Store())], call)
            node.body.insert(0, ast.copy_location(again, node))
        return node


def _list(values: Iterable[Any]) -> list[Any]:
    return [bind(value) for value in values]


def _use(*values: Any) -> None:
    for value in values:
        if isinstance(value, View):
            value.read(sys._getframe(1).f_lineno)


def observed(program: Program, runs: int, seed: str = "0") -> set[int]:
    """Return the lines that read a changed handle in some of the runs."""
    tree = Rebinding().visit(ast.parse(without_imports(as_written(program))))
    code = compile(ast.fix_missing_locations(tree), "<observed>", "exec")
    View.stale_lines = set()
    for number in range(runs):
        coins = Coins(f"{seed}/{number}")
        mlx = type("Mlx", (), {"array": View, "eval": staticmethod(lambda *_: None)})
        instead = {"bind": bind, "mx": mlx, "use": _use, "copy": Copies, "list": _list}
        names = load(code, coins, instead)
        with contextlib.suppress(ValueError, IndexError, Endless):
            names["main"]()
    return View.stale_lines
