"""What may look on while functions are interpreted.

An analysis has no observer unless somebody asks about a place (`aliaslint explain`). Without one
it costs a test for None a statement and a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aliaslint.flow.frame import Frame
    from aliaslint.flow.state import State
    from aliaslint.flow.values import Val
    from aliaslint.lower import ir


class Observer(Protocol):
    """Is shown statements and calls. It must not change what it is shown."""

    def enters(self, frame: Frame, stmt: ir.Stmt, st: State) -> None:
        """`stmt` is about to run from the state `st`."""

    def leaves(self, frame: Frame, stmt: ir.Stmt, st: State | None) -> None:
        """`stmt` has run; `st` is None where control does not go on behind it."""

    def called(self, frame: Frame, call: ir.Call, val: Val, st: State) -> None:
        """`call` gave back `val`."""
