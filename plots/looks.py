"""The look of each design: the same colour and mark through a sweep's figures, except where marks say how designs stand
to the targets (`ranking.mark_style`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from quorisk.analysis.decision.designs import ranked_designs
from quorisk.plots.style import Style, style_of
from quorisk.say import choose, text


class Looks:
    """The styles of a frame's designs.

    Sizes and quorums have the colour and the mark, in the grid's order; mechanisms, and faults where a figure tells
    lines apart by them, have the dashes and how far a mark is filled.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        design = choose.keys_of_design(text.varied(frame))
        switches = [key for key in design if frame[key].dtype == bool]
        self._main = [key for key in design if key not in switches] or design
        self._places: dict[tuple[str, ...], dict[tuple[Any, ...], int]] = {}

    def of(self, settings: Mapping[str, Any]) -> Style:
        """Returns the style of a configuration, or of a part of its settings."""
        main = [key for key in self._main if key in settings]
        rest = [key for key in settings if key not in main]
        return style_of(self._place(settings, main), self._place(settings, rest))

    def _place(self, settings: Mapping[str, Any], keys: Sequence[str]) -> int:
        """Returns the settings' index among the frame's combinations of these keys, the most mechanisms on first."""
        if tuple(keys) not in self._places:
            found = self._frame[list(keys)].drop_duplicates() if keys else pd.DataFrame([{}])
            combinations = sorted(
                found.itertuples(index=False, name=None), key=lambda each: sum(value is False for value in each)
            )
            self._places[tuple(keys)] = {each: place for place, each in enumerate(combinations)}
        return self._places[tuple(keys)][tuple(settings[key] for key in keys)]


def of_designs(rows: pd.DataFrame) -> dict[str, Style]:
    """Returns the style of each design among the rows of one invariant, by its settings in words."""
    looks, keys = Looks(rows), choose.keys_of_design(text.varied(rows))
    return {each.settings: looks.of({key: each.worst[key] for key in keys}) for each in ranked_designs(rows)}
