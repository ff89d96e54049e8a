"""The cache contract: which captured handles change under the public mutators of a class.

No model is needed. Each class is made, driven through its mutators in several courses, and
before every step each of its bookkeeping arrays (integers of at most two dimensions: offsets,
paddings, lengths) is captured, directly and through `state`. A captured handle must keep its
value. Key and value buffers are written in place by design and are not judged.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
from mlx.utils import tree_flatten

from aliaslint.verify.worker import semantics
from aliaslint.verify.worker.task import describe

NOTHING_CALLED = "no public mutator could be called"
BATCH = 3
PADDING = [2, 0, 1]
LENGTHS = [3, 5, 4]
SIZE = 8
ARGUMENTS: dict[str, Any] = {
    "left_padding": PADDING,
    "max_size": SIZE,
    "max_kv_size": SIZE,
    "size": 2,
    "chunk_size": SIZE,
    "keep": 0,
    "batch_size": BATCH,
}


@dataclass
class Watch:
    """A cache under test, and what was seen to change, as `attribute over step`."""

    cache: Any
    changed: dict[str, None] = field(default_factory=dict)
    attributes: dict[str, None] = field(default_factory=dict)
    done: int = 0

    def step(self, name: str, act: Callable[[Any], Any]) -> None:
        """Capture, act, compare; a step that the class does not support is left out."""
        held = dict(handles(self.cache))
        before = {place: mx.array(array).tolist() for place, array in held.items()}
        self.attributes |= dict.fromkeys(held)
        try:
            act(self.cache)
            after = {place: array.tolist() for place, array in held.items()}
        except Exception:
            return
        self.done += 1
        self.changed |= dict.fromkeys(
            f"{place} over {name}" for place in held if before[place] != after[place]
        )


def run_contract(task: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Test every cache class with array attributes below `folder`."""
    found: list[dict[str, Any]] = []
    for path, names in cache_files(folder):
        relative = path.relative_to(folder)
        module_name = ".".join((task["package"], *relative.with_suffix("").parts))
        try:
            module = importlib.import_module(module_name)
        except (Exception, SystemExit) as error:
            found += [_failed(name, relative, describe(error, folder)) for name in names]
            continue
        classes = [getattr(module, name, None) for name in names]
        found += [test_class(c, relative, folder) for c in classes if isinstance(c, type)]
    return {"status": "ok", "classes": [c for c in found if c["attributes"] or c["problem"]]}


def cache_files(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Files that define cache classes at their top level, with the names of those."""
    for path in sorted(folder.rglob("*.py")):
        data = path.read_bytes()
        if b"Cache" not in data and b"update_and_fetch" not in data:
            continue
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError):
            continue
        caches = semantics.cache_classes(tree)
        names = [n.name for n in tree.body if isinstance(n, ast.ClassDef) and n.name in caches]
        if names:
            yield path, names


def test_class(kind: type, path: Path, folder: Path) -> dict[str, Any]:
    """Drive one class through every course; the result names what changed where."""
    watches = []
    for course in COURSES:
        try:
            watch = Watch(construct(kind))
        except Exception as error:
            return _failed(kind.__name__, path, describe(error, folder))
        course(watch)
        watches.append(watch)
    return {
        "name": kind.__name__,
        "path": path.as_posix(),
        "problem": "" if any(w.done for w in watches) else NOTHING_CALLED,
        "attributes": _together(w.attributes for w in watches),
        "changed": _together(w.changed for w in watches),
        "arguments": arguments(kind),
        "methods": methods(kind),
    }


def methods(kind: type) -> list[str]:
    """Public names of a class, and "prepare_left" where `prepare` takes a left padding."""
    found = [name for name in dir(kind) if not name.startswith("_")]
    prepare = getattr(kind, "prepare", None)
    if prepare is not None and "left_padding" in inspect.signature(prepare).parameters:
        found.append("prepare_left")
    return found


def construct(kind: type) -> Any:
    """An instance of the class. Raises what the constructor raises."""
    return kind(**arguments(kind))


def arguments(kind: type) -> dict[str, Any]:
    """The required arguments of a constructor, by their names."""
    given = {}
    takes = list(inspect.signature(kind.__init__).parameters.items())[1:]  # type: ignore[misc]
    for name, parameter in takes:
        plain = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        required = parameter.default is parameter.empty
        if plain and (required or name == "left_padding"):
            given[name] = ARGUMENTS.get(name, 4)
    return given


def handles(cache: Any) -> Iterator[tuple[str, mx.array]]:
    """Bookkeeping arrays that a caller can hold: public attributes, and those inside `state`."""
    for name, value in list(vars(cache).items()):
        if not name.startswith("_") and _is_bookkeeping(value):
            yield name, value
    try:
        leaves = cast("list[tuple[str, Any]]", tree_flatten(cache.state))
    except Exception:  # An empty cache may have no state yet.
        return
    for place, value in leaves:
        if _is_bookkeeping(value):
            yield f"state[{place}]", value


def _is_bookkeeping(value: Any) -> bool:
    return (
        isinstance(value, mx.array) and value.ndim <= 2 and mx.issubdtype(value.dtype, mx.integer)
    )


def update(length: int) -> Callable[[Any], Any]:
    """Keys and values for `length` new positions of every row."""

    def act(cache: Any) -> None:
        rows = getattr(getattr(cache, "offset", None), "shape", None) or (BATCH,)
        values = mx.ones((rows[0], 2, length, 4))
        mx.eval(cache.update_and_fetch(values, values))

    return act


def call(method: str, **given: Any) -> Callable[[Any], Any]:
    """Call a method with those of the arguments that it takes."""

    def act(cache: Any) -> None:
        function = getattr(cache, method)
        takes = inspect.signature(function).parameters
        open_ended = any(p.kind is p.VAR_KEYWORD for p in takes.values())
        function(**{k: v for k, v in given.items() if open_ended or k in takes})

    return act


def positional(method: str, *given: Any) -> Callable[[Any], Any]:
    return lambda cache: getattr(cache, method)(*given)


def decoding(watch: Watch) -> None:
    """Padded on the left, prefilled, decoded past the window, trimmed, filtered, extended."""
    watch.step("prepare", call("prepare", left_padding=PADDING))
    watch.step("update_and_fetch (prefill)", update(5))
    watch.step("trim", positional("trim", 1))
    for _ in range(SIZE):
        watch.step("update_and_fetch (decode)", update(1))
    watch.step("advance", positional("advance", 1))
    watch.step("extract", positional("extract", 0))
    other = copy.deepcopy(watch.cache)
    watch.step("extend", positional("extend", other))
    watch.step("filter", positional("filter", mx.array([0, 2])))
    watch.step("update_and_fetch (decode)", update(1))


def right_padding(watch: Watch) -> None:
    """Padded on the right: prepared with lengths, prefilled in two chunks, finalized."""
    padding = [max(LENGTHS) - length for length in LENGTHS]
    watch.step("prepare", call("prepare", lengths=LENGTHS, right_padding=padding))
    watch.step("update_and_fetch (prefill)", update(3))
    watch.step("advance", positional("advance", 3))
    watch.step("update_and_fetch (prefill)", update(4))
    watch.step("advance", positional("advance", 2))
    watch.step("finalize", call("finalize"))
    watch.step("update_and_fetch (decode)", update(1))


def round_trip(watch: Watch) -> None:
    """The state handed to a twin: what the twin does must not reach the first cache."""
    watch.step("update_and_fetch (prefill)", update(5))
    twin = copy.copy(watch.cache)
    watch.step("update_and_fetch of a shallow copy", lambda _: update(1)(twin))
    second = construct(type(watch.cache))

    def hand_over(cache: Any) -> None:
        second.state = cache.state
        if hasattr(cache, "meta_state"):
            second.meta_state = cache.meta_state
        update(1)(second)

    watch.step("update_and_fetch of a cache with the same state", hand_over)


COURSES = (decoding, right_padding, round_trip)


def _together(parts: Any) -> list[str]:
    return list(dict.fromkeys(item for part in parts for item in part))


def _failed(name: str, path: Path, problem: str) -> dict[str, Any]:
    shown = {"name": name, "path": path.as_posix(), "problem": problem}
    return shown | {"attributes": [], "changed": [], "arguments": {}, "methods": []}
