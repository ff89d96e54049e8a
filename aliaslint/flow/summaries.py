"""Summaries of calls: entering a callee in canonical names and applying what it does.

Two callers with the same alias pattern share one summary. Every entry binding gets a token;
what the callee does with a binding is told in terms of its token and given back the
caller's own provenance and staleness when the summary is applied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from aliaslint.flow.containers import focused_element
from aliaslint.flow.context import (
    MAX_CONTEXTS,
    MAX_DEPTH,
    MAX_HOPS,
    MAX_SPLITS,
    Analysis,
    Summary,
)
from aliaslint.flow.derived import derived_params
from aliaslint.flow.expressions import Stopped
from aliaslint.flow.frame import FRESH_PROV, Frame, bind, describe
from aliaslint.flow.leaving import throw
from aliaslint.flow.protocol import candidates
from aliaslint.flow.state import Binding, State, initial, is_object
from aliaslint.flow.values import (
    ANY,
    EMPTY,
    ENTRY,
    FRESH,
    SUMMARY,
    Hop,
    Key,
    Link,
    Mark,
    Pos,
    Prov,
    Ref,
    Site,
    Stale,
    Stales,
    Val,
    Where,
    join,
    proven,
)
from aliaslint.lower import ir
from aliaslint.program.types import UNKNOWN, Inst, Type, is_plain, ordered

STATIC = frozenset({"class", "func", "module", "ext", "const", "pos"})
HAND_OVER_FUNCTIONS = frozenset({"__init__", "__new__", "from_state"})


@dataclass(slots=True)
class Entry:
    """A callee's entry state, and how its names and tokens lead back to the caller."""

    state: State
    forth: dict[Ref, Ref] = field(default_factory=dict)
    back: dict[Ref, Ref] = field(default_factory=dict)
    tokens: list[tuple[Link, Stales]] = field(default_factory=list)
    shape: list[object] = field(default_factory=list)
    reach: dict[Ref, None] = field(default_factory=dict)
    gathered: dict[Ref, Ref] = field(default_factory=dict)  # containers with summaries; caller's
    arguments: list[str] = field(default_factory=list)  # parameter of each argument's token
    elements: dict[object, tuple[Ref, tuple[int, ...]]] = field(default_factory=dict)
    unknown: set[Pos] = field(default_factory=set)  # positions of unknown index that it came with


def reachable(st: State, vals: list[Val]) -> dict[Ref, None]:
    """Return everything that the callee can get at, in a stable order."""
    found: dict[Ref, None] = {}
    stack = [link.ref for val in reversed(vals) for link in reversed(list(val))]
    facets: dict[Ref, list[Ref]] = {}
    for ref in st.heap:
        if ref.kind in STATIC:
            stack.insert(0, ref)
        elif ref.base is not None and isinstance(ref.key, str) and ref.key.startswith("as:"):
            facets.setdefault(ref.base, []).append(ref)
    while stack:
        ref = stack.pop()
        if ref in found:
            continue
        found[ref] = None
        if ref.base is not None and isinstance(ref.key, str) and ref.key.startswith("()#"):
            stack.append(ref.base)
        stack.extend(facets.get(ref, ()))
        fields = st.heap.get(ref)
        if fields:
            for val in fields.values():
                stack.extend(link.ref for link in val if link.ref not in found)
    return found


class Entering:
    """Builds the entry state of one call."""

    def __init__(self, frame: Frame, st: State, function: ir.Function, cls: str | None) -> None:
        self.frame = frame
        self.st = st
        self.function = function
        self.cls = cls
        self.entry = Entry(State())
        self.hints: dict[Ref, Type] = {}

    def build(self, bound: dict[str, Val], up: Val | None) -> Entry:
        vals = [*bound.values(), *([up] if up else [])]
        entry = self.entry
        entry.reach = reachable(self.st, vals)
        self.collect_hints(bound)
        for name, val in bound.items():
            entry.state.env[name] = self.val(val)
            entry.arguments += [name] * (len(entry.tokens) - len(entry.arguments))
        if up:
            entry.state.env["<up>"] = self.val(up)
        for ref in entry.reach:
            fields = self.st.heap.get(ref)
            if fields:
                renamed = self.ref(ref)
                entry.shape.append(renamed.id)
                moved = entry.state.heap.setdefault(renamed, {})
                for key in sorted(fields, key=key_order):
                    new_key = self.key(key)
                    if isinstance(key, Pos) and key.kind == "*" and renamed is not ref:
                        entry.gathered[renamed] = ref
                    entry.shape.append(new_key)
                    moved[new_key] = self.val(fields[key])
        entry.state.owned = frozenset(
            self.ref(r) for r in self.st.owned if r in entry.reach and r.kind not in STATIC
        )
        entry.shape.append(entry.state.owned)
        return entry

    def collect_hints(self, bound: dict[str, Val]) -> None:
        """Parameters that are known to be arrays give their kind to arguments of no kind."""
        kinds = self.frame.a.kinds
        for ref in self.entry.reach:
            if is_facet(ref):
                for key, val in self.st.heap.get(ref, {}).items():
                    for link in val:
                        if link.ref.type == UNKNOWN and isinstance(key, str):
                            self.hints.setdefault(link.ref, self.frame.a.init_type(ref, key))
        evidence = kinds.array_evidence(self.function)
        for name, val in bound.items():
            if name in evidence:
                hint: Type | None = frozenset({"array"})
            else:
                hint = None
                note = self.function.annotations.get(name)
                if note is not None:
                    hint = param_annotation(self.frame.a, self.function, name)
            if hint and "array" in hint:
                for link in val:
                    if link.ref.type == UNKNOWN:
                        self.hints.setdefault(link.ref, hint)

    def val(self, val: Val) -> Val:
        new: Val = {}
        shape = self.entry.shape
        shape.append(len(val))
        for link, stale in val.items():
            ref = self.ref(link.ref)
            shape.append(ref.id)
            if ref.kind in STATIC:
                prov = FRESH_PROV if link.prov.kind != "static" else link.prov
                new[Link(ref, prov)] = FRESH
                continue
            token = len(self.entry.tokens)
            self.entry.tokens.append((link, stale))
            prov = Prov("token", token=token, in_location=link.prov.in_location)
            new[Link(ref, prov)] = FRESH if is_plain(ref.type) else frozenset({Stale(prov, ENTRY)})
        return new

    def key(self, key: Key) -> Key:
        if isinstance(key, Pos) and key.kind == "v":
            self.entry.unknown.add(key)
        return self.pos(key) if isinstance(key, Pos) else key

    def pos(self, pos: Pos) -> Pos:
        return Pos(pos.kind, pos.index, self.ref(pos.space)) if pos.space is not None else pos

    def ref(self, ref: Ref) -> Ref:
        entry = self.entry
        known = entry.forth.get(ref)
        if known is None:
            known = entry.forth[ref] = self.rename(ref)
            if known is not ref:
                entry.back.setdefault(known, ref)
        return known

    def rename(self, ref: Ref) -> Ref:
        frame = self.frame
        if ref.kind in STATIC:
            return ref
        if ref.base is not None and self.anchored(ref.base):
            base = self.ref(ref.base)
            assert ref.key is not None
            key = self.key(ref.key)
            return frame.refs.init(base, key, self.type_under(base, key, ref))
        type_ = self.st.narrowed.get(ref) or self.hints.get(ref) or ref.type
        shared = [i for i, p in enumerate(ref.positions) if self.is_shared(p)]
        if shared and all(
            i in shared or p.kind not in SUMMARY for i, p in enumerate(ref.positions)
        ):
            positions = tuple(self.pos(ref.positions[i]) for i in shared)
            number = len(self.entry.forth)  # after the containers, which take numbers themselves
            self.entry.elements[("c", number)] = (ref, tuple(shared))
            return frame.refs.root(("c", number), type_, positions)
        number = len(self.entry.forth)
        name: tuple[object, ...] = ("c", number, "many") if ref.many else ("c", number)
        return frame.refs.root(name, type_)

    def is_shared(self, pos: Pos) -> bool:
        """True for any element of a container that the callee is given too."""
        return pos.kind == "*" and pos.space is not None and pos.space in self.entry.reach

    def type_under(self, base: Ref, key: Key, ref: Ref) -> Type:
        if base.kind in STATIC or (isinstance(key, str) and key[:3] in {"()#", "as:"}):
            return ref.type
        narrowed = self.st.narrowed.get(ref) or self.hints.get(ref)
        computed = self.frame.a.init_type(base, key)
        return computed if computed != UNKNOWN or narrowed is None else narrowed

    def anchored(self, ref: Ref | None) -> bool:
        while ref is not None:
            if ref in self.entry.reach or ref.kind in STATIC:
                return True
            ref = ref.base
        return False


def key_order(key: Key) -> tuple[int, str]:
    if isinstance(key, str):
        return (0, key)
    return (1, f"{key.kind}{key.index}{key.space.id if key.space else ''}")


def param_annotation(analysis: Analysis, function: ir.Function, name: str) -> Type | None:
    """Return the annotated type of a parameter where it can be relied on.

    The class of a cache is not relied on: batched caches pass where plain ones are annotated.
    """
    note = function.annotations[name]
    type_ = analysis.kinds.annotation(note, analysis.modules.by_id[function.module])
    for atom in ordered(type_):
        if isinstance(atom, Inst):
            info = analysis.classes.get(atom.key)
            if info is None:
                return None
            if any(info.find(p) for p in analysis.protocol):
                return trusted_class(analysis, function, type_)
    return None if "unknown" in type_ else type_


def trusted_class(analysis: Analysis, function: ir.Function, type_: Type) -> Type | None:
    """An annotated cache class stands for itself only where no other class could pass."""
    exposed = [
        analysis.kinds.attribute(a.key, n)
        for a in type_
        if isinstance(a, Inst)
        for n in sorted(analysis.exposed)
    ]
    if any("array" in kind for kind in exposed):
        return type_  # a cache of batches, named as that
    module = analysis.modules.by_id[function.module]
    for name in sorted(analysis.protocol):
        others = {key for key, _ in candidates(analysis, module, name)}
        if others - {atom.key for atom in type_ if isinstance(atom, Inst)}:
            return None
    return type_


# --- running a callee


def apply_call(
    frame: Frame,
    st: State,
    function: ir.Function,
    cls: str | None,
    bound: dict[str, Val],
    nodes: dict[str, ir.Expr | None],
    up: Val | None,
    expr: ir.Expr,
    hand_over: str = "",
) -> Val:
    """Run (or look up) the callee's summary for this alias pattern and apply it to `st`."""
    entry, summary = enter(frame, st, function, cls, bound, up)
    for _ in range(MAX_SPLITS):
        split = split_off(entry, summary)
        if not split:
            break
        bound = split_elements(frame, st, split, bound)
        entry, summary = enter(frame, st, function, cls, bound, up)
    if summary is None:
        return collapse(frame, st, entry, expr)
    return Applying(frame, st, entry, summary, function, nodes, expr, hand_over).run()


def enter(
    frame: Frame,
    st: State,
    function: ir.Function,
    cls: str | None,
    bound: dict[str, Val],
    up: Val | None,
) -> tuple[Entry, Summary | None]:
    entry = Entering(frame, st, function, cls).build(bound, up)
    frame.a.spend(1 + len(entry.tokens) // 16)
    return entry, summarise(frame, function, cls, entry)


def split_off(entry: Entry, summary: Summary | None) -> list[tuple[Ref, Pos]]:
    """Return the elements (of containers as the caller knows them) that the callee names by a
    position, and the caller has in a summary with others."""
    state = (summary.state or summary.raised) if summary is not None else None
    if state is None:
        return []
    found: list[tuple[Ref, Pos]] = []
    for ref, known in entry.gathered.items():
        before = entry.state.heap[ref]
        after = (k for k in state.heap.get(ref, ()) if isinstance(k, Pos) and k.kind == "i")
        found += [(known, key) for key in after if key not in before]
    return found


def split_elements(
    frame: Frame, st: State, wanted: list[tuple[Ref, Pos]], bound: dict[str, Val]
) -> dict[str, Val]:
    """Split elements off in the caller before the callee is entered: inside it an element is one
    object, whether it is one of many or not. Return the arguments as they are then."""
    held = {f"<argument>{name}": val for name, val in bound.items()}
    st.env.update(held)
    for ref, pos in wanted:
        focused_element(frame, st, ref, pos)
    return {name: st.env.pop(f"<argument>{name}") for name in bound}


def summarise(frame: Frame, function: ir.Function, cls: str | None, entry: Entry) -> Summary | None:
    """Return the summary for this entry; None at the bounds on depth and contexts."""
    analysis = frame.a
    table = analysis.summaries.setdefault(f"{function.key}|{cls}", {})
    key = tuple(entry.shape)
    known = table.get(key)
    if known is not None:
        return known
    token = (f"{function.key}|{cls}", key)
    active = analysis.active.get(token)
    if active is not None:
        active.unresolved = True
        return active
    made = analysis.contexts.get(function.key, 0)
    if frame.depth >= MAX_DEPTH or made >= MAX_CONTEXTS or analysis.fuel <= 0:
        return None
    analysis.contexts[function.key] = made + 1
    summary = Summary(entry.state)
    for _ in range(3):
        analysis.active[token] = summary
        result = run(analysis, function, cls, entry.state.copy(), frame.depth + 1)
        recursive = summary.unresolved
        del analysis.active[token]
        settled = not recursive or same_summary(summary, result)
        summary = result
        if settled:
            break
    summary.complete = True
    if analysis.fuel > 0:  # what was cut short is not kept
        table[key] = summary
    return summary


def same_summary(a: Summary, b: Summary) -> bool:
    if a.value != b.value or a.updates.keys() != b.updates.keys():
        return False
    if a.state is None or b.state is None:
        return a.state is b.state
    return a.state.same(b.state)


def run(
    analysis: Analysis, function: ir.Function, cls: str | None, st: State, depth: int
) -> Summary:
    """Interpret the body once from the entry state `st`."""
    from aliaslint.flow.statements import execute

    entry = st.copy()
    frame = Frame(analysis, function, cls, depth)
    prepare_frame(frame, st)
    try:
        end = execute(frame, function.body, st)
    except Stopped:
        end = None
    summary = Summary(entry)
    if end is not None:
        frame.returns.append((frame.plain(frozenset({"none"})), end))
    for val, state in frame.returns:
        summary.value = val if summary.value is None else join(summary.value, val)
        summary.state = frame.union(summary.state, state)
    summary.raised = frame.raised
    summary.updates = frame.updates
    summary.reads = list(frame.reads.values())
    return summary


def prepare_frame(frame: Frame, st: State) -> None:
    """Move captured parameters into the frame object that nested functions share."""
    ref = frame.frame_ref
    if ref is None:
        return
    up = st.env.get(frame.variable("<up>"))
    fields: dict[Key, Val] = {}
    if up:
        fields["<up>"] = up
    for name in frame.fn.params:
        if name in frame.fn.cells:
            fields[name] = st.env.get(frame.variable(name), EMPTY)
    st.heap[ref] = fields


def collapse(frame: Frame, st: State, entry: Entry, expr: ir.Expr) -> Val:
    """At a bound: whatever the callee can reach may have been updated; told as AL102 only."""
    mark = Mark(analysis_bound(frame, expr))
    places: Iterator[tuple[Binding, Ref]] = (
        ((owner, key), link.ref)
        for owner in entry.reach
        for key, val in st.heap.get(owner, {}).items()
        for link in val
        if "array" in frame.type_of(st, link.ref)
    )
    for ref in st.mark_all(places, mark):
        if ref.kind in {"root", "init", "static"}:
            frame.outer().updates[(ref, mark, "")] = None
    frame.a.unresolved.setdefault(frame.where(expr.at), "a call beyond the bounds")
    return frame.fresh(expr.at, UNKNOWN)


def analysis_bound(frame: Frame, expr: ir.Expr) -> Site:
    """One site stands for all calls beyond the bounds of one root."""
    if frame.a.bound_site is None:
        where = frame.where(expr.at)
        frame.a.bound_site = Site(where, "unresolved", "a call beyond the bounds", collapsed=True)
    return frame.a.bound_site


# --- applying a summary


def is_stored(prov: Prov) -> bool:
    """True for an element of what the caller gave (`self.a, self.b = state`) that an object
    keeps, if nothing has told of the hand-over yet."""
    kinds = {hop.kind for hop in prov.hops}
    return "store" in kinds and "hand-over" not in kinds


class Applying:
    """Gives a summary back its caller's names, and changes the caller's state by it."""

    def __init__(
        self,
        frame: Frame,
        st: State,
        entry: Entry,
        summary: Summary,
        function: ir.Function,
        nodes: dict[str, ir.Expr | None],
        expr: ir.Expr,
        hand_over: str,
    ) -> None:
        self.frame = frame
        self.st = st
        self.entry = entry
        self.summary = summary
        self.function = function
        self.nodes = nodes
        self.expr = expr
        self.hand_over = hand_over
        self.where = frame.where(expr.at)
        self.memo: dict[Ref, Ref] = {}
        self.provs: dict[Prov, Prov] = {}
        first = next(iter(entry.state.env.values()), EMPTY)
        self.for_many = any(link.ref.many for link in first)

    def run(self) -> Val:
        summary = self.summary
        state = summary.state if summary.state is not None else summary.raised
        if state is not None:
            changed = self.changed(state)
            moved = [(self.ref(r), self.key(k), self.val(v)) for r, k, v in changed]
        else:
            moved = []
        value = self.val(summary.value) if summary.value is not None else None
        updates = [(self.ref(r), m, through) for (r, m, through) in summary.updates]
        self.apply_reads()
        for ref, mark, through in updates:
            self.update(ref, mark, through)
        for ref, key, val in moved:
            self.frame.store_location(self.st, ref, key, val, weak=ref.many)
        if state is not None and state.owned - self.entry.state.owned:
            self.st.owned |= {self.ref(r) for r in state.owned - self.entry.state.owned}
        if summary.raised is not None:
            self.note_raise()
        if value is None:
            if not summary.complete:
                return self.frame.fresh(self.expr.at, UNKNOWN)
            raise Stopped
        return self.returned(value)

    def changed(self, state: State) -> list[tuple[Ref, Key, Val]]:
        """Return the locations that the callee left other than it found them.

        Its own objects count only where the caller can get at them.
        """
        found: list[tuple[Ref, Key, Val]] = []
        held: dict[Ref, None] | None = None
        for ref in self.visible(state):
            fields = state.heap.get(ref)
            if not fields:
                continue
            before = self.entry.state.heap.get(ref, {})
            for key, val in fields.items():
                old = before.get(key)
                if old is val or (old is not None and old == val):
                    continue
                if old is None and ref.kind in {"root", "init"} and untouched(ref, key, val):
                    continue
                if is_facet(ref):
                    if held is None:
                        held = self.visible(state, facets=False)
                    val = shared_only(ref, val, held)
                    if not val:
                        continue
                found.append((ref, key, val))
        return found

    def visible(self, state: State, facets: bool = True) -> dict[Ref, None]:
        """Return what can be got at after the call; with or without going through facets."""
        vals = [self.summary.value] if self.summary.value else []
        found: dict[Ref, None] = {}
        stack = [link.ref for val in vals for link in val]
        stack.extend(self.entry.state.heap)
        stack.extend(r for r in state.heap if r.kind not in {"alloc"})
        while stack:
            ref = stack.pop()
            if ref in found or (not facets and is_facet(ref)):
                continue
            found[ref] = None
            if ref.base is not None:
                stack.append(ref.base)
            for val in state.heap.get(ref, {}).values():
                stack.extend(link.ref for link in val if link.ref not in found)
        return found

    # names

    def ref(self, ref: Ref) -> Ref:
        known = self.memo.get(ref)
        if known is None:
            known = self.memo[ref] = self.rename(ref)
        return known

    def rename(self, ref: Ref) -> Ref:
        if ref.kind in STATIC:
            return ref
        original = self.entry.back.get(ref)
        if original is not None:
            return original
        refs = self.frame.refs
        if ref.base is not None:
            base = self.ref(ref.base)
            assert ref.key is not None
            key = self.key(ref.key)
            if isinstance(key, str) and key[:3] in {"()#", "as:"}:
                return refs.init(base, key, ref.type)
            return self.materialise(base, key, ref)
        if ref.payload in self.entry.elements:
            return self.element(ref)
        if ref.kind == "alloc":
            payload = nested_site(self.frame.fn.key, self.expr.at, ref.payload)
            positions = (*self.frame.positions[-2:], *(self.pos(p) for p in ref.positions))
            if self.for_many:
                positions = (*positions[:3], ANY)
            return refs.alloc(payload, positions[:4], ref.type)
        return ref

    def element(self, ref: Ref) -> Ref:
        """Return the caller's object at the position that the callee has an element at."""
        known, places = self.entry.elements[ref.payload]
        positions = list(known.positions)
        for place, pos in zip(places, ref.positions, strict=True):
            positions[place] = self.pos(pos)
        return self.frame.refs.at(known, tuple(positions))

    def materialise(self, base: Ref, key: Key, ref: Ref) -> Ref:
        """A location that the callee was first to touch: the caller holds the same there."""
        st, frame = self.st, self.frame
        type_ = frame.a.init_type(base, key) if base.kind in {"root", "init"} else ref.type
        inner = frame.refs.init(base, key, type_)
        exit_state = self.summary.state or self.summary.raised
        assert ref.base is not None
        assert ref.key is not None
        if exit_state is None or exit_state.peek(ref.base, ref.key) is None:
            return inner  # held by a facet only: the object itself was not looked at
        if base.kind in {"root", "init", "alloc", "class", "module"} and st.peek(base, key) is None:
            if base.kind == "class":
                from aliaslint.flow.expressions import class_location

                class_location(frame, st, str(base.payload), str(key))
            elif not is_plain(type_):
                st.put(base, key, initial_as(base, key, inner))
        return inner

    def pos(self, pos: Pos) -> Pos:
        if pos.kind == "v" and pos not in self.entry.unknown:
            return self.looked_up(pos)
        return Pos(pos.kind, pos.index, self.ref(pos.space)) if pos.space is not None else pos

    def looked_up(self, pos: Pos) -> Pos:
        """Another call may look up another element: the call is part of what names it."""
        index, depth = pos.index, 0
        while isinstance(index, tuple) and isinstance(index[0], Pos):
            index, depth = index[0].index, depth + 1
        if depth > MAX_DEPTH:
            return pos
        within = self.frame.positions[-1] if self.frame.positions else None
        return Pos("v", (pos, (self.frame.fn.key, self.expr.at), within))

    def key(self, key: Key) -> Key:
        return self.pos(key) if isinstance(key, Pos) else key

    # provenance and staleness

    def prov(self, prov: Prov) -> Prov:
        known = self.provs.get(prov)
        if known is None:
            known = self.provs[prov] = self.rebase(prov)
        return known

    def rebase(self, prov: Prov) -> Prov:
        match prov.kind:
            case "token":
                assert isinstance(prov.token, int)
                link, _ = self.entry.tokens[prov.token]
                base = link.prov
                if not prov.hops and prov.in_location == base.in_location:
                    return base
                passed = prov.token < len(self.entry.arguments)
                own = self.relocated(prov.hops, prov.token) if passed else prov.hops
                hops = (*base.hops, *own)[:MAX_HOPS]
                return replace(
                    base,
                    bound=True,
                    hops=hops,
                    in_location=prov.in_location or base.in_location,
                )
            case "initial":
                assert isinstance(prov.token, tuple)
                ref, key = prov.token
                base_ref, new_key = self.ref(ref), self.key(key)
                owner = is_object(base_ref) and isinstance(new_key, str)
                return Prov(
                    "initial",
                    None,
                    prov.text,
                    (base_ref, new_key),
                    owner or prov.owner,
                    False,
                    prov.hops,
                    True,
                )
            case "capture" if not prov.bound:
                # Never bound inside the callee: the live handle is captured at the call.
                assert prov.where is not None
                hop = Hop("call", prov.where, prov.text)
                return replace(
                    prov,
                    where=self.where,
                    text=describe(self.expr),
                    hops=(hop, *prov.hops)[:MAX_HOPS],
                )
            case "capture" if self.hand_over and not prov.owner and is_stored(prov):
                hop = Hop("hand-over", self.where, self.hand_over)
                return replace(prov, hops=(hop, *prov.hops)[:MAX_HOPS])
            case _:
                return prov

    def relocated(self, hops: tuple[Hop, ...], token: int) -> tuple[Hop, ...]:
        """A store inside a constructor or setter is a hand-over at the call."""
        if not self.hand_over:
            return hops
        new: list[Hop] = []
        for hop in hops:
            if hop.kind == "store":
                new.append(Hop("hand-over", self.argument_where(token), self.hand_over))
            new.append(hop)
        return tuple(new[:MAX_HOPS])

    def argument_where(self, token: int) -> Where:
        """Return the place of the argument that was handed over, or of the call."""
        node = self.nodes.get(self.entry.arguments[token])
        return self.frame.where(node.at) if node is not None else self.where

    def val(self, val: Val) -> Val:
        new: Val = {}
        for link, stale in val.items():
            ref = self.ref(link.ref)
            prov = self.prov(link.prov)
            moved = Link(ref, prov)
            new[moved] = new.get(moved, FRESH) | self.stales(stale)
        return new

    def stales(self, stale: Stales) -> Stales:
        result = FRESH
        for victim, mark in stale:
            if mark is ENTRY:
                result |= self.entry_stales(victim)
            else:
                result |= {Stale(self.prov(victim), self.mark(mark))}
        return result

    def entry_stales(self, victim: Prov) -> Stales:
        """Return how stale the caller's own binding was when the callee was entered."""
        if victim.kind == "token":
            assert isinstance(victim.token, int)
            return self.entry.tokens[victim.token][1]
        if victim.kind != "initial":
            return FRESH
        assert isinstance(victim.token, tuple)
        ref, key = victim.token
        held = self.st.peek(self.ref(ref), self.key(key))
        if held is None:
            return frozenset({Stale(self.prov(victim), ENTRY)})
        return frozenset().union(*held.values())

    def mark(self, mark: Mark) -> Mark:
        source = self.prov(mark.source) if mark.source is not None else None
        if self.frame.guessing:
            mark = replace(mark, guessed=True)
        return replace(mark, chain=(self.where, *mark.chain)[:6], source=source)

    # effects

    def update(self, ref: Ref, mark: Mark, through: str) -> None:
        """An update inside the callee hits every binding that only the caller has."""
        if is_plain(self.frame.type_of(self.st, ref)):
            return
        reach, spared = self.entry.reach, set[Binding]()  # what the callee had: it marked that
        outer_through = ""
        if through:
            node = self.nodes.get(through)
            if through not in derived_params(self.frame.a, self.function):
                spared = self.argument_bindings(node)
                mark = replace(mark, meant=True)
            own = isinstance(node, ir.Name) and node.scope == "local"
            if isinstance(node, ir.Name) and own and node.name in self.frame.fn.params:
                outer_through = node.name
        here = self.mark(mark)
        if ref.many or (self.frame.alternatives and not self.of_receiver(ref)):
            here = replace(here, collapsed=True)
        self.st.mark(ref, here, lambda b: b[0] in reach or b in spared)
        if ref.kind in {"root", "init"}:
            self.frame.outer().updates[(ref, here, outer_through)] = None

    def of_receiver(self, ref: Ref) -> bool:
        """True for an array that the receiver had on entry: no other alternative has it."""
        receivers = {
            self.entry.back.get(link.ref)
            for link in next(iter(self.entry.state.env.values()), EMPTY)
        }
        receivers |= {r.base for r in receivers if r is not None and is_facet(r)}
        current: Ref | None = ref
        while current is not None:
            if current in receivers:
                return True
            current = current.base
        return False

    def argument_bindings(self, node: ir.Expr | None) -> set[Binding]:
        match node:
            case ir.Name(name=name, scope="local"):
                if self.frame.frame_ref is not None and name in self.frame.fn.cells:
                    return {(self.frame.frame_ref, name)}
                return {("var", self.frame.variable(name))}
            case ir.Attr(obj=ir.Name() as obj, name=name):
                owners = self.frame.load_name(self.st, obj)
                return {(link.ref, name) for link in owners}
            case _:
                return set()

    def apply_reads(self) -> None:
        for read in self.summary.reads:
            stales = self.stales(read.stale)
            if stales:
                self.frame.note_read(stales, read.where, (self.where, *read.calls)[:6])

    def note_raise(self) -> None:
        """The exception edge carries what the callee may have updated before it raised."""
        throw(self.frame, self.st.copy())

    def returned(self, value: Val) -> Val:
        """A live handle that was never bound inside the callee is captured at the call."""
        new: Val = {}
        for link, stale in value.items():
            prov = link.prov
            if prov.kind in {"initial", "static"} and not is_plain(link.ref.type):
                prov = Prov("capture", self.where, describe(self.expr), owner=prov.owner)
            moved = Link(link.ref, prov)
            new[moved] = new.get(moved, FRESH) | stale
        return new


def is_facet(ref: Ref) -> bool:
    return isinstance(ref.key, str) and ref.key.startswith("as:")


def shared_only(facet: Ref, val: Val, held: dict[Ref, None]) -> Val:
    """A handle that only a facet holds can alias nothing: it need not be remembered."""
    kept: Val = {}
    for link, stale in val.items():
        own = link.ref.kind == "alloc" and link.ref not in held
        initial_value = link.ref.base is facet or link.ref.base is facet.base
        if proven(stale) or not (own or initial_value or is_plain(link.ref.type)):
            kept[link] = stale
    return kept


def untouched(ref: Ref, key: Key, val: Val) -> bool:
    """True for an entry location that was loaded but neither rebound nor hit."""
    if len(val) != 1:
        return False
    (link, stale), *_ = val.items()
    return not proven(stale) and link.ref.base is ref and link.ref.key == key


def initial_as(base: Ref, key: Key, inner: Ref) -> Val:
    from aliaslint.flow.state import as_on_entry, initial_prov

    owner = is_object(base) and isinstance(key, str)
    return as_on_entry(inner, initial_prov(base, key, owner))


def nested_site(fn_key: str, at: ir.At, payload: object) -> tuple[object, ...]:
    """Name an object made in a callee by the call that led to it; deep nests are cut."""
    depth = 0
    inner = payload
    while isinstance(inner, tuple) and len(inner) == 4 and inner[0] == "via":
        depth += 1
        inner = inner[3]
    if depth >= MAX_DEPTH + 2:
        return ("via", fn_key, at, inner)
    return ("via", fn_key, at, payload)


__all__ = ["Entry", "bind", "initial", "run", "summarise"]
