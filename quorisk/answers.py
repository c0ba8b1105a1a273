"""Answers of the functions of `quorisk.api`: results of the analysis, with frames, and displays for notebooks."""

from collections.abc import Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from quorisk.analysis import explore as exploring
from quorisk.analysis.cluster import answer as clusters
from quorisk.analysis.compare import compare as comparing
from quorisk.analysis.decision import depends as sensing
from quorisk.analysis.decision import recommend as recommending
from quorisk.analysis.decision.frames import SweepTables as Tables
from quorisk.analysis.decision.recommend import Advice
from quorisk.analysis.decision.whole import Whole
from quorisk.analysis.decision.years import part_of
from quorisk.analysis.estimate.estimate import Estimate, only_point
from quorisk.analysis.exact.exact import ExactResult
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.rates import answer, profile
from quorisk.analysis.rates.answer import RatesAnswer
from quorisk.analysis.rates.sensitivity import Sensitivity
from quorisk.analysis.statistics import yearly
from quorisk.analysis.traces import formats, json_file
from quorisk.analysis.traces.find import FoundTrace
from quorisk.analysis.traces.trace import Replayed, replay_in_words
from quorisk.command import show, show_cluster, show_compare, show_decision, show_rates, show_sensitivity, show_year
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.states.search import Search
from quorisk.notebook import about, frame_of, html, without_bounds
from quorisk.say.plain import plain_data

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class _Plain:
    """An answer whose fields are those of its JSON."""

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        """Returns what the verb prints with `--json`."""
        return dict(plain_data(self))


class Estimated(_Plain, Estimate):
    """An estimate; see `Estimate` for its fields, such as `result.data_loss.high`."""

    __slots__ = ()

    def frame(self) -> "pd.DataFrame":
        """Returns one row for any data loss and one for each invariant: `losses`, `p` (missing where only an upper
        bound is known), `low`, `high`, `runs` and `method`, and all parameters by dotted key."""
        risks = {DATA_LOSS: self.data_loss, **self.invariants}
        rows = [{"invariant": name, **risk._asdict()} for name, risk in risks.items()]
        found = frame_of(rows).assign(runs=self.runs, confidence=self.confidence, method=self.method)
        return without_bounds(found).assign(**self.parameters)

    def _repr_html_(self) -> str:
        return html(lambda console: show.print_estimate(self, console))


class Solved(_Plain, ExactResult):
    """Exact probabilities; see `ExactResult` for its fields, such as `result.data_loss.p`."""

    __slots__ = ()

    def frame(self) -> "pd.DataFrame":
        """Returns one row for any data loss and one for each invariant: `p`, and `proved_zero`, whether it is proved to
        be 0, and all parameters by dotted key."""
        found = {DATA_LOSS: self.data_loss, **self.invariants}
        rows = [{"invariant": name, **certain._asdict()} for name, certain in found.items()]
        return frame_of(rows).assign(**self.parameters)

    def _repr_html_(self) -> str:
        return html(lambda console: show.print_exact(self, console))


class Yearly(NamedTuple):
    """The losses of a design in a year."""

    experiment: Experiment
    found: Whole
    """The losses, such as `result.found.p_any.high` and `result.found.entries.value`."""

    def frame(self) -> "pd.DataFrame":
        """Returns one row for each scenario that counts: `per_year`, `hits` and `fates` of its event, the probability
        `p` of losing one object each time with its ends, `losses_per_year`, and `method`; and where
        producers write all the time and runs lost some, the records lost: see `Whole.scenarios`."""
        found = self.found.scenarios
        return frame_of(
            [
                {"scenario": name, **row, "losses_per_year": yearly.lost_a_year([part_of(row)]).value}
                for name, row in found.items()
            ]
        )

    def as_json(self) -> dict[str, Any]:
        """Returns what `quorisk estimate --json` and `quorisk exact --json` print for a file with scenarios."""
        return self.found.whole_json()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: P(any loss in a year) {self.found.p_any.value:.3g}>"

    def _repr_html_(self) -> str:
        return html(lambda console: show_year.print_year(self.found, self.experiment, console))


class Depends(NamedTuple):
    """The dependence of one design's losses on rates, probabilities and lifetimes."""

    experiment: Experiment
    found: Sensitivity | sensing.YearlyElasticities
    """Elasticities, such as `result.found.elasticities["rates.bookie_is_lost"]`, and more."""

    def frame(self) -> "pd.DataFrame":
        """Returns one row for each rate, probability and lifetime: `key`, `value`, `elasticity`, `low`, `high`, and by
        its elasticity how many times as many losses there are `at_low` and `at_high`, the ends of its 90 % interval."""
        return frame_of(sensing.rows(self.found, self.experiment))

    def as_json(self) -> dict[str, Any]:
        """Returns what `quorisk sensitivity --json` prints."""
        return sensing.as_json(self.found)

    def tornado(self, ax: "Axes | None" = None) -> "Axes":
        """Draws how far each figure alone moves the losses, into `ax` or the current axes, and returns them."""
        from quorisk.plots.tornado import tornado

        return tornado(self.frame(), ax)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.found.elasticities)} figures>"

    def _repr_html_(self) -> str:
        return html(lambda console: show_sensitivity.print_sensitivity(self.found, console))


class Explored(NamedTuple):
    """The result of a search of all states."""

    experiment: Experiment
    found: Search
    """The result of the search, such as `found.distinct_states`, `found.depth` and `found.complete`."""
    seconds: float
    """Duration of the search."""

    def frame(self) -> "pd.DataFrame":
        """Returns one row for each invariant: `breaking_states`, `first_broken` (the states that break it but none of
        the invariants before it) and `first_depth`, and all parameters by dotted key."""
        columns = ("breaking_states", "first_broken", "first_depth")
        names = self.found.breaking_states
        rows = [{"invariant": name, **{key: getattr(self.found, key)[name] for key in columns}} for name in names]
        off = {f"model.{name}": False for name in exploring.history_switches(self.experiment)}
        return frame_of(rows).assign(**dotted_values(self.experiment.model, only_point(self.experiment).point) | off)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.found.distinct_states:,} states, depth {self.found.depth}>"

    def as_json(self) -> dict[str, Any]:
        """Returns what `quorisk explore --json` prints."""
        return exploring.as_json(*self)

    def _repr_html_(self) -> str:
        left_out = exploring.history_switches(self.experiment)
        return html(lambda console: show.print_search(self.found, self.seconds, left_out, console))


class Recommended(NamedTuple):
    """The design to run, and the reasons."""

    experiment: Experiment
    found: Advice
    """Its designs by rank, those to choose from, and the words, such as `result.found.words.headline`."""

    def frame(self) -> "pd.DataFrame":
        """Returns one row for each design, by rank: what its grid varies, `p`, `low` and `high` of its losses (in a
        year, on its cluster or in a run, as `of` says), `copies`, `survives`, `write_p99_ms`, and whether it `meets`
        the targets and is `chosen`. `p` is missing where only an upper bound is known."""
        return without_bounds(frame_of([_design(each) for each in self.as_json()["designs"]]))

    def as_json(self) -> dict[str, Any]:
        """Returns what `quorisk recommend --json` prints."""
        return dict(plain_data(recommending.as_json(self.found)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.found.words.headline}>"

    def _repr_html_(self) -> str:
        return html(lambda console: show_decision.print_advice(self.found, self.experiment, out=console))


def _design(design: dict[str, Any]) -> dict[str, Any]:
    """Returns a row of a design: its numbers alone, those of its losses under names of their own."""
    figures = {of: value for of, value in design.items() if isinstance(value, dict) and {"low", "high"} <= value.keys()}
    (of, losses), *_ = figures.items()
    first = {"design": design["design"], "rank": design["rank"], "of": of}
    lost = {"p": losses.get("p", losses.get("value")), "low": losses["low"], "high": losses["high"]}
    others = {key: value for key, value in design.items() if not isinstance(value, dict | list) and key not in first}
    return first | lost | others


class Incidents(NamedTuple):
    """The losses of designs on their clusters."""

    designs: Sequence[clusters.ClusterAnswer]
    """Answers by design, such as `result.designs[0].losses.p_any.high`."""
    confidence: float
    """Confidence of each interval."""

    def frame(self) -> "pd.DataFrame":
        """Returns one row for each design: what the grid varies by dotted key; `p_any`, `incidents` and `entries` a
        year, with their ends `_low` and `_high`; the sizes `p50`, `p90` and `p99` of an incident in entries."""
        return frame_of([clusters.main_figures(each) for each in self.designs])

    def as_json(self) -> dict[str, Any]:
        """Returns what `quorisk cluster --json` prints."""
        return clusters.as_json(self.designs)

    def __repr__(self) -> str:
        p_any = ", ".join(f"{each.losses.p_any.value:.3g}" for each in self.designs[:5])
        return f"<{type(self).__name__}: P(any loss in a year) {p_any}{', ...' if len(self.designs) > 5 else ''}>"

    def _repr_html_(self) -> str:
        return html(lambda console: show_cluster.print_clusters(self.designs, self.confidence, console))


class Comparison(_Plain, comparing.Result):
    """A comparison; see `Result` for its fields, such as `result.pairs[0].events["data loss"].difference`."""

    __slots__ = ()

    def frame(self) -> "pd.DataFrame":
        """Returns one row for each pair and invariant: probabilities, difference and ratio with their intervals, and
        `p_adjusted`."""
        return frame_of(comparing.rows(self))

    def _repr_html_(self) -> str:
        return html(lambda console: show_compare.print_comparison(self, console))


class Counterexample(FoundTrace):
    """A trace on which an invariant breaks; notebooks show it as a sequence diagram."""

    def text(self, form: str = "words") -> str:
        """Returns the trace as text; an empty one if there is no trace.

        Args:
            form: `words`, `tlc` (numbered states), `mermaid`, `sequencediagram` or `svg`.

        Raises:
            ConfigError: if there is no such form.
        """
        if form not in formats.FORMATS:
            raise ConfigError(f" {form!r}: one of {', '.join(formats.FORMATS)}", "form")
        return formats.FORMATS[form](self.trace, self._replayed) if self.trace and self._replayed else ""

    def frame(self) -> "pd.DataFrame":
        """Returns one row for each step: `action`, `instance`, `lost` (a mask of the lost messages), and the step in
        `words`."""
        steps = self.as_json()["trace"]["steps"] if self.trace else []
        told = self._replayed.told if self._replayed else []
        return frame_of([{**step, "words": each.words} for step, each in zip(steps, told, strict=True)])

    def as_json(self) -> dict[str, Any]:
        """Returns what `quorisk trace --json` prints."""
        return json_file.as_json(*self, self._replayed.verdict if self._replayed else "")

    def __str__(self) -> str:
        return self.text() or self.reason

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.reason}>"

    def _repr_html_(self) -> str:
        return self.text("svg") or f"<p>{escape(self.reason)}</p>"

    @cached_property
    def _replayed(self) -> Replayed | None:
        return replay_in_words(self.trace) if self.trace else None


class Rates(RatesAnswer):
    """Rates from data; see `Answer` for its fields, such as `result.findings`."""

    __slots__ = ()

    def frame(self) -> "pd.DataFrame":
        """Returns the figure's data: a row for each key, the profile's own figure, each model and each period."""
        return frame_of(answer.rows(self))

    def as_json(self) -> dict[str, Any]:
        """Returns what `quorisk rates --json` prints."""
        return answer.as_json(self)

    def write(self, path: str | Path) -> None:
        """Writes a profile, which experiments take with `profile = "NAME"` if it is profiles/NAME.toml beside them.

        Args:
            path: its file.

        Raises:
            ConfigError: if nothing can be written there.
        """
        profile.write_profile(self, Path(path), "quorisk.rates(...)")

    def _repr_html_(self) -> str:
        return html(lambda console: show_rates.print_rates(self, console))


class Sweep(NamedTuple):
    """The results that a sweep left in a folder."""

    path: Path
    tables: Tables

    def frame(self) -> "pd.DataFrame":
        """Returns one row for each configuration and invariant: parameters by dotted key, `losses`, `p` (missing where
        only an upper bound is known), `low`, `high` and more.

        `quorisk.analysis.results.frame.frame` explains all columns.
        """
        return without_bounds(self.tables.frame)

    def histograms(self) -> "pd.DataFrame":
        """Returns the runs by steps and by model time to loss, with one row for each configuration and bin."""
        return self.tables.histograms

    def losses_by_faults(self) -> "pd.DataFrame":
        """Returns the parts of losses: one row for each configuration and each set of kinds of `faults` that lost
        runs met, with its `share` of the losses and the interval of that share."""
        return self.tables.losses_by_faults

    def loss(self, invariant: str = DATA_LOSS, ax: "Axes | None" = None) -> "Axes":
        """Draws the probability that an invariant breaks, against what the grid varies.

        Args:
            invariant: the invariant; any data loss if not given.
            ax: axes to draw into; the current ones if None.

        Returns:
            The axes.

        Raises:
            ConfigError: if the results have no such invariant.
        """
        from quorisk.plots.loss import loss

        return loss(about(self.tables.frame, invariant), invariant, ax)

    def heat_map(self, invariant: str = DATA_LOSS, ax: "Axes | None" = None) -> "Axes":
        """Draws the probability that an invariant breaks as a heat map over two parameters of the grid."""
        from quorisk.plots.heat_map import heat_map

        return heat_map(about(self.tables.frame, invariant), invariant, ax)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.tables.frame['point_id'].nunique():,} configurations in {self.path}>"

    def _repr_html_(self) -> str:
        from quorisk.sparkjobs.screen import probability_table

        return html(lambda console: console.print(probability_table(self.tables.frame, console.width)))
