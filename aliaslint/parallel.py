"""Work spread over processes that are copies of this one.

A copy has everything that this process knows, so that nothing has to be handed over but numbers
of tasks and what comes of them. Where processes cannot be copied, all is done here.
"""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import IO

_TASK = struct.Struct("<I")
_HEAD = struct.Struct("<IQ")
MAX_JOBS = 8  # Each holds its own copy of what it changes.


def processors(most: int | None = MAX_JOBS) -> int:
    """Return how many processes are worth while where the user did not say, at `most` so many."""
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        available = os.cpu_count() or 1
    return available if most is None else min(available, most)


def spread(work: Callable[[int], bytes], sizes: Sequence[int], jobs: int) -> list[bytes]:
    """Return `work(number)` for the number of each size, in order; large ones start first.

    What a process could not do, or died of, is done here once more: an exception of `work` is
    raised as if nothing had been spread.
    """
    if not _can_copy() or min(jobs, len(sizes)) < 2:
        return [work(number) for number in range(len(sizes))]
    import tempfile

    order = sorted(range(len(sizes)), key=lambda number: -sizes[number])
    done: dict[int, bytes] = {}
    with ExitStack() as files:
        queue = files.enter_context(tempfile.TemporaryFile(buffering=0))
        queue.write(b"".join(map(_TASK.pack, order)))
        queue.seek(0)
        helpers = min(jobs, len(sizes)) - 1
        answers = [files.enter_context(tempfile.TemporaryFile()) for _ in range(helpers)]
        children: list[int] = []
        try:
            for answer in answers:
                children.append(_copy(work, queue, answer))
            done.update(_drain(work, queue))
            while children:
                os.waitpid(children[-1], 0)
                children.pop()
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        for answer in answers:
            done.update(_read(answer))
    return [done[number] if number in done else work(number) for number in range(len(sizes))]


def _can_copy() -> bool:
    """Whether this process can be copied: a copy of one with several threads may hang."""
    import threading

    return hasattr(os, "fork") and threading.active_count() == 1


def _copy(work: Callable[[int], bytes], queue: IO[bytes], answer: IO[bytes]) -> int:
    """Start a copy of this process that works on the queue, and return its number."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that we do not have
        child = os.fork()
    if child:
        return child
    try:
        for number, data in _drain(work, queue):
            answer.write(_HEAD.pack(number, len(data)) + data)
            answer.flush()
    finally:
        os._exit(0)  # Nothing that this process was about to do is the copy's business.


def _drain(work: Callable[[int], bytes], queue: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Work on tasks that no other process has taken: all of them read one open file."""
    while len(task := queue.read(_TASK.size)) == _TASK.size:
        (number,) = _TASK.unpack(task)
        try:
            data = work(number)
        except Exception:  # Raised again where the caller can see it.
            continue
        yield number, data


def _read(answer: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield what a process has answered, as far as it came."""
    answer.seek(0)
    while len(head := answer.read(_HEAD.size)) == _HEAD.size:
        number, length = _HEAD.unpack(head)
        data = answer.read(length)
        if len(data) == length:
            yield number, data
