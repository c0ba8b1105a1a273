"""Places that are not on this machine, such as s3a://bucket/folder: results are not written there."""

import re

_REMOTE = re.compile(r"([a-z][a-z0-9+.-]+:)(//?)")


def remote_refusal(place: str) -> str | None:
    """Returns why nothing is written to a place, if it is remote; a path of it has one slash where people type two."""
    if found := _REMOTE.match(place):
        given = f"{found[1]}//{place[found.end() :]}"
        return f"{given}: must be on this machine; copy it to other storage afterwards"
    return None
