"""All rewrites in one pass, as a fix of a file needs: spans hold only before the first."""

from __future__ import annotations

from aliaslint.codemods.command import EditCommand
from aliaslint.codemods.native_rank import NativeRankCommand
from aliaslint.codemods.rebind import RebindCommand
from aliaslint.codemods.snapshot import SnapshotCommand


class EveryCommand(EditCommand):
    """Rebind, snapshot and call at native rank together; see the three other commands."""

    DESCRIPTION = (
        "Rebind in-place updates, copy captures and call RoPE at native rank, whatever the "
        "aliaslint analysis of the module asks for."
    )
    HANDLERS = {  # noqa: RUF012
        **RebindCommand.HANDLERS,
        **SnapshotCommand.HANDLERS,
        **NativeRankCommand.HANDLERS,
    }
    PARTS = {**NativeRankCommand.PARTS, **SnapshotCommand.PARTS}  # noqa: RUF012
