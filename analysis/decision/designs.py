"""The designs of a sweep, by rank: the losses, promises and costs of each under all of its faults."""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from quorisk.analysis.cluster.figures import BY_CAUSE, COLUMNS, ENDS, PLACED
from quorisk.analysis.decision import years
from quorisk.analysis.decision.judging import FAILS, UNDECIDED, judge, runs_to_settle
from quorisk.analysis.statistics import yearly
from quorisk.say import choose, numbers, text

EXACT = "exact"
"""Name of the exact method, and first word of the name of a head's."""
_TOLD = (
    "point_id", "protocol", "method", "sequential", "per_year", "hits", "fates", text.SCENARIO,
    "inside", "leaves", "exit_runs", "exit_losses", "exit_hidden",
    "copies", "stored", "on_disk", "survives", "node", "nodes", "zones", "changed", "given",
    *(f"write_{level}_{end}ms" for level in ("p50", "p99", "p999") for end in ("", "low_", "high_")), "stored_bytes",
    "wants_write_p99_ms", "wants_copies", "wants_nodes", "wants_node", "wants_zones", "wants_zone",
    "wants_losses_per_year", "wants_incident_entries_p99", *(f"{name}{end}" for name in COLUMNS for end in ENDS),
    "any_loss_method",
    "incident", "incident_p50", "incident_p99", "incident_p99_high", "incident_at_least", "cluster_at", "placement",
    "allowed_low", "allowed_high", "stops_with_one", "pauses_with_rack",
    *("stops_with_node", "stops_with_rack", "write_minutes_lost_per_year", "wants_write_minutes_lost_per_year"),
)  # fmt: skip
"""Columns of a frame that describe a design, if they are there (`analysis.decision.promises`)."""
_PROMISED: Mapping[str, tuple[str, str]] = {
    "copies": ("copy when acknowledged", "copies when acknowledged"),
    "nodes": ("node", "nodes"),
    "zones": ("zone", "zones"),
}
"""Promises that designs may be held to, in words: singular and plural."""
_LOST = ("nodes", "zones")
_SIZES, _ENSEMBLE = ("model.bookies", "model.brokers", "model.zones"), "model.ensemble_size"


def runs_of_interval(case: Mapping[str, Any]) -> int:
    """Returns the number of runs that a case's interval rests on: with a head those from its exits, none if solved."""
    runs = float(case.get("exit_runs", math.nan) if case["method"].startswith(EXACT) else case["runs"])
    return 0 if math.isnan(runs) else int(runs)


def loses_at_least(case: Mapping[str, Any]) -> bool:
    """Returns whether the sizes of a case's incidents are lower bounds: those of its scenarios take a partition each,
    and the number of records lost in it is unknown."""
    return case.get("incident_at_least") is True


def losses_in_words(case: Mapping[str, Any]) -> str:
    """Returns the estimate of a case's losses in words: in a run, or in a year."""
    if case["high"] == 0.0:
        return "0, proved"
    return numbers.probability(case)


def measure_of(design: "Design") -> str:
    """Returns the name of the measure by which a design is ranked."""
    if design.is_clustered:
        return "P(any loss in a year)"
    return "losses a year" if "parts" in design.worst else "P(data loss) of a run"


class Design(NamedTuple):
    """A design to choose, under all of its faults: the cases that differ in faults alone."""

    settings: str
    points: list[dict[str, Any]]
    """Its cases: rows of a result frame, of one invariant, and `at`: the faults of a row, empty if none differs from
    the worst. Where there are scenarios, their sums in a year, with `parts`: the rows that were added up."""
    worst: dict[str, Any]
    """The case whose interval reaches highest."""
    rank: int = 1
    """The rank, from 1 on. Designs whose losses cannot be told apart share a rank."""

    @property
    def is_clean(self) -> bool:
        """Whether no run lost data: all that is known then is an upper bound."""
        return not any(point["losses"] for point in self.points) and not self.is_proved

    @property
    def is_proved(self) -> bool:
        """Whether it is proved that no data can be lost."""
        return all(point["high"] == 0.0 for point in self.points)

    @property
    def is_clustered(self) -> bool:
        """Whether its losses are those of its cluster: then P(any loss in a year) ranks it."""
        return "any_loss" in self.worst

    @property
    def by_cause(self) -> dict[str, float]:
        """Its losses a year by scenario; on a cluster incidents a year by cause, with those of scenarios beside it.
        Empty without scenarios."""
        rows = [row for row in self.worst.get("parts", ()) if not self.is_clustered or row["incident"]]
        columns = [name for name in self.worst if name.startswith(BY_CAUSE)]
        found = {text.cause(name.removeprefix(BY_CAUSE)): self.worst[name] for name in columns}
        in_year = yearly.incidents if self.is_clustered else yearly.lost_a_year
        found |= {row[text.SCENARIO]: in_year([years.part_of(row)]).value for row in rows}
        return {cause: amount for cause, amount in found.items() if amount > 0.0}

    @property
    def by_placement(self) -> dict[str, yearly.Ends]:
        """P(any loss in a year) by placement on its cluster, with scenarios as they are; empty if there is no other."""
        names = [name for name in text.PLACEMENTS if self.worst.get(f"{PLACED}{name}", math.nan) >= 0.0]
        if len(names) < 2:
            return {}
        found = {name: years.ends(self.worst, f"{PLACED}{name}") for name in names}
        found[self.worst["placement"]] = years.ends(self.worst, "any_loss")
        beside = yearly.incidents([years.part_of(row) for row in self.worst["parts"] if row["incident"]])
        return {name: yearly.p_any(beside, ends) for name, ends in found.items()}

    def placed(self) -> str:
        """Returns a clause that compares placements, its own first; empty if no other one is possible."""
        ranked = sorted(self.by_placement.items(), key=lambda each: each[0] != self.worst["placement"])
        return ", ".join(f"{numbers.plain(ends.value)} with {text.PLACEMENTS[name]}" for name, ends in ranked)

    @property
    def stops_writes(self) -> bool:
        """Whether some writes stop for as long as any one node is down, such as while it restarts."""
        return bool(self.worst.get("stops_with_node" if self.is_clustered else "stops_with_one", False))

    def writes_stop(self) -> list[str]:
        """Returns how writes stop while one node or rack is down, in sentences; none if they go on."""
        worst, said = self.worst, list[str]()
        if self.stops_writes:
            part = min(worst.get("stops_with_node", 0.0), 1.0)
            what = f"{numbers.share(part)} of the data" if self.is_clustered else "data with a copy there"
            node = str(worst.get("node", "node"))
            said.append(f"Any restart stops writes: {what} takes none while one {node} is down.")
        if part := worst.get("stops_with_rack", 0.0):
            said.append(f"While one rack is down, {numbers.share(min(part, 1.0))} of the data takes no writes.")
        if part := worst.get("pauses_with_rack", 0.0):
            part_said = numbers.share(min(part, 1.0))
            said.append(f"When a rack goes down, writes of {part_said} of the data wait until others take the places.")
        return said

    @property
    def is_changed(self) -> bool:
        """Whether it has a mechanism off, or an older version of the protocol."""
        return bool(self.worst.get("changed"))

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of its losses under its worst faults."""
        return max(point["low"] for point in self.points), self.worst["high"]

    def is_tied(self, other: "Design") -> bool:
        """Whether losses do not tell them apart: their intervals overlap or lie less than 1% apart, and neither or both
        are proved to lose nothing."""
        (low, high), (other_low, other_high) = self.interval, other.interval
        overlap = yearly.tied_from(low) <= other_high and yearly.tied_from(other_low) <= high
        return overlap and self.is_proved == other.is_proved

    def tie(self, other: "Design") -> str:
        """Returns in words that losses do not tell the two apart, and whether that is for want of losses; empty if they
        do."""
        if self.is_tied(other) and self.is_clean and other.is_clean:
            both = ([row["runs"] for at in each.points for row in at.get("parts", [at])] for each in (self, other))
            return f"not told apart: neither lost anything in {min(map(sum, both)):,} runs"
        return "a tie in losses" if self.is_tied(other) else ""

    def promises_less(self, other: "Design") -> bool:
        """Whether it has fewer copies than another one, as an entry is acknowledged or in the end, and never more."""
        mine, others = ([each.worst.get(name, 0) for name in ("copies", "stored")] for each in (self, other))
        return mine != others and all(a <= b for a, b in zip(mine, others, strict=True))

    def wanted(self) -> list[str]:
        """Returns the targets of designs beside losses, in words."""
        at, said = self.worst, []
        if (most_ms := at.get("wants_write_p99_ms", math.inf)) < math.inf:
            said.append(f"p99 of a write at most {numbers.short(most_ms)} ms")
        if self.is_clustered:
            if (most := at.get("wants_losses_per_year", math.inf)) < math.inf:
                said.append(f"at most {numbers.entries(numbers.short(most))} lost a year")
            if (most := at.get("wants_incident_entries_p99", math.inf)) < math.inf:
                said.append(f"at most {numbers.entries(numbers.short(most))} lost at once in 99 of 100 incidents")
            if (most := at.get("wants_write_minutes_lost_per_year", math.inf)) < math.inf:
                said.append(f"at most {numbers.short(most)} minutes a year without writes")
        for promised in _PROMISED:
            if least := at.get(f"wants_{promised}", 0):
                counted = self._counted(promised, least)
                said.append(f"survival of the loss of {counted}" if promised in _LOST else f"at least {counted}")
        return said

    def shortfalls(self, *but: str) -> list[str]:
        """Returns its promises that fall short of the targets, which no run can change, but for those on "p99", ..."""
        return [said for what, said in self._short() if what not in but]

    def _short(self) -> Iterator[tuple[str, str]]:
        """Yields missed targets: "p99", "entries" (lost), "writes", "copies", "nodes" or "zones", in words."""
        at = self.worst
        if at.get("write_p99_high_ms", 0.0) > at.get("wants_write_p99_ms", math.inf):
            yield "p99", f"p99 of a write {numbers.number(at['write_p99_ms'])} ms"
        if self.is_clustered:
            if at["entries_high"] > at.get("wants_losses_per_year", math.inf):
                yield "entries", f"{numbers.plain(at['entries'])} entries lost a year"
            wanted = at.get("wants_incident_entries_p99", math.inf)
            if at["incident_p99_high"] > wanted:
                p99 = at["incident_p99"]
                lost = f"{numbers.plain(p99)} entries lost" if p99 > wanted else "no bound on losses"
                yield "entries", f"{lost} at once in one of 100 incidents"
            if (minutes := at.get("write_minutes_lost_per_year", 0.0)) > at.get(
                "wants_write_minutes_lost_per_year", math.inf
            ):
                known = f"{numbers.plain(minutes)} minutes" if minutes < math.inf else "nobody knows how many minutes"
                yield "writes", f"{known} a year without writes"
        for promised in _PROMISED:
            if (has := at.get(promised, 0)) < at.get(f"wants_{promised}", 0):
                counted = self._counted(promised, has)
                yield promised, f"survives the loss of {counted}" if promised in _LOST else counted

    def _counted(self, promised: str, number: int) -> str:
        """A number of promised things in words, nodes and zones by the file's word for them."""
        one, more = _PROMISED[promised]
        if promised in _LOST:
            one = self.worst.get(f"wants_{one}", one)
            more = f"{one}s"
        return numbers.counted(number, one, more) if number else f"no {one}"

    def verdict(self, target: float) -> str:
        """Returns MEETS if its targets are met, that on losses under all faults; FAILS if it surely misses one."""
        if self.shortfalls():
            return FAILS
        return judge(*self.interval, target)

    def telling(self, target: float) -> dict[str, Any]:
        """Returns the case that the verdict rests on: the worst, or one that fails if that decides nothing."""
        fails = self.verdict(target) == FAILS and self.worst["low"] <= target
        return max(self.points, key=lambda point: point["low"]) if fails else self.worst

    def runs_to_settle(self, tail: float, target: float) -> float:
        """Returns about how many runs a point it takes to settle an open verdict: until one point fails if any is about
        to, else until all meet. Infinite for a year's losses, which several scenarios add up to.
        """
        if "parts" in self.worst:
            return math.inf
        undecided = [point for point in self.points if judge(point["low"], point["high"], target) == UNDECIDED]
        failing = [point for point in undecided if point["p"] > target]
        runs = [runs_to_settle(point, tail, target) for point in failing or undecided]
        return min(runs) if failing else max(runs)

    def p_stuck(self) -> float:
        """Returns the share of runs that get stuck, under the faults or in the scenario in which most do."""
        return float(max(row["stuck"] / row["runs"] for point in self.points for row in point.get("parts", [point])))

    def cost(self, measure: str) -> float:
        """Returns the "messages" or "steps" a run that succeeds, averaged over the faults; infinite if none does."""
        succeeded = [choose.succeeded(point) for point in self.points]
        if not all(succeeded):
            return math.inf
        pairs = zip(self.points, succeeded, strict=True)
        return float(sum(point[measure] / num for point, num in pairs) / len(self.points))

    @property
    def steps(self) -> float:
        """The steps of a run that succeeds, as far as they decide a tie: to two digits, since some are counted and some
        are solved; and on a cluster only in scenarios beside it, as no others are weighed. 0 if there are none.
        """
        if not self.is_clustered:
            return float(f"{self.cost('steps'):.2g}")
        own = [part for point in self.points for part in point.get("parts", ()) if part["incident"]]
        alone = [self._replace(points=[part], worst={}).cost("steps") for part in own]
        return float(f"{sum(alone) / len(own):.2g}") if own else 0.0


def ranked_designs(rows: pd.DataFrame, varied: list[str] | None = None) -> list[Design]:
    """Returns the designs among the rows of one invariant by rank: those proved to lose nothing, then those whose
    intervals reach least high; ties share a rank. `varied` are the parameters that differ, if they are known."""
    keys = text.varied(rows) if varied is None else varied
    design_keys = choose.keys_of_design(keys)
    fault_keys = text.independent(rows, [key for key in choose.faults(keys) if key != text.SCENARIO])
    named = _named(rows, design_keys)
    groups: dict[tuple[Any, ...], dict[tuple[Any, ...], list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    told = [name for name in rows if name in (*_TOLD, _ENSEMBLE, text.TIME_UNIT) or name.startswith((BY_CAUSE, PLACED))]
    columns = dict.fromkeys([*design_keys, *fault_keys, *years.COUNTED, *years.SUMMED, *told])
    for row in rows[list(columns)].to_dict("records"):
        faults = groups[tuple(row[key] for key in design_keys)]
        faults[tuple(row[key] for key in fault_keys)].append(row)
    found = []
    for cases in groups.values():
        is_yearly = "per_year" in columns
        points = [years.year_of_scenarios(case) | {"parts": case} if is_yearly else case[0] for case in cases.values()]
        worst = max(points, key=lambda point: point["high"])
        differ = any(point["high"] < worst["high"] for point in points)
        for point in points:
            point["at"] = text.settings(point, fault_keys) if differ else ""
        found.append(Design(text.design(worst, named), points, worst))
    return ranked(found)


def short_names(rows: pd.DataFrame) -> list[str]:
    """Returns the short name of the design of each row."""
    named = _named(rows, choose.keys_of_design(text.varied(rows)))
    return [text.design(row, named) for row in rows.to_dict("records")]


def _named(rows: pd.DataFrame, keys: list[str]) -> list[str]:
    """The keys that tell designs apart for people, without the number of nodes to choose from if others fix that."""
    others = [key for key in keys if key not in _SIZES]
    if not others or len(others) == len(keys):
        return keys
    sizes = rows.groupby(others, dropna=False)[[key for key in keys if key in _SIZES]].nunique(dropna=False)
    return others if (sizes == 1).all(axis=None) else keys


def order_in_rank(design: Design) -> tuple[Any, ...]:
    """Returns the sort key of designs that share a rank: last come those whose writes stop at any restart; else their
    promises, their losses, and how often runs get stuck."""
    promised = [-design.worst.get(name, 0) for name in ("copies", "stored", "zones")]
    return design.is_changed, design.stops_writes, *promised, design.interval[1], design.p_stuck(), design.settings


def ranked(found: list[Design]) -> list[Design]:
    """Returns designs by rank, in an order that does not depend on the one given."""
    proved = sorted((each for each in found if each.is_proved), key=order_in_rank)
    firsts: list[float] = []  # the upper ends of the first designs of the ranks, which rise
    ranks: list[list[Design]] = []
    for design in sorted(
        (each for each in found if not each.is_proved), key=lambda each: (each.interval[1], *order_in_rank(each))
    ):
        low, high = design.interval
        if (shared := bisect_left(firsts, yearly.tied_from(low))) < len(firsts):
            ranks[shared].append(design)
        else:
            firsts.append(high)
            ranks.append([design])
    result: list[Design] = []
    for rank in [proved, *ranks]:
        result += [design._replace(rank=1 + len(result)) for design in sorted(rank, key=order_in_rank)]
    return result
