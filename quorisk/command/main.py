"""The `quorisk` command. Everything heavy is imported by the verb that needs it, so that --help is there at once."""

import atexit
import gc
import os
import sys
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

from typer.exceptions import TyperException

from quorisk.command import ask, decide, grids, measure  # noqa: F401  # their verbs
from quorisk.command.app import app, by_option
from quorisk.kernels.errors import ConfigError, QuoriskError
from quorisk.sparkjobs.remote import refusal

FAILED, INTERRUPTED = 1, 130
MOST_CHARACTERS = 2000
"""The length at which an error's line is cut."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The console entry: exits with 0 if done, else after one line on stderr: 1 failed, 2 bad input, 130 Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    atexit.register(gc.freeze)  # or else Python looks through all objects as it ends, for half a second
    try:
        _check_text(given)
        code = app(args=given or ["--help"], prog_name="quorisk", standalone_mode=False)
        if sys.stdout:  # None if it is closed
            sys.stdout.flush()
    except QuoriskError as error:
        _exit(f"error: {_said(error)}", error.exit_code)
    except TyperException as error:
        _exit(f"error: {error.format_message()}", error.exit_code)
    except OSError as error:  # such as a full disk under stdout
        _let_go_of_output()
        _exit(f"error: {error}", FAILED)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:  # which is also how Typer tells of Ctrl-C
        _exit("interrupted", INTERRUPTED)
    sys.exit(code)


def _let_go_of_output() -> None:
    """Drops what stdout cannot take: Python would try again as it ends, and on some of its releases exit with 120."""
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _said(error: QuoriskError) -> str:
    """An error's line, in which an argument is called by the option that gives it."""
    line = f"`{error.argument}`{error.text}" if isinstance(error, ConfigError) and error.argument else str(error)
    return by_option(line)


def _check_text(arguments: Sequence[str]) -> None:
    """Raises ConfigError if an argument would make a terminal do something, or cannot be written into a report, or if
    results shall go where no file can be written."""
    for argument in arguments:
        if any(_is_control(character) for character in argument):
            raise ConfigError(f"{argument}: has control characters, or is not UTF-8; rename it")
    for option, value in pairwise(part for argument in arguments for part in argument.split("=", 1)):
        if option in ("--out", "--plot") and (why := refusal(value)):
            raise ConfigError(f"{option} {why}")


def _is_control(character: str) -> bool:
    """Whether it makes a terminal do something, or stands for a byte of a file name that is not UTF-8."""
    return unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t"


def _exit(line: str, code: int) -> NoReturn:
    said = "".join(ascii(c)[1:-1] if _is_control(c) else c for c in " ".join(line.split()))
    print(said if len(said) <= MOST_CHARACTERS else f"{said[: MOST_CHARACTERS - 3]}...", file=sys.stderr)
    sys.exit(code)
