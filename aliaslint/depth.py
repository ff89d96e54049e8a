"""Room for passes that follow nested code with one call inside another."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

FRAMES = 5_000  # A pass takes three to five for each level of the tree.
BYTES_PER_FRAME = 1_600  # Python 3.11 takes up to about 500, libcst's parser included.


def frames() -> int:
    """Return how many calls this thread's stack has room for, as far as that is known."""
    if threading.current_thread() is not threading.main_thread():
        return 0  # Its stack may be a small one.
    try:
        import resource
    except ImportError:  # not on every system
        return 0
    size, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return FRAMES if size == resource.RLIM_INFINITY else min(FRAMES, size // BYTES_PER_FRAME)


@contextmanager
def room() -> Iterator[None]:
    """Let calls nest as deeply as the stack allows; beyond that they raise RecursionError.

    Python's own limit holds a few hundred branches of one `elif` chain, which CPython compiles.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, frames()))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
