"""The `quorisk` command. Everything heavy is imported by the verb that needs it, so that --help is there at once."""

import atexit
import gc
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, pairwise
from typing import NoReturn, TextIO

from typer.exceptions import Abort, TyperException

from quorisk.analysis.experiment.characters import is_control, one_line
from quorisk.command import ask, begin, cluster, decide, depends, from_data, grids, measure, museum  # noqa: F401
from quorisk.command.app import app, by_option
from quorisk.command.interrupted import INTERRUPTED, interrupted
from quorisk.kernels.errors import ConfigError, QuoriskError
from quorisk.sparkjobs.remote import remote_refusal

FAILED = 1
MOST_CHARACTERS = 2000
"""The length at which an error's line is cut."""
_OF_KAFKA = {"--nodes": "--brokers", "--racks": "--zones", "--quorums": "--topics"}
"""Second names of options: an error has these where they were given."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The console entry: exits with 0 if done, else after one line on stderr: 1 failed, 2 bad input, 130 Ctrl-C."""
    _open_what_is_closed()
    given = list(sys.argv[1:] if arguments is None else arguments)
    atexit.register(gc.freeze)  # or else Python looks through all objects as it ends, for half a second
    try:
        _check_text(given)
        _check_environment()
        code = app(args=given or ["--help"], prog_name="quorisk", standalone_mode=False)
        sys.stdout.flush()
    except QuoriskError as error:
        _exit(f"error: {_said(error, given)}", error.exit_code)
    except TyperException as error:
        _exit(f"error: {_of_option(error, given)}", error.exit_code)
    except OSError as error:  # such as a full disk under stdout
        _let_go(sys.stdout)
        _exit(f"error: {error}", FAILED)
    except MemoryError:
        _exit("error: out of memory", FAILED)
    except (KeyboardInterrupt, Abort):  # the latter at a question
        code = INTERRUPTED
    if code == INTERRUPTED:  # which is also how Typer tells of Ctrl-C
        _let_go(sys.stdout)
        interrupted()
    sys.exit(code)


def _open_what_is_closed() -> None:
    """Opens closed standard streams on the null device: else a file opened later would get their number, and output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, "w" if number else "r"))  # noqa: SIM115  # it stays open


def _let_go(stream: TextIO) -> None:
    """Drops output that a stream cannot take: Python would try again as it ends, and on some releases exit with 120."""
    try:
        stream.flush()
    except OSError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def _said(error: QuoriskError, given: Sequence[str]) -> str:
    """Returns an error's line, with options, as they were given, in the place of Python arguments."""
    said = f"`{error.argument}`{error.text}" if isinstance(error, ConfigError) and error.argument else str(error)
    line = by_option(said)
    for option, other in _OF_KAFKA.items():
        if any(each.partition("=")[0] == other for each in given):
            line = line.replace(option, other)
    return line


def _of_option(error: TyperException, given: Sequence[str]) -> str:
    """Returns an error's line; of the value of an option that is given once, with that value."""
    line = error.format_message().replace("Value error, ", "").replace("Input should be", "should be")
    named = re.match(r"Invalid value for '(--[\w-]+)': ", line)
    if named and given[:-1].count(named[1]) == 1:
        return f"{named[1]} {given[given.index(named[1]) + 1]}: {line[named.end() :]}"
    return line


def _check_text(arguments: Sequence[str]) -> None:
    """Raises ConfigError if an argument would make a terminal do something, or cannot be written into a report, or if
    results are to go where no file can be written."""
    for argument in arguments:
        if any(is_control(character) for character in argument):
            raise ConfigError(f"{argument}: has control characters, or is not UTF-8; rename it")
    parts = (each.split("=", 1) if each.startswith("-") else [each] for each in arguments)
    for option, value in pairwise(["quorisk", *chain.from_iterable(parts)]):
        if not value and option != "--title":  # such as a shell's variable that is not set: a path would be this folder
            raise ConfigError(f"after {option}: an empty argument")
        if option in ("--out", "--plot") and (why := remote_refusal(value)):
            raise ConfigError(f"{option} {why}")


def _check_environment() -> None:
    """Raises ConfigError if a variable that Numba reads would end it, or have it print a traceback."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "")
    if threads and not re.fullmatch(r"\s*0*[1-9]\d{0,8}\s*", threads):
        raise ConfigError(f"NUMBA_NUM_THREADS = {threads}: an integer from 1 up, or leave it unset")


def _exit(line: str, code: int) -> NoReturn:
    said = one_line(line)
    with suppress(OSError):  # a full disk under stderr does not change how this ends
        print(said if len(said) <= MOST_CHARACTERS else f"{said[: MOST_CHARACTERS - 3]}...", file=sys.stderr)
    _let_go(sys.stderr)
    sys.exit(code)
