"""Work in a thread of its own, beside what the main thread waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
STACK = 256 << 20  # The analysis recurses; threads other than the first get little by default.


class Aside(Generic[T]):
    """The outcome of `work()`, which starts at once.

    The thread does not keep the process alive: an interrupt of the main thread ends both.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._outcome: list[T] = []
        self._error: BaseException | None = None
        before = threading.stack_size(STACK)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        threading.stack_size(before)

    def _run(self) -> None:
        try:
            self._outcome.append(self._work())
        except BaseException as error:
            self._error = error

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> T:
        """Wait for the outcome; raises what the work raised."""
        while not self.done:
            self._thread.join(0.5)  # So that an interrupt is heard on every platform.
        if self._error is not None:
            raise self._error
        return self._outcome[0]
