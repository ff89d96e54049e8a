"""The shapes of the mutants: ways in which a captured offset can outlive an update.

A shape of one function is a small program over the usual three lines of an attention layer
(rotate queries, rotate keys, update the cache). Its placeholders are

- `CACHE`: the cache of the original lines,
- `BETWEEN`: the statements between the query rotation and the update (the key rotation),
- `UPDATE`: the original update; `UPDATE_BY(f)`: the same through `f(cache, keys, values)`,
- `ROTATE(e)`: the original query rotation with the offset `e`.

The name `mutant_capture` is bound where the live handle is captured: this is the line at which
a finding is expected, or the line of the prelude that reads the offset. `prelude` is put at the
end of the imports of the module. In the healthy twin of a shape each captured `.offset` is
copied at once (`mx.array(CACHE.offset)`), with all else alike: a twin must be silent.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape within one function: `body` replaces the statements from rotation to update."""

    name: str
    body: str
    prelude: str = ""


HELPER = """
def mutant_position(cache):
    return cache.offset
"""
HELPER_TUPLE = """
def mutant_place(cache):
    return (None, cache.offset)
"""
HELPER_CHAIN = """
def mutant_inner(cache):
    position = cache.offset
    return position

def mutant_position(cache):
    if cache is None:
        return 0
    return mutant_inner(cache)
"""
VIEW = """
class MutantView:
    def __init__(self, cache):
        self.cache = cache

    @property
    def position(self):
        return self.cache.offset
"""
RECORD = """
import dataclasses
from typing import Any

@dataclasses.dataclass
class MutantRecord:
    position: Any
    window: int = 0
"""
STORE = """
def mutant_store(cache, keys, values):
    return cache.update_and_fetch(keys, values)
"""
STORE_CHAIN = """
class MutantWriter:
    def __init__(self, cache):
        self.target = cache

    def write(self, keys, values):
        return self.target.update_and_fetch(keys, values)

def mutant_store(cache, keys, values):
    writer = MutantWriter(cache)
    return writer.write(keys, values)
"""
YIELD = """
def mutant_positions(cache):
    yield cache.offset
"""

SHAPES: tuple[Shape, ...] = (
    Shape("plain", "mutant_capture = CACHE.offset\nBETWEEN\nUPDATE\nROTATE(mutant_capture)"),
    Shape(
        "conditional",
        "mutant_capture = CACHE.offset if CACHE is not None else 0\n"
        "BETWEEN\nUPDATE\nROTATE(mutant_capture)",
    ),
    Shape(
        "getattr",
        "mutant_capture = getattr(CACHE, 'offset')\nBETWEEN\nUPDATE\nROTATE(mutant_capture)",
    ),
    Shape(
        "walrus",
        "if (mutant_capture := CACHE.offset) is not None:\n    BETWEEN\nUPDATE\n"
        "ROTATE(mutant_capture)",
    ),
    Shape(
        "second-name",
        "mutant_same = CACHE\nmutant_capture = mutant_same.offset\nmutant_again = mutant_capture\n"
        "BETWEEN\nUPDATE\nROTATE(mutant_again)",
    ),
    Shape(
        "late-snapshot",
        "mutant_capture = CACHE.offset\nBETWEEN\nUPDATE\n"
        "mutant_late = mx.array(mutant_capture)\nROTATE(mutant_late)",
    ),
    Shape(
        "late-arithmetic",
        "mutant_capture = CACHE.offset\nBETWEEN\nUPDATE\nROTATE(mutant_capture + 0)",
    ),
    Shape(
        "finally",
        "mutant_capture = CACHE.offset\nBETWEEN\ntry:\n    UPDATE\nfinally:\n"
        "    ROTATE(mutant_capture)",
    ),
    Shape("list", "mutant_capture = [CACHE.offset]\nBETWEEN\nUPDATE\nROTATE(mutant_capture[0])"),
    Shape(
        "dict",
        "mutant_capture = {'position': CACHE.offset}\nBETWEEN\nUPDATE\n"
        "ROTATE(mutant_capture['position'])",
    ),
    Shape(
        "tuple",
        "mutant_capture, mutant_window = (CACHE.offset, 0)\nBETWEEN\nUPDATE\n"
        "ROTATE(mutant_capture)",
    ),
    Shape(
        "self", "self.mutant_capture = CACHE.offset\nBETWEEN\nUPDATE\nROTATE(self.mutant_capture)"
    ),
    Shape(
        "dataclass",
        "mutant_capture = MutantRecord(position=CACHE.offset)\nBETWEEN\nUPDATE\n"
        "ROTATE(mutant_capture.position)",
        RECORD,
    ),
    Shape(
        "closure",
        "mutant_capture = CACHE.offset\ndef mutant_read():\n    return mutant_capture\n"
        "BETWEEN\nUPDATE\nROTATE(mutant_read())",
    ),
    Shape(
        "default-argument",
        "mutant_capture = lambda position=CACHE.offset: position\nBETWEEN\nUPDATE\n"
        "ROTATE(mutant_capture())",
    ),
    Shape(
        "partial",
        "mutant_capture = functools.partial(lambda position: position, CACHE.offset)\n"
        "BETWEEN\nUPDATE\nROTATE(mutant_capture())",
        "import functools",
    ),
    Shape(
        "helper",
        "mutant_capture = mutant_position(CACHE)\nBETWEEN\nUPDATE\nROTATE(mutant_capture)",
        HELPER,
    ),
    Shape(
        "helper-tuple",
        "_, mutant_capture = mutant_place(CACHE)\nBETWEEN\nUPDATE\nROTATE(mutant_capture)",
        HELPER_TUPLE,
    ),
    Shape(
        "helper-chain",
        "mutant_capture = mutant_position(CACHE)\nBETWEEN\nUPDATE\nROTATE(mutant_capture)",
        HELPER_CHAIN,
    ),
    Shape(
        "property",
        "mutant_view = MutantView(CACHE)\nmutant_capture = mutant_view.position\n"
        "BETWEEN\nUPDATE\nROTATE(mutant_capture)",
        VIEW,
    ),
    Shape(
        "generator",
        "mutant_capture = next(mutant_positions(CACHE))\nBETWEEN\nUPDATE\nROTATE(mutant_capture)",
        YIELD,
    ),
    Shape(
        "update-in-helper",
        "mutant_capture = CACHE.offset\nBETWEEN\nUPDATE_BY(mutant_store)\nROTATE(mutant_capture)",
        STORE,
    ),
    Shape(
        "update-in-method",
        "mutant_capture = CACHE.offset\nBETWEEN\nUPDATE_BY(mutant_store)\nROTATE(mutant_capture)",
        STORE_CHAIN,
    ),
)
