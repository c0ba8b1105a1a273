"""The end of the command at Ctrl-C: exit status 130 and one line."""

import sys
from contextlib import suppress
from typing import NoReturn

INTERRUPTED = 130
"""Exit status after Ctrl-C."""


def interrupted() -> NoReturn:
    """Prints a line, and exits with INTERRUPTED.

    If Ctrl-C came while a text was executed, as in the making of a named tuple, Python has noted it as unhandled, and
    `python -m quorisk` would at its end kill itself with SIGINT instead of exiting with this status. Python takes that
    back where it executes another text.
    """
    exec("")
    with suppress(OSError):  # a full disk under stderr does not change how this ends
        print("interrupted", file=sys.stderr, flush=True)
    sys.exit(INTERRUPTED)
