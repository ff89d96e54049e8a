"""Decorators of the program: what runs instead of the function that they are written above.

Only a decorator that gives back another function, or an instance that can be called, counts. One
that gives back what it was given, or that stands outside the program, leaves the function as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aliaslint.lower import ir
from aliaslint.program.types import ClassOf, FuncOf, Inst, Type

if TYPE_CHECKING:
    from aliaslint.program.kinds import Kinds

UNDECORATED = "@undecorated"  # the parameter of `Decoration.apply`; no name of a program


@dataclass(frozen=True, slots=True, eq=False)
class Decoration:
    """The decorators of one function that count.

    `apply` is a function that is given the undecorated one and gives back what its name means.
    """

    apply: ir.Function
    deciding: tuple[FuncOf | Inst, ...]  # decorators, and the functions that make them
    stand_ins: tuple[FuncOf | Inst, ...]  # what runs when the name is called
    binds_static: bool  # above `staticmethod`: what it gives back is bound like a method


class Decorations:
    """Answers for the functions of modules and classes; nested ones carry theirs as closures."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self._known: dict[str, Decoration | None] = {}

    def of(self, function: ir.Function) -> Decoration | None:
        if not function.applied:
            return None
        if function.key not in self._known:
            self._known[function.key] = None  # a decorator that is made with the function itself
            self._known[function.key] = self._find(function)
        return self._known[function.key]

    def _find(self, function: ir.Function) -> Decoration | None:
        body = self.kinds.module_function(self.kinds.modules.by_id[function.module])
        made: ir.Expr = ir.Name(function.at, UNDECORATED, "local")
        deciding: list[FuncOf | Inst] = []
        stand_ins: list[FuncOf | Inst] = []
        binds_static = False
        above: list[ir.Expr] = []
        for text, written in zip(function.decorators, function.applied, strict=True):
            if decorator_isolates(text):
                break  # whatever is below runs isolated
            decorator = self._in_class_body(written, function.class_key)
            binds_static = binds_static or (text == "staticmethod" and bool(above))
            found = list(self.replacing(decorator, body, None))
            if found:
                above.append(decorator)
                stand_ins += found
                deciding += self._makers(decorator, body)
        if not above:
            return None
        for decorator in reversed(above):
            made = ir.Call(decorator.at, decorator, (ir.Arg("", made),))
        apply = ir.Function(
            f"{function.key}@",
            function.name,
            function.module,
            function.at,
            (UNDECORATED,),
            ("pos",),
        )
        apply.body = ir.Return(function.at, made)
        return Decoration(apply, tuple(deciding), tuple(stand_ins), binds_static)

    def _in_class_body(self, decorator: ir.Expr, class_key: str | None) -> ir.Expr:
        """Return the decorator with a name of the class body as the member that it is."""
        match decorator:
            case ir.Call(at=at, fn=fn, args=args):
                return ir.Call(at, self._in_class_body(fn, class_key), args)
            case ir.Name(at=at, name=name) if class_key is not None:
                info = self.kinds.classes.get(class_key)
                own = info is not None and name in info.methods
                return ir.Attr(at, ir.Name(at, class_key, "class"), name) if own else decorator
            case _:
                return decorator

    def replacing(
        self, decorator: ir.Expr, function: ir.Function, cls: str | None
    ) -> Iterator[FuncOf | Inst]:
        """Yield what the decorator, an expression of `function`, gives back instead."""
        for atom in self._given_back(self.kinds.expression(decorator, function, cls)):
            match atom:
                case FuncOf():
                    yield atom
                case Inst(key=key) if (info := self.kinds.classes.get(key)) is not None:
                    if info.find("__call__") is not None:
                        yield atom
                case _:
                    pass

    def _given_back(self, decorator: Type) -> Type:
        result: Type = frozenset()
        for atom in decorator:
            match atom:
                case FuncOf(key=key):
                    function = self.kinds.function(key)
                    if function is not None:
                        result |= self.kinds.returned(function, function.class_key)
                case Inst(key=key):
                    info = self.kinds.classes.get(key)
                    method = info.find("__call__") if info is not None else None
                    if method is not None:
                        result |= self.kinds.returned(self.kinds.classes.method(method), key)
                case ClassOf(key=key):
                    result |= frozenset({Inst(key)})
                case _:
                    pass
        return result

    def _makers(self, decorator: ir.Expr, function: ir.Function) -> Iterator[FuncOf | Inst]:
        while True:
            for atom in self.kinds.expression(decorator, function, None):
                if isinstance(atom, (FuncOf, Inst)):
                    yield atom
            if not isinstance(decorator, ir.Call):
                return
            decorator = decorator.fn


def decorator_isolates(text: str) -> bool:
    return "mx.compile" in text or "mx.checkpoint" in text
