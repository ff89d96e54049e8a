"""All rewrites in one pass, as a fix of a file needs: spans hold only before the first."""

from __future__ import annotations

from aliaslint.codemods.command import EditCommand
from aliaslint.codemods.rebind import RebindCommand
from aliaslint.codemods.snapshot import SnapshotCommand


class EveryCommand(EditCommand):
    """Rebind and snapshot together; see `RebindCommand` and `SnapshotCommand`."""

    DESCRIPTION = (
        "Rebind in-place updates and copy captures, whatever the aliaslint analysis of the "
        "module asks for."
    )
    HANDLERS = {**RebindCommand.HANDLERS, **SnapshotCommand.HANDLERS}  # noqa: RUF012
