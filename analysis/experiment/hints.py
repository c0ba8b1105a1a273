"""Hints for files that are not valid TOML: TOML's own errors name a place, and not the trap."""

import re

_PLACE = re.compile(r"at line (\d+)")
_KEY = re.compile(r"\s*([\w.-]{1,80})\s*=")
"""A key without quotes, which is a path of tables where it has dots; nobody reads a longer one in an error."""


def hint(source: str, error: str) -> str:
    """Returns the likely cause of an error in a file's text, led by a semicolon; empty if none is known.

    `replica.lag.time.max.ms` without quotes is a key in a table in the table `replica`: where a key `replica` is there
    as well, TOML says that it cannot overwrite a value.
    """
    place, lines = _PLACE.search(error), source.split("\n")
    if not place or not error.startswith(("Cannot overwrite a value", "Cannot mutate immutable namespace")):
        return ""
    number = int(place[1])
    found = _KEY.match(lines[number - 1])
    if not found:
        return ""
    table = max((i for i, line in enumerate(lines[: number - 1]) if line.lstrip().startswith("[")), default=0)
    key, above = found[1], [_KEY.match(line) for line in lines[table : number - 1]]
    others = [other[1] for other in above if other]
    if key in others:
        return f"; {key} is set twice"
    for longer, shorter in ((key, other) for other in others):
        if longer.startswith(f"{shorter}."):
            return f'; a key with dots in it takes quotes beside {shorter}: "{longer}" = ...'
        if shorter.startswith(f"{longer}."):
            return f'; a key with dots in it takes quotes beside {longer}: "{shorter}" = ...'
    return ""
