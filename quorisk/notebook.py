"""Answers in notebooks: as pandas frames, and as tables in HTML."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from quorisk.command import show
from quorisk.kernels.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd


def frame_of(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    """Returns the rows as a frame."""
    import pandas as pd  # here, since it takes its time to load

    return pd.DataFrame(rows)


def without_bounds(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Returns the frame with no `p` where only an upper bound is known of it."""
    return frame.assign(p=frame["p"].astype(float).mask((frame["low"] == 0.0) & (frame["high"] > 0.0)))


def about(frame: "pd.DataFrame", invariant: str) -> "pd.DataFrame":
    """Returns the frame, which has rows of this invariant. Raises ConfigError if it has none."""
    if invariant not in (known := frame["invariant"].unique()):
        raise ConfigError(f" {invariant!r}: one of {', '.join(known)}", "invariant")
    return frame


def html(draw: Callable[[Console], None]) -> str:
    """Returns the output of `draw` on a console, as HTML."""
    console = Console(record=True, file=io.StringIO(), width=show.PIPED_WIDTH, highlight=False)
    draw(console)
    return console.export_html(inline_styles=True, code_format='<pre style="line-height: 1.2">{code}</pre>')
