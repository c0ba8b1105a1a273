"""Profiles: files of documented physical figures, each with its meaning, its uncertainty and its source.

    protocol = "bookkeeper"
    about = "bookies with an SSD each and a journal that is synced"

    [rates.bookie_is_lost]
    value = "1 % / year"
    error_factor = 1.5
    means = "the SSD of a bookie fails for good, and everything on it is lost"
    source = "Backblaze Drive Stats, SSDs, 2022 and 2023: 0.9 to 1.05 % a year"

An experiment file takes them all with `profile = "NAME"`, and overrides those that it knows better. So does a profile:
one made from data (`quorisk rates`) has the figures that these give, and all others from the profile that it names.
"""

import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from quorisk.analysis.experiment.characters import check_words
from quorisk.analysis.experiment.keys import as_float, as_toml
from quorisk.analysis.experiment.known import FIELDS
from quorisk.kernels.errors import ConfigError

FOLDER = "profiles"
BUILT_IN = Path(__file__).absolute().parents[2] / "configs" / FOLDER
"""The folder of built-in profiles, beside the packages, or in the one that a wheel installs."""
_WORDS = ("means", "source")
_OWN = ("protocol", "profile", "about", "date")


class ProfileFigure(NamedTuple):
    """A figure of a profile."""

    given: Any
    """The value as the profile's file states it, or a table that also says how well it is known."""
    means: str
    source: str
    """Source of the figure; "assumed" if it has none."""


class Profile(NamedTuple):
    """A profile's file, with the figures that it takes from others."""

    files: tuple[Path, ...]
    """Its own file, and those of the profiles that it takes figures from."""
    protocol: str
    about: str
    figures: dict[str, ProfileFigure]
    """Figures by dotted key."""

    @property
    def name(self) -> str:
        return self.files[0].stem


def load_profile(name: object, protocol: str, folder: Path) -> Profile:
    """Returns the profile of that name, beside an experiment's file in `folder` or built in. Raises ConfigError if
    there is none, or if it is for another protocol.
    """
    profile = find_profile(name, folder)
    if profile.protocol != protocol:
        raise ConfigError(f"profile = {as_toml(name)}: is for {profile.protocol}, not for {protocol}")
    return profile


def find_profile(name: object, folder: Path, within: tuple[str, ...] = ()) -> Profile:
    """Does the same as `load_profile`, for any protocol. `within` are the profiles that take figures from it."""
    places = folder / FOLDER, BUILT_IN
    known = sorted({path.stem for place in places for path in place.glob("*.toml")} - set(within))
    if name not in known:
        raise ConfigError(f"profile = {as_toml(name)}: one of {', '.join(known)}")
    path = next(path for place in places if (path := place / f"{name}.toml").is_file())
    try:
        document = tomllib.loads(path.read_text("utf-8-sig"), parse_float=as_float)
    except (OSError, ValueError, ConfigError) as error:  # TOMLDecodeError and UnicodeDecodeError among them
        raise ConfigError(f"profile = {as_toml(name)}: {path} cannot be read: {error}") from None
    try:
        return _read(path, document, folder, within)
    except ConfigError as error:
        raise ConfigError(f"profile = {as_toml(name)}: {path}: {error}") from None


def _read(path: Path, document: Mapping[str, Any], folder: Path, within: tuple[str, ...]) -> Profile:
    protocol, about = (check_words(own, str(document.get(own, ""))) for own in ("protocol", "about"))
    if "date" in document and not isinstance(document["date"], date):
        raise ConfigError(f"date = {as_toml(document['date'])}: a date such as 2026-11-23, without quotes")
    base = find_profile(document["profile"], folder, (*within, path.stem)) if "profile" in document else None
    if base and base.protocol != protocol:
        raise ConfigError(f"profile = {as_toml(base.name)}: is for {base.protocol}, not for {protocol}")
    tables = {table: content for table, content in document.items() if table not in _OWN}
    if not all(isinstance(content, dict) for content in tables.values()):
        raise ConfigError(f"may only have {', '.join(_OWN)} and tables of figures")
    figures = dict(base.figures) if base else {}
    for table, content in tables.items():
        figures |= dict(_figures(table, content))
    return Profile((path, *(base.files if base else ())), protocol, about, figures)


def _figures(table: str, content: Mapping[str, Any]) -> Iterator[tuple[str, ProfileFigure]]:
    """The figures of a table and of those in it, by dotted key."""
    for key, given in content.items():
        if isinstance(given, Mapping) and given and all(isinstance(each, Mapping) for each in given.values()):
            yield from _figures(f"{table}.{key}", given)
        else:
            yield f"{table}.{key}", _figure(f"{table}.{key}", given)


def _figure(name: str, given: object) -> ProfileFigure:
    if not isinstance(given, Mapping) or not given.keys() <= {*_WORDS, *FIELDS} or not set(_WORDS) < given.keys():
        raise ConfigError(
            f"{name}: each figure of a profile has {', '.join(_WORDS)} and value, and may have {', '.join(FIELDS[1:])}"
        )
    means, source = (check_words(f"{name}.{each}", str(given[each])) for each in _WORDS)
    said = {field: given[field] for field in FIELDS if field in given}
    return ProfileFigure(said["value"] if set(said) == {"value"} else said, means, source)
