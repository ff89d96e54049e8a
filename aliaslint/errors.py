"""The one kind of error that is the user's to mend, and how those of imports are told."""

from __future__ import annotations


def why_not_imported(error: Exception) -> str:
    """Say what an import raised; the name of the exception only where it is not that of imports."""
    return str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"


class UserError(Exception):
    """A request that cannot be carried out: wrong use, bad configuration, missing things.

    The message is one line that names what is wrong. The command line prints it and exits
    with status 2. Everything else that is raised is a defect of the tool.
    """
