"""From what was seen on a line to what is said of it: mentions, classes, calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from aliaslint.explain.model import (
    Call,
    Callee,
    Change,
    InClass,
    Kind,
    Mention,
    Place,
    Resolution,
    Update,
)
from aliaslint.explain.recorder import Recorder, Seen, SeenCall, classes_in
from aliaslint.flow.context import Analysis
from aliaslint.flow.protocol import protocol_classes
from aliaslint.flow.values import Mark, Where
from aliaslint.lower import ir
from aliaslint.lower.walk import expressions, statements
from aliaslint.program import library
from aliaslint.program.classes import ClassInfo
from aliaslint.program.modules import Module
from aliaslint.program.types import (
    Atom,
    ClassOf,
    Ext,
    ExtInst,
    FuncOf,
    GenOf,
    Inst,
    Map,
    Mod,
    PartialOf,
    Seq,
    Tup,
    known_atoms,
    ordered,
)
from aliaslint.rules.evidence import Evidence, characters

NAMES = (Ext, Mod, FuncOf, ClassOf)
PLAIN = {"none": "none", "str": "text", "other": "other", "array": "array", "unknown": "unknown"}
CONSTRUCTORS = frozenset({"__init__", "__new__"})


class Facts:
    """Turns what a recorder saw into data, with places in source text."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.analysis: Analysis = recorder.analysis
        self.module: Module = self.analysis.modules.by_id[recorder.module]
        self.text = Evidence(self.analysis, frozenset(), frozenset())

    def place(self, where: Where) -> Place:
        return Place(self.text.path(where), where.at[0], self.text.text(where))

    def column(self, at: ir.At) -> int:
        return characters(self.module.lines, at[0], at[1]) + 1

    # --- mentions

    def mentions(self) -> tuple[Mention, ...]:
        seen = [s for s in self.recorder.mentions.values() if s.bound or not is_name_only(s)]
        seen.sort(key=lambda s: (s.bound, s.at[0], s.at[1], len(s.text)))
        return tuple(self.mention(s) for s in seen)

    def mention(self, seen: Seen) -> Mention:
        classes, guessed = self.in_classes(seen)
        marks = sorted(seen.stale.values(), key=lambda m: self.text.order(m.site.where))
        return Mention(
            text=seen.text,
            column=self.column(seen.at),
            bound=seen.bound,
            kinds=tuple(self.kinds(seen.atoms, seen.constants)),
            same_as=tuple(sorted(seen.same_as, key=lambda text: (len(text), text))),
            made=self.places(seen.made),
            captured=self.places(seen.captured),
            parameter=seen.parameter,
            classes=classes,
            guessed=guessed,
            stale=tuple(self.change(mark) for mark in marks),
        )

    def places(self, wheres: Iterable[Where]) -> tuple[Place, ...]:
        return tuple(self.place(where) for where in sorted(wheres, key=self.text.order))

    def change(self, mark: Mark) -> Change:
        certain = mark.site.via != "unresolved" and not mark.collapsed
        through = tuple(self.place(where) for where in mark.chain)
        return Change(self.place(mark.site.where), through, certain)

    # --- kinds

    def kinds(self, atoms: Iterable[Atom], constants: Iterable[str] = ()) -> Iterator[Kind]:
        found = sorted(atoms, key=lambda atom: atom == "unknown")
        if not found:
            yield Kind("unknown")
        exact = set(constants)
        for atom in found:
            match atom:
                case "scalar":
                    yield Kind(exact.pop() if exact in ({"int"}, {"bool"}) else "number")
                case str(name):
                    yield Kind(PLAIN.get(name, "other"))
                case Inst(key=key):
                    yield self.class_kind("object", key)
                case ClassOf(key=key):
                    yield self.class_kind("class", key)
                case ExtInst(dotted=dotted):
                    yield Kind("object", dotted)
                case Seq(kind=kind):
                    yield Kind("container", "sequence" if kind == "walk" else kind)
                case Tup():
                    yield Kind("container", "tuple")
                case Map():
                    yield Kind("container", "dict")
                case FuncOf(key=key):
                    callee = self.callee(key)
                    yield Kind("function", callee.name, callee.place)
                case GenOf(key=key):
                    callee = self.callee(key)
                    yield Kind("container", f"generator {callee.name}", callee.place)
                case PartialOf(kind=kind):
                    yield Kind("function", kind)
                case Ext(dotted=dotted):
                    yield Kind("module" if "." not in dotted else "other", dotted)
                case Mod(key=key):
                    module = self.analysis.modules.by_id[key]
                    yield Kind("module", module.dotted, Place(module.path, 1))

    def class_kind(self, name: str, key: str) -> Kind:
        info = self.analysis.classes.get(key)
        if info is None:
            return Kind(name, key.rpartition(":")[2])
        return Kind(name, info.name, class_place(info))

    # --- attributes in the classes that an object may be of

    def in_classes(self, seen: Seen) -> tuple[tuple[InClass, ...], bool]:
        """Say what an attribute is in each class of its object; True if these are guessed."""
        if not seen.name:
            return (), False
        keys = classes_in(seen.owners)
        guessed = not keys and (not seen.owners or "unknown" in seen.owners)
        if guessed:
            keys = [info.key for info in self.protocol_classes()]
        found = [self.in_class(key, seen.name) for key in dict.fromkeys(keys)]
        known = [entry for entry in found if entry is not None]
        known.sort(key=lambda entry: (entry.kinds[0].name != "array", entry.place))
        return tuple(known), guessed and bool(known)

    def protocol_classes(self) -> list[ClassInfo]:
        found: dict[str, ClassInfo] = {}
        for name in sorted(self.analysis.protocol):
            for info in protocol_classes(self.analysis, self.module, name):
                found.setdefault(info.key, info)
        return list(found.values())

    def in_class(self, key: str, name: str) -> InClass | None:
        info = self.analysis.classes.get(key)
        if info is None:
            return None
        method = info.find(name)
        if method is not None and method.role != "property":
            return None
        kinds = self.analysis.kinds
        type_ = kinds.property_type(key, name) if method else kinds.attribute(key, name)
        if not type_:
            return None
        found = self.updates(info, name) if "array" in type_ else ()
        updates = tuple(sorted(found, key=lambda update: update.place))
        return InClass(
            info.name, class_place(info), tuple(self.kinds(ordered(known_atoms(type_)))), updates
        )

    def updates(self, info: ClassInfo, name: str) -> Iterator[Update]:
        """Yield the statements of a class's own methods that change an attribute of `self`."""
        for function in own_functions(self.analysis, info):
            own = function.params[0] if function.params else ""
            for stmt in statements(function.body):
                how = changes(stmt, own, name)
                if how is not None and not (how == "rebinds" and function.name in CONSTRUCTORS):
                    where = self.analysis.where(function.module, stmt.at)
                    yield Update(how, self.place(where))  # type: ignore[arg-type]

    # --- calls

    def calls(self) -> tuple[Call, ...]:
        """Tell of the calls that were seen, and of implicit ones: getters, `__getitem__`."""
        found = [self.call(seen) for seen in self.recorder.calls.values()]
        texts = {(call.text, call.column) for call in found}
        for stmt in self.recorder.statements:
            for expr in expressions_of(stmt):
                if not self.recorder.on_line(expr.at):
                    continue
                where = self.analysis.where(self.module.id, expr.at)
                if isinstance(expr, (ir.Attr, ir.Item)) and where in self.analysis.resolved:
                    found.append(self.implicit(where))
                elif isinstance(expr, ir.Call) and not isinstance(expr.fn, ir.Closure):
                    text = (self.text.text(where), self.column(expr.at))
                    if expr not in self.recorder.calls and text not in texts:
                        found.append(Call(*text, "unseen", effect="no analysed path gets here"))
        unique = {(call.text, call.column): call for call in reversed(found)}
        return tuple(sorted(unique.values(), key=lambda call: (call.column, len(call.text))))

    def implicit(self, where: Where) -> Call:
        callees = self.callees(where)
        return Call(self.text.text(where), self.column(where.at), "function", callees)

    def call(self, seen: SeenCall) -> Call:
        where = self.analysis.where(self.module.id, seen.call.at)
        callees = self.callees(where)
        outside = self.outside(seen)
        made = [atom.key for atom in seen.callees if isinstance(atom, ClassOf)]
        if made and not callees:
            callees = tuple(self.class_callee(key) for key in made)
        resolution: Resolution = "library"
        if callees:
            resolution = "class" if made else "protocol" if self.by_protocol(seen) else "function"
        elif where in self.analysis.unresolved:
            resolution = "unresolved"
        return Call(
            text=self.text.text(where),
            column=self.column(seen.call.at),
            resolution=resolution,
            callees=callees,
            outside=outside,
            effect=self.effect(seen, resolution, outside),
            updates=tuple(self.change(mark) for mark in self.in_order(seen.updates.values())),
        )

    def in_order(self, marks: Iterable[Mark]) -> list[Mark]:
        return sorted(marks, key=lambda m: (len(m.chain), self.text.order(m.site.where)))

    def by_protocol(self, seen: SeenCall) -> bool:
        fn = seen.call.fn
        named = isinstance(fn, ir.Attr) and fn.name in self.analysis.protocol
        return named and "unknown" in seen.receivers

    def callees(self, where: Where) -> tuple[Callee, ...]:
        found = [self.callee(key) for key in self.analysis.resolved.get(where, ())]
        nowhere = Place(Path(), 0)
        return tuple(sorted(found, key=lambda callee: (callee.place or nowhere, callee.name)))

    def callee(self, key: str) -> Callee:
        """Return what a function's key says: `module:qualified name:line:column`."""
        module, name, line, _ = key.rsplit(":", 3) if key.count(":") >= 3 else (key, key, "1", "")
        found = self.analysis.modules.by_id.get(module)
        return Callee(name, Place(found.path, int(line)) if found else None)

    def class_callee(self, key: str) -> Callee:
        kind = self.class_kind("class", key)
        return Callee(kind.detail, kind.place)

    def outside(self, seen: SeenCall) -> str:
        """Return what is called outside of the program: `mlx.core.softmax`, `array.reshape`."""
        fn = seen.call.fn
        for atom in seen.callees:
            if isinstance(atom, (Ext, ExtInst)):
                return atom.dotted
        if isinstance(fn, ir.Attr):
            for atom in seen.receivers:
                match atom:
                    case "array":
                        return f"mlx.core.array.{fn.name}"
                    case Ext(dotted=dotted) | ExtInst(dotted=dotted):
                        return f"{dotted}.{fn.name}"
                    case Seq(kind=kind):
                        return f"{kind}.{fn.name}"
                    case Tup():
                        return f"tuple.{fn.name}"
                    case Map():
                        return f"dict.{fn.name}"
                    case _:
                        pass
        return ""

    def effect(self, seen: SeenCall, resolution: Resolution, outside: str) -> str:
        """Say what a call gives back, in terms of handles."""
        if seen.gives_back:
            what = " or ".join(f"`{text}`" for text in sorted(seen.gives_back))
            return f"may give back the very array or object of {what}, not a copy"
        if resolution == "unresolved":
            name = seen.call.fn.name if isinstance(seen.call.fn, ir.Attr) else ""
            if name in self.analysis.protocol:
                return "it may update the cache: what is captured across it is AL102"
            return "taken to read what it is given, and to update nothing"
        if outside in library.MX_NOT_READS or outside in library.NOT_READS:
            return "looks at what it is given without using the value"
        kinds = {kind.name for kind in self.kinds(seen.gives)}
        if kinds <= {"number", "int", "bool", "text", "none", "other"}:
            return "" if resolution in {"function", "protocol"} else "gives no array"
        if "array" in kinds:
            return "gives a new array"
        return ""


def is_name_only(seen: Seen) -> bool:
    """True for names of modules, functions and classes: the calls tell of them."""
    return bool(seen.atoms) and all(isinstance(atom, NAMES) for atom in seen.atoms)


def class_place(info: ClassInfo) -> Place:
    return Place(info.module.path, info.node.lineno)


def expressions_of(stmt: ir.Stmt) -> Iterator[ir.Expr]:
    """Yield the expressions that run with one statement, not those in its blocks."""
    match stmt:
        case ir.If(test=test) | ir.While(test=test):
            yield from expressions(ir.Do(test.at, test))
        case ir.For(iterable=iterable):
            yield from expressions(ir.Do(iterable.at, iterable))
        case ir.With(context=context):
            yield from expressions(ir.Do(context.at, context))
        case ir.Match(subject=subject):
            yield from expressions(ir.Do(subject.at, subject))
        case ir.Block() | ir.Try() | ir.ClassDef():
            return
        case _:
            yield from expressions(stmt)


def own_functions(analysis: Analysis, info: ClassInfo) -> Iterator[ir.Function]:
    """Yield the methods that instances of the class run, inherited ones included."""
    seen: set[str] = set()
    for ancestor in info.mro:
        for name, method in ancestor.every():
            if method.role == "setter":
                name = f"{name}.setter"
            if name not in seen and method.role not in {"static", "class"}:
                seen.add(name)
                yield analysis.classes.method(method)


def changes(stmt: ir.Stmt, own: str, name: str) -> str | None:
    """Return how a statement changes `own.name`: "in-place", "rebinds" or not (None)."""
    match stmt:
        case ir.Aug(target=ir.ToAttr(obj=ir.Name(name=owner), name=attr)):
            return "in-place" if (owner, attr) == (own, name) else None
        case ir.Aug(target=ir.ToItem(obj=ir.Attr(obj=ir.Name(name=owner), name=attr))):
            return "in-place" if (owner, attr) == (own, name) else None
        case ir.Assign(targets=targets):
            for target in targets:
                match target:
                    case ir.ToAttr(obj=ir.Name(name=owner), name=attr):
                        if (owner, attr) == (own, name):
                            return "rebinds"
                    case ir.ToItem(obj=ir.Attr(obj=ir.Name(name=owner), name=attr)):
                        if (owner, attr) == (own, name):
                            return "in-place"
                    case ir.Unpack(targets=inner):
                        for part in inner:
                            if changes(ir.Assign(stmt.at, (part,), stmt.value), own, name):
                                return "rebinds"
                    case _:
                        pass
            return None
        case _:
            return None
