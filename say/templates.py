"""Templates of texts that people read or change: Jinja, with an error where a name is not given."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def templates(folder: Path, **options: Any) -> Environment:
    """Returns the templates of a folder, in which a tag's line is no line of the text; `options` are Jinja's."""
    loader = FileSystemLoader(folder)
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options)
