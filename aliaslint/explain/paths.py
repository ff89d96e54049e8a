"""What an array or object is called at a point of the program: `cache.offset`, `state[0]`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aliaslint.flow.frame import Frame
from aliaslint.flow.state import Binding, State, holds
from aliaslint.flow.values import Key, Pos, Ref
from aliaslint.lower.ir import At

HIDDEN = ("#", "()", "<", "as:")
MAX_STEPS = 4


class Paths:
    """Names for what the state holds, as the code of one frame would write them."""

    def __init__(self, frame: Frame, st: State) -> None:
        self.frame = frame
        self.st = st
        self.variables: dict[Ref, str] = {}
        for name, val in st.env.items():
            if shown := variable_text(frame, name):
                for link in val:
                    self.variables.setdefault(link.ref, shown)

    def holders(self, refs: Iterable[Ref], own: set[Binding]) -> Iterator[str]:
        """Yield the names and fields, but for `own`, that hold one of `refs`."""
        wanted = list(dict.fromkeys(refs))
        for binding, val in self.st.bindings():
            if binding in own or not any(holds(val, ref) for ref in wanted):
                continue
            if text := self.binding(*binding):
                yield text

    def binding(self, owner: object, key: object) -> str:
        """Return how a variable or location is written; empty for what has no name."""
        if isinstance(owner, Ref):
            return self.field(owner, key)  # type: ignore[arg-type]
        return variable_text(self.frame, str(key))

    def field(self, owner: Ref, key: Key, steps: int = 0) -> str:
        """Return how the location (owner, key) is written; empty for what has no name."""
        if isinstance(key, str) and key.startswith(HIDDEN):
            return ""
        if isinstance(owner.payload, tuple) and owner.payload[0] == "frame":
            return str(key)
        if isinstance(key, str) and key.startswith("@"):
            return f"the default of {key[1:]}"
        base = self.of(owner, steps + 1)
        if owner.kind == "module" and not isinstance(key, Pos):
            return key
        return base + step_text(key) if base else ""

    def of(self, ref: Ref, steps: int = 0) -> str:
        """Return one way to write what `ref` stands for; empty if there is none."""
        if ref in self.variables:
            return self.variables[ref]
        if steps > MAX_STEPS:
            return ""
        if ref.kind == "class":
            return str(ref.payload).rpartition(":")[2]
        if ref.base is not None and ref.key is not None:
            if isinstance(ref.key, str) and ref.key.startswith(HIDDEN):
                return ""
            return self.field(ref.base, ref.key, steps)
        if isinstance(ref.payload, tuple) and ref.payload[0] == "p":
            return str(ref.payload[-1])
        for (owner, key), val in self.st.bindings():
            if isinstance(owner, Ref) and owner is not ref and holds(val, ref):
                text = self.field(owner, key, steps)  # type: ignore[arg-type]
                if text:
                    return text
        return ""


def variable_text(frame: Frame, name: str) -> str:
    """Return a variable as the source has it; empty for the interpreter's own."""
    text = name.removeprefix(frame.prefix).partition("@")[0]
    if text.startswith(("#", "<", ".", "gen")) and not text.isidentifier():
        return ""
    return text if text.isidentifier() else ""


def step_text(key: Key) -> str:
    if isinstance(key, Pos):
        return f"[{key.index!r}]" if key.kind == "i" else "[...]"
    return f".{key}"


def made_at(ref: Ref) -> tuple[str, At] | None:
    """Return the module and place where a new object or array was made."""
    payload = ref.payload
    if not isinstance(payload, tuple) or payload[0] == "frame":
        return None
    if payload[0] == "via":
        payload = payload[1:]
    if len(payload) < 2 or not isinstance(payload[0], str):
        return None
    place = payload[1]
    while isinstance(place, tuple) and place and isinstance(place[0], tuple):
        place = place[0]
    if isinstance(place, tuple) and len(place) == 4 and all(isinstance(p, int) for p in place):
        return payload[0].partition(":")[0], place
    return None
