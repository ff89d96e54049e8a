"""What one analysis shares: the program's tables, the memo of summaries, and the events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from aliaslint.flow.observing import Observer
from aliaslint.flow.state import State
from aliaslint.flow.values import (
    Hop,
    Key,
    Link,
    Mark,
    Pos,
    Prov,
    Ref,
    Refs,
    Site,
    Stale,
    Stales,
    Val,
    Where,
)
from aliaslint.lower import ir
from aliaslint.lower.lowering import at
from aliaslint.lower.walk import children
from aliaslint.program.classes import ClassTable, Method
from aliaslint.program.kinds import Kinds, array_member
from aliaslint.program.modules import ModuleTable
from aliaslint.program.relevance import Relevance, outermost
from aliaslint.program.scan import nested
from aliaslint.program.types import (
    ARRAY,
    NOTHING,
    UNKNOWN,
    ClassOf,
    ExtInst,
    Inst,
    Map,
    Seq,
    Tup,
    Type,
)

if TYPE_CHECKING:
    from aliaslint.flow.effects import Effects

MAX_DEPTH = 9  # calls nested in one context
MAX_CONTEXTS = 40  # summaries of one function made for one root
MAX_SPLITS = 3  # rounds in which one call may name more single elements of its containers
MAX_HOPS = 4
# Statements interpreted for one root before calls collapse: for what updates an array itself,
# what captures one that is updated, and what only leads to both.
FUEL = (4_000, 1_600, 400)
LAST_FUEL = 200  # statements after that, before the root is given up


@dataclass(slots=True)
class Read:
    """A use of an entry binding: where, through which calls, and why it would be stale."""

    stale: Stales
    where: Where
    calls: tuple[Where, ...] = ()


@dataclass(slots=True)
class Summary:
    """What a call does, in the callee's own names (roots stand for objects of the caller)."""

    entry: State
    value: Val | None = None
    state: State | None = None
    raised: State | None = None
    updates: dict[tuple[Ref, Mark, str], None] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    complete: bool = False
    unresolved: bool = False


@dataclass(slots=True)
class Fault:
    """A read that is proven stale: the events that the rules turn into findings."""

    victim: Prov
    mark: Mark
    where: Where
    calls: tuple[Where, ...] = ()
    kind: str = "read"  # "read", or "left" for an owner's location stale at the end

    @property
    def order(self) -> tuple[object, ...]:
        """Which of two accounts of one thing is told: what is exact before what is suspected, the
        shorter way, and among equals always the same one."""
        chain = self.mark.chain
        doubts = self.mark.collapsed, self.mark.guessed
        return *doubts, len(self.calls) + len(chain), self.calls, chain, self.victim.hops


@dataclass(slots=True)
class SiteInfo:
    """What is known of an in-place update: whether it ever met an escaped object."""

    escaped: bool = False


@dataclass(slots=True)
class Escape:
    """A capture stored or returned stale, or held across an unresolved protocol call."""

    victim: Prov
    mark: Mark
    where: Where

    @property
    def order(self) -> tuple[object, ...]:
        """As for faults."""
        return self.mark.collapsed, self.mark.guessed, self.where, self.mark.chain, self.victim.hops


@dataclass(slots=True)
class Held:
    """What a target was given by a statement that takes a value apart, and what that may be: by
    how captured arrays came to it, under None for all else."""

    types: dict[Prov | None, Type] = field(default_factory=dict)

    def add(self, types: Mapping[Prov | None, Type]) -> None:
        for prov, type_ in types.items():
            self.types[prov] = self.types.get(prov, NOTHING) | type_


@dataclass(slots=True, eq=False)
class Events:
    """What interpreting functions brought to light, keyed by program positions."""

    faults: dict[tuple[object, ...], Fault] = field(default_factory=dict)
    escapes: dict[tuple[object, ...], Escape] = field(default_factory=dict)
    sites: dict[Site, SiteInfo] = field(default_factory=dict)
    statements: dict[Where, ir.Aug] = field(default_factory=dict)
    resolved: dict[Where, set[str]] = field(default_factory=dict)
    unresolved: dict[Where, str] = field(default_factory=dict)
    # What a getter of `operator` takes at a call: the name or index, None where several.
    taken: dict[Where, set[str | None]] = field(default_factory=dict)
    numbers: set[Where] = field(default_factory=set)  # where a captured attribute may be a number
    held: dict[Where, Held] = field(default_factory=dict)  # by parts of targets
    outermost: dict[str, str] = field(default_factory=dict)  # of each nested function called
    ran_in: dict[str, str] = field(default_factory=dict)  # modules whose functions ran, with paths
    abandoned: int = 0  # functions that were too costly to be followed to their end

    def add_fault(self, key: tuple[object, ...], fault: Fault) -> None:
        """Keep the best account of those with one key; it is one of an array for certain only
        if each of them is, whichever came first."""
        old = self.faults.get(key)
        if old is None:
            self.faults[key] = fault
            return
        best = fault if fault.order < old.order else old
        if best.victim.array and not (fault.victim.array and old.victim.array):
            best = replace(best, victim=replace(best.victim, array=False))
        self.faults[key] = best

    def add_escape(self, key: tuple[object, ...], escape: Escape) -> None:
        old = self.escapes.get(key)
        if old is None or escape.order < old.order:
            self.escapes[key] = escape

    def absorb(self, other: Events) -> None:
        """Add what was found elsewhere; of two accounts of one thing, the better one stays."""
        for key, fault in other.faults.items():
            self.add_fault(key, fault)
        for key, escape in other.escapes.items():
            self.add_escape(key, escape)
        for site, info in other.sites.items():
            known = self.sites.setdefault(site, info)
            known.escaped = known.escaped or info.escaped
        self.statements.update(other.statements)
        for where, keys in other.resolved.items():
            self.resolved.setdefault(where, set()).update(keys)
        for where, text in other.unresolved.items():
            self.unresolved.setdefault(where, text)
        for where, names in other.taken.items():
            self.taken.setdefault(where, set()).update(names)
        self.numbers |= other.numbers
        for where, held in other.held.items():
            self.held.setdefault(where, Held()).add(held.types)
        self.outermost.update(other.outermost)
        self.ran_in.update(other.ran_in)
        self.abandoned += other.abandoned

    def of_places(self) -> Events:
        """Return what is known of places in the source, without what was found at them."""
        return Events(sites=self.sites, statements=self.statements)

    def of_captures(self) -> Events:
        """Return what was found, but of the faults only those of captures."""
        return Events(
            faults={key: fault for key, fault in self.faults.items() if is_of_capture(fault)},
            escapes={k: e for k, e in self.escapes.items() if e.victim.kind == "capture"},
            sites=self.sites,
            statements=self.statements,
            resolved=self.resolved,
            taken=self.taken,
            numbers=self.numbers,
            held=self.held,
        )

    def called(self) -> set[str]:
        """Return the keys of the functions that calls were seen to run."""
        return {key for keys in self.resolved.values() for key in keys}


def is_of_capture(fault: Fault) -> bool:
    return fault.kind == "read" and fault.victim.kind == "capture" and not fault.mark.collapsed


class Exhausted(Exception):
    """A root has spent all that one root may cost."""


OF_ONE_ROOT = (
    "summaries",
    "active",
    "contexts",
    "fuel",
    "bound_site",
    "guessing",
    "coarse",
    "observer",
)


class Analysis(Events):
    """The shared context, one per run: what is known of the program, and what was found."""

    def __init__(
        self,
        modules: ModuleTable,
        protocol: frozenset[str],
        exposed: frozenset[str] = frozenset({"offset"}),
    ) -> None:
        super().__init__()
        self.modules = modules
        self.classes = ClassTable(modules)
        self.kinds = Kinds(self.classes)
        self.refs = Refs()
        self.protocol = protocol
        self.exposed = exposed
        self.relevance: Relevance | None = None  # None: everything is interpreted
        self.summaries: dict[str, dict[object, Summary]] = {}
        self.active: dict[tuple[str, object], Summary] = {}
        self.closure_class: dict[str, str] = {}
        self.candidates: dict[tuple[Path, str, bool], list[tuple[str, Method]]] = {}
        self.fuel = FUEL[0]
        self.truth_values: dict[tuple[str, str], bool] = {}  # by function and variable
        self.bound_site: Site | None = None
        self.passed_over = 0  # functions that were not worth interpreting on their own
        self.contexts: dict[str, int] = {}  # how many summaries of each the running root made
        self.guessing = 0  # how many receivers of guessed class the running call goes through
        self._may_update: dict[ir.Expr, bool] = {}
        self._init_types: dict[tuple[Ref, Key], Type] = {}
        self._spans: dict[tuple[str, ir.At], Where] = {}
        self.derived: dict[str, frozenset[str]] = {}
        self.observer: Observer | None = None
        self.coarse = False  # calls of the cache protocol are judged by the effects of methods
        self.effects: dict[tuple[str, str], Effects] = {}

    def spend(self, amount: int) -> None:
        """Count work; a root that has spent far too much is given up. Raises Exhausted."""
        self.fuel -= amount
        if self.fuel < -LAST_FUEL:
            raise Exhausted

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Have something interpreted as if nothing had been before, and as if it had not been:
        what is found must be taken within the block."""
        names = (*(entry.name for entry in fields(Events)), *OF_ONE_ROOT)
        kept = {name: getattr(self, name) for name in names}
        Events.__init__(self)
        self.summaries, self.active, self.contexts = {}, {}, {}
        self.bound_site, self.guessing = None, 0
        try:
            yield
        finally:
            for name, value in kept.items():
                setattr(self, name, value)

    def start(self) -> None:
        """Forget what was found and what was summarised, before functions are interpreted that
        are to yield the same whatever was interpreted before them."""
        Events.__init__(self)
        self.summaries.clear()
        self.closure_class.clear()

    def take(self) -> Events:
        """Return what was found since `start`."""
        for key in sorted(self.called()):
            function = self.kinds.function(key)
            if function is not None:
                self.ran_in[function.module] = str(self.modules.by_id[function.module].path)
                if function.parent is not None:
                    self.outermost[key] = outermost(function, None)[0].key
        return Events(**{entry.name: getattr(self, entry.name) for entry in fields(Events)})

    def function(self, key: str) -> ir.Function | None:
        """Return the function with a key that was found, if need be in another process."""
        known = self.classes.known_function(key)
        if known is not None or key.partition(":")[0] not in self.modules.by_id:
            return known
        outer = self.outermost.get(key)
        if outer is not None and (holder := self.kinds.function(outer)) is not None:
            for inner in nested(holder):
                self.classes.register(inner)
        return self.kinds.function(key)

    def bring_in(self, found: Events) -> None:
        """Take over what was found in another process, and load the modules it speaks of."""
        for path in found.ran_in.values():
            self.modules.bring(Path(path))
        self.absorb(found)

    # --- positions

    def where(self, module: str, at: ir.At) -> Where:
        key = (module, at)
        found = self._spans.get(key)
        if found is None:
            found = self._spans[key] = Where(module, at)
        return found

    def may_update(self, expr: ir.Expr) -> bool:
        """True if evaluating `expr` may run code that updates something."""
        found = self._may_update.get(expr)
        if found is None:
            runs = isinstance(expr, (ir.Call, ir.Suspend, ir.Walrus, ir.Comprehension, ir.Attr))
            if isinstance(expr, ir.Attr):
                runs = expr.name in self.property_names
            found = runs or any(self.may_update(child) for child in children(expr))
            self._may_update[expr] = found
        return found

    @property
    def property_names(self) -> set[str]:
        """Names of properties of the classes met so far: loading one runs code."""
        return self.classes.property_names

    def class_attribute_where(self, key: str, name: str) -> Where | None:
        """Return where a class body binds an attribute."""
        info = self.classes.get(key)
        for node in info.node.body if info else ():
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            if any(getattr(t, "id", "") == name for t in targets):
                assert info is not None
                return self.where(info.module.id, at(node))
        return None

    # --- types of entry locations

    def init_type(self, ref: Ref, key: Key) -> Type:
        token = (ref, key)
        found = self._init_types.get(token)
        if found is None:
            found = self._init_types[token] = self._compute_type(ref, key)
        return found

    def _compute_type(self, ref: Ref, key: Key) -> Type:
        result = NOTHING
        for atom in ref.type:
            match atom:
                case Inst(key=class_key) if isinstance(key, str):
                    result |= self.kinds.attribute(class_key, key) or UNKNOWN
                case ClassOf(key=class_key) if isinstance(key, str):
                    result |= self.kinds.attribute(class_key, key) or UNKNOWN
                case Seq(element=element) | Map(element=element) if isinstance(key, Pos):
                    result |= element or UNKNOWN
                case Tup(elements=elements) if isinstance(key, Pos):
                    if key.kind == "i" and isinstance(key.index, int):
                        inside = -len(elements) <= key.index < len(elements)
                        result |= elements[key.index] if inside else UNKNOWN
                    else:
                        result = result.union(*elements)
                case "array":
                    result |= ARRAY if isinstance(key, Pos) else array_member(str(key))
                case "none" | "scalar" | "str" | "other":
                    pass
                case ExtInst(dotted=dotted) if dotted.startswith("mlx.nn") and key in {
                    "weight",
                    "bias",
                }:
                    result |= ARRAY
                case _:
                    result |= UNKNOWN
        return result or UNKNOWN

    def space_ref(self, loop: object) -> Ref:
        return self.refs.static("const", ("space", loop), NOTHING)

    def exact_array(self, ref: Ref) -> bool:
        """True for a handle that is an array wherever its kind is known, or None."""
        return "array" in ref.type and "scalar" not in ref.type

    # --- events

    def fault(self, stale: Stale, where: Where, calls: tuple[Where, ...], kind: str) -> None:
        victim, mark = stale
        key = (victim.kind, victim.where, victim.token, mark.site, where, kind)
        self.add_fault(key, Fault(victim, mark, where, calls, kind))

    def escape(self, stale: Stale, where: Where) -> None:
        victim, mark = stale
        key = (victim.kind, victim.where, victim.token, mark.site)
        self.add_escape(key, Escape(victim, mark, where))


def extend(prov: Prov, hop: Hop) -> Prov:
    """Return `prov` with one more step, bounded; the first steps say the most."""
    if len(prov.hops) >= MAX_HOPS or (prov.hops and prov.hops[-1] == hop):
        return prov
    return replace(prov, hops=(*prov.hops, hop))


def rebound(val: Val, change: Callable[[Link], Prov]) -> Val:
    """Return `val` with new provenance for each link; links that fall together are joined."""
    new: Val = {}
    for link, stale in val.items():
        moved = Link(link.ref, change(link))
        new[moved] = new[moved] | stale if moved in new else stale
    return new
