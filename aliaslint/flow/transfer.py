"""What the functions of a module yielded, as bytes from one process to another.

References are interned and belong to one analysis: they are written as what they are made of,
and found again in the table of the analysis that reads them.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from aliaslint.flow.context import Events
from aliaslint.flow.values import ENTRY, Ref, Refs

_BUILTINS = frozenset({"frozenset", "set", "complex", "Ellipsis"})


def dump(events: Events) -> bytes:
    """Return what `load` makes equal events from."""
    stream = io.BytesIO()
    _Writer(stream, pickle.HIGHEST_PROTOCOL).dump(events)
    return stream.getvalue()


def load(data: bytes, refs: Refs) -> Events:
    """Return the events that `dump` was given, in terms of another table of references.

    Raises pickle.UnpicklingError for bytes that are not of its making, or damaged.
    """
    try:
        events = _Reader(io.BytesIO(data), refs).load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # Whatever damaged bytes may lead to.
        raise pickle.UnpicklingError(str(error)) from error
    if not isinstance(events, Events):
        raise pickle.UnpicklingError("no events")
    return events


class _Writer(pickle.Pickler):
    def persistent_id(self, thing: Any) -> Any:
        if isinstance(thing, Ref):
            return thing.parts
        return () if thing is ENTRY else None


class _Reader(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, refs: Refs) -> None:
        super().__init__(stream)
        self.refs = refs

    def persistent_load(self, parts: Any) -> Any:
        return self.refs.get(*parts) if parts else ENTRY

    def find_class(self, module: str, name: str) -> Any:
        """Only what events are made of: bytes of another making cannot run anything."""
        if module == "builtins" and name in _BUILTINS:
            return super().find_class(module, name)
        if module.startswith("aliaslint."):
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of events")
