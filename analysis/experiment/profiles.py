"""Profiles: files of documented physical figures, each with what it is and where it comes from.

    protocol = "bookkeeper"
    about = "bookies with an SSD each and a journal that is synced"

    [rates.bookie_is_lost]
    value = "1 % / year"
    means = "the SSD of a bookie fails for good, and everything on it is lost"
    source = "Backblaze Drive Stats, SSDs, 2022 and 2023: 0.9 to 1.05 % a year"

An experiment file takes them all with `profile = "NAME"`, and overrides those that it knows better.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from quorisk.analysis.experiment.characters import check_words
from quorisk.analysis.experiment.keys import show
from quorisk.kernels.errors import ConfigError

FOLDER = "profiles"
BUILT_IN = Path(__file__).absolute().parents[2] / "configs" / FOLDER
"""Beside the packages, or in the one that a wheel installs."""
_FIELDS = {"value", "means", "source"}


class Figure(NamedTuple):
    """A figure of a profile."""

    value: Any
    """The value as the profile's file states it."""
    means: str
    source: str
    """Where the figure comes from; "assumed" if it has no source."""


class Profile(NamedTuple):
    """A profile's file."""

    name: str
    about: str
    figures: dict[str, Figure]
    """By dotted key."""


def load(name: object, protocol: str, folder: Path) -> Profile:
    """Returns the profile of that name, beside an experiment's file in `folder` or built in. Raises ConfigError."""
    known = sorted({path.stem for place in (folder / FOLDER, BUILT_IN) for path in place.glob("*.toml")})
    if name not in known:
        raise ConfigError(f"profile = {show(name)}: one of {', '.join(known)}")
    path = next(path for place in (folder / FOLDER, BUILT_IN) if (path := place / f"{name}.toml").is_file())
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:  # TOMLDecodeError and UnicodeDecodeError among them
        raise ConfigError(f"profile = {show(name)}: {path} cannot be read: {error}") from None
    if document.get("protocol") != protocol:
        raise ConfigError(f"profile = {show(name)}: is for {document.get('protocol')}, not for {protocol}")
    about = check_words(f"{path}: about", str(document.get("about", "")))
    tables = {table: content for table, content in document.items() if table not in ("protocol", "about")}
    try:
        figures = {
            f"{table}.{key}": _figure(f"{table}.{key}", each) for table in tables for key, each in tables[table].items()
        }
    except AttributeError:
        raise ConfigError(
            f"profile = {show(name)}: {path}: may only have protocol, about and tables of figures"
        ) from None
    return Profile(str(name), about, figures)


def _figure(name: str, given: object) -> Figure:
    if not isinstance(given, Mapping) or set(given) != _FIELDS:
        raise ConfigError(f"{name}: each figure of a profile has {', '.join(sorted(_FIELDS))}")
    means, source = (check_words(f"{name}.{each}", str(given[each])) for each in ("means", "source"))
    return Figure(given["value"], means, source)
