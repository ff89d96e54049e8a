"""The scenarios: the same tokens, decoded one by one with plain caches and batched in many ways.

Every scenario is teacher-forced over the same token streams, so that the logits of (row,
position) mean the same thing in all of them and can be compared step by step.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import mlx.core as mx
import numpy as np

from aliaslint.verify.worker.build import Unsupported
from aliaslint.verify.worker.caches import CacheMaker, Caches, each, merge, shift_offsets

WINDOW = 8
LONG = (5, 12, 9)  # Prompt lengths: ragged, and longer than the window but for one.
SHORT = (3, 6, 4)  # All shorter than the window: trimmable, and rotate only while decoding.
STEPS = 5
CHUNK = 4
COLUMNS = 4096  # Logits kept of each row; a vocabulary that cannot be made small has more.

Logits = dict[tuple[int, int], np.ndarray]


@dataclass
class Session:
    """One model with its caches and token streams; what was prefilled once is kept."""

    model: Any
    maker: CacheMaker
    vocabulary: int
    tokens: list[list[int]] = field(default_factory=list)
    prefilled: dict[tuple[str, int, int], tuple[Caches, mx.array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        generator = np.random.default_rng(7)
        highest = min(self.vocabulary, 100)
        self.tokens = generator.integers(3, highest, size=(3, 64)).tolist()

    def forward(self, rows: mx.array | list[list[int]], caches: Caches) -> mx.array:
        """Logits of shape (rows, positions, vocabulary)."""
        tokens = rows if isinstance(rows, mx.array) else mx.array(cast("Any", rows))
        given = self.model(tokens, cache=caches)
        logits: mx.array = given.logits if hasattr(given, "logits") else given
        return logits

    def prefill(self, row: int, length: int, kind: str = "plain") -> tuple[Caches, mx.array]:
        """Plain caches that hold the first `length` tokens of a row, and its last logits."""
        key = (kind, row, length)
        if key not in self.prefilled:
            caches = self.maker.plain() if kind == "plain" else self.maker.rotating(WINDOW)
            logits = self.forward([self.tokens[row][:length]], caches)[:, -1]
            mx.eval(logits, [cache.state for cache in caches])
            self.prefilled[key] = caches, logits
        caches, logits = self.prefilled[key]
        return copy.deepcopy(caches), logits

    def decode(
        self, caches: Caches, positions: dict[int, int], steps: int, into: Logits
    ) -> dict[int, int]:
        """Feed each row its next tokens, `steps` times; return where the rows then stand."""
        for _ in range(steps):
            batch = [[self.tokens[row][at]] for row, at in positions.items()]
            keep(into, positions, self.forward(batch, caches)[:, -1])
            positions = {row: at + 1 for row, at in positions.items()}
        return positions


def keep(into: Logits, positions: dict[int, int], logits: mx.array) -> None:
    """Store the logits that row r gave for its token at `positions[r]`."""
    values = np.array(logits[:, :COLUMNS].astype(mx.float32))
    into.update({(row, at): values[i] for i, (row, at) in enumerate(positions.items())})


def sequential(session: Session, lengths: Sequence[int], steps: int, kind: str) -> Logits:
    """The reference: each row alone, with plain caches."""
    found: Logits = {}
    for row, length in enumerate(lengths):
        caches, logits = session.prefill(row, length - 1, kind)
        keep(found, {row: length - 2}, logits)
        session.decode(caches, {row: length - 1}, steps, found)
    return found


def left_padded(session: Session) -> Logits:
    width = max(LONG) - 1
    padding = [width - (length - 1) for length in LONG]
    caches = session.maker.left_padded(padding)
    batch = [[0] * p + session.tokens[r][: width - p] for r, p in enumerate(padding)]
    found: Logits = {}
    keep(found, {r: n - 2 for r, n in enumerate(LONG)}, session.forward(batch, caches)[:, -1])
    session.decode(caches, {r: n - 1 for r, n in enumerate(LONG)}, STEPS, found)
    return found


def right_padded(session: Session, chunk: int | None = None) -> Logits:
    lengths = [length - 1 for length in LONG]
    padding = [max(lengths) - length for length in lengths]
    caches = merge([session.maker.plain() for _ in LONG])
    each(caches, "prepare", lambda call: call(lengths=lengths, right_padding=padding))
    batch = mx.array([session.tokens[r][:n] + [0] * padding[r] for r, n in enumerate(lengths)])
    found: Logits = {}
    step = chunk or batch.shape[1]
    for start in range(0, batch.shape[1], step):
        logits = session.forward(batch[:, start : start + step], caches)
        mx.eval(logits, [cache.state for cache in caches])
        for row, length in enumerate(lengths):
            if start < length <= start + step:
                keep(found, {row: length - 1}, logits[row : row + 1, length - 1 - start])
    each(caches, "finalize", lambda call: call())
    session.decode(caches, dict(enumerate(lengths)), STEPS, found)
    return found


def chunked(session: Session) -> Logits:
    return right_padded(session, CHUNK)


def history(session: Session, shift: int = 0) -> Logits:
    caches = merge([session.prefill(row, length - 1)[0] for row, length in enumerate(LONG)])
    shift_offsets(caches, shift)
    found: Logits = {}
    session.decode(caches, {r: n - 1 for r, n in enumerate(LONG)}, STEPS, found)
    return found


def join_and_leave(session: Session) -> Logits:
    """Rows 0 and 1 decode, row 2 joins them, row 1 leaves."""
    found: Logits = {}
    caches = merge([session.prefill(row, LONG[row] - 1)[0] for row in (0, 1)])
    positions = session.decode(caches, {r: LONG[r] - 1 for r in (0, 1)}, 2, found)
    joining = merge([session.prefill(2, LONG[2] - 1)[0]])
    for cache, other in zip(caches, joining, strict=True):
        cache.extend(other)
    positions = session.decode(caches, {**positions, 2: LONG[2] - 1}, 2, found)
    each(caches, "filter", lambda call: call([0, 2]))
    session.decode(caches, {r: at for r, at in positions.items() if r != 1}, 2, found)
    return found


def trim_and_redecode(session: Session) -> Logits:
    caches = merge([session.prefill(row, length - 1)[0] for row, length in enumerate(SHORT)])
    found: Logits = {}
    positions = session.decode(caches, {r: n - 1 for r, n in enumerate(SHORT)}, 2, found)
    if not all(cache.is_trimmable() for cache in caches):
        raise Unsupported("its caches cannot be trimmed")
    each(caches, "trim", lambda call: call(2))
    session.decode(caches, {row: at - 2 for row, at in positions.items()}, 3, found)
    return found


def rotation(session: Session) -> Logits:
    rows = [session.prefill(row, length - 1, "rotating")[0] for row, length in enumerate(SHORT)]
    caches = merge(rows)
    found: Logits = {}
    session.decode(caches, {r: n - 1 for r, n in enumerate(SHORT)}, WINDOW + 2, found)
    return found


def merged_alone(session: Session) -> Logits:
    caches = merge([session.prefill(2, LONG[2] - 1)[0]])
    found: Logits = {}
    session.decode(caches, {2: LONG[2] - 1}, STEPS, found)
    return found


@dataclass(frozen=True)
class Scenario:
    """One way into a batch, with the sequential reference that it is compared with."""

    name: str
    run: Callable[[Session], Logits]
    reference: str


REFERENCES: dict[str, Callable[[Session], Logits]] = {
    "sequential": lambda session: sequential(session, LONG, STEPS + 1, "plain"),
    "sequential-short": lambda session: sequential(session, SHORT, 4, "plain"),
    "sequential-rotating": lambda session: sequential(session, SHORT, WINDOW + 2, "rotating"),
}
SCENARIOS = (
    Scenario("left-padded", left_padded, "sequential"),
    Scenario("right-padded", right_padded, "sequential"),
    Scenario("chunked-prefill", chunked, "sequential"),
    Scenario("history", history, "sequential"),
    Scenario("join-and-leave", join_and_leave, "sequential"),
    Scenario("trim-and-redecode", trim_and_redecode, "sequential-short"),
    Scenario("rotation", rotation, "sequential-rotating"),
    Scenario("merged-alone", merged_alone, "sequential"),
)
CONTROL = "control"
