"""Pages in a browser's tab."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page


@contextmanager
def loaded(
    tab: tuple[Page, list[str]], path: Path, media: Literal["screen", "print"] = "screen", width=1400, height=900
) -> Iterator[Page]:
    """A page of so many pixels; fails if it says, asks for or runs anything."""
    page, said = tab
    said.clear()
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(media=media)
    page.goto(path.as_uri())
    yield page
    assert said == [path.as_uri()]
