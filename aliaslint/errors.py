"""The one kind of error that is the user's to mend."""

from __future__ import annotations


class UserError(Exception):
    """A request that cannot be carried out: wrong use, bad configuration, missing things.

    The message is one line that names what is wrong. The command line prints it and exits
    with status 2. Everything else that is raised is a defect of the tool.
    """
