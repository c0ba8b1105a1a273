"""Heads in tables of results: the solved part of a point, and the sums of the runs from its exits.

A row's head is numbers alone, exact to the last bit, and a digest of all that it was made of, exits and their flows
included. Heads merge if their digests agree and their runs are others.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.kernels.errors import ResultError

if TYPE_CHECKING:
    from quorisk.analysis.estimate.method import KnownHead
    from quorisk.analysis.estimate.rare import LossPart
    from quorisk.analysis.experiment.config import RunSettings
    from quorisk.analysis.statistics.estimator import Estimator
    from quorisk.kernels.engines.tally import Tally
    from quorisk.kernels.model import Model

_OF_INVARIANT = pa.struct(
    {"name": pa.string(), "inside": pa.float64(), "leaves": pa.float64(), "sampled": pa.bool_(), "broken": pa.int64()}
)
_RUNS = pa.struct({"first_run": pa.int64(), "num_runs": pa.int64()})
TYPE = pa.struct(
    {
        "digest": pa.string(),
        "cost": pa.int64(),
        "states": pa.int64(),
        "transitions": pa.int64(),
        "exits": pa.int64(),
        "left_out": pa.float64(),
        "most_transitions": pa.int64(),
        "runs": pa.list_(_RUNS),
        "unfinished": pa.int64(),
        "invariants": pa.list_(_OF_INVARIANT),
    }
)
"""`digest`: empty if the point is counted after all, as a head knows no more. `cost`, `states`, `transitions`, `exits`,
`left_out`: see `estimate.rare.HeadPart`. `most_transitions`: at which it would have stopped growing; once merged, no
more than a head without exits has, as it is the same with room for more. `runs`: those from the exits, numbered from
the experiment's first run on, and how many of them are `unfinished`. By invariant, any data loss first: the probability
of breaking it `inside`, that the run `leaves` unbroken, whether it is `sampled` by runs from the exits, and in how many
of them it was `broken`."""
BEYOND = ("inside", "leaves", "exit_runs", "exit_losses", "exit_hidden")
"""Names of the numbers from which an answer follows, as `terms_of_answer` gives them."""
_ADDED = ("most_transitions", "runs", "unfinished", "invariants")
_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("cost", "states", "transitions", "exits", "unfinished"), 0),
    "digest": "", "left_out": 0.0, "runs": [], "invariants": [],
}  # fmt: skip


def head_record(model: "Model", found: "KnownHead | None", most_transitions: int) -> dict[str, Any]:
    """Returns the record of a head in a table, before any run starts from its exits."""
    from quorisk.analysis.estimate import rare  # here, since what reads tables solves nothing

    if found is None:
        return {**_NOTHING, "most_transitions": most_transitions}
    solved, exits = found
    return {
        "digest": rare.digest(solved, exits),
        "cost": solved.cost,
        "states": solved.states,
        "transitions": solved.transitions,
        "exits": len(exits.flows) if exits else 0,
        "left_out": exits.left_out if exits else 0.0,
        "most_transitions": most_transitions,
        "runs": [],
        "unfinished": 0,
        "invariants": [
            {"name": name, "inside": p.inside, "leaves": p.leaves, "sampled": p.is_sampled, "broken": 0}
            for name, p in rare.parts_by_invariant(model, solved, exits).items()
        ],
    }


def with_runs(head: Mapping[str, Any], tail: "Tally", first_run: int) -> dict[str, Any]:
    """Returns a head that had no runs, with those from its exits that have numbers from `first_run` on."""
    broken = {DATA_LOSS: tail.outcomes["lost"], **tail.broken}
    return {
        **head,
        "runs": [{"first_run": first_run, "num_runs": tail.runs}],
        "unfinished": tail.outcomes["unfinished"],
        "invariants": [{**each, "broken": broken[each["name"]]} for each in head["invariants"]],
    }


def is_for(head: Mapping[str, Any], most_transitions: int) -> bool:
    """Whether this is the head for a limit of `most_transitions`: it was solved with that limit, or did not need it."""
    is_certain = head["digest"] != "" and head["exits"] == 0
    fits = head["transitions"] <= min(head["most_transitions"], most_transitions)
    return head["most_transitions"] == most_transitions or (is_certain and fits)


def merge_heads(heads: Iterable[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Returns the head of rows that merge: the only one, or equal ones whose runs add up. Raises ResultError."""
    there = [head for head in heads if head and head["digest"]]
    if not there:
        return None
    first = there[0]
    for name in ("digest", *(name for name in first if name not in ("digest", *_ADDED))):
        values = {head[name] for head in there}
        if len(values) > 1:
            raise ResultError(f"rows of one point differ in the {name} of their heads: {', '.join(map(str, values))}")
    by_invariant = zip(*(head["invariants"] for head in there), strict=True)
    most = max(head["most_transitions"] for head in there)
    return {
        **first,
        "most_transitions": most if first["exits"] else min(most, first["transitions"]),
        "runs": _joined(part for head in there for part in head["runs"]),
        "unfinished": sum(head["unfinished"] for head in there),
        "invariants": [{**same[0], "broken": sum(each["broken"] for each in same)} for same in by_invariant],
    }


def _joined(ranges: Iterable[Mapping[str, int]]) -> list[dict[str, int]]:
    """Ranges of runs in order, those that follow on each other as one. Raises ResultError."""
    joined: list[dict[str, int]] = []
    for first, num in sorted((each["first_run"], each["num_runs"]) for each in ranges):
        end = joined[-1]["first_run"] + joined[-1]["num_runs"] if joined else -1
        if first < end:
            raise ResultError(f"runs from a head's exits, from {first} on, are in two rows")
        if first == end:
            joined[-1]["num_runs"] += num
        else:
            joined.append({"first_run": first, "num_runs": num})
    return joined


def runs_from_exits(head: Mapping[str, Any]) -> int:
    """Returns the number of runs from a head's exits."""
    return sum(int(part["num_runs"]) for part in head["runs"])


def wanted_runs(head: Mapping[str, Any], run: "RunSettings", enough: float) -> int:
    """Returns the number of runs from a head's exits that an experiment wants for an interval as narrow as `enough`."""
    from quorisk.analysis.estimate.stopping import estimator_of_run

    return part(head, DATA_LOSS).num_runs(estimator_of_run(run), run.runs, enough) if head["exits"] else run.runs


def part(head: Mapping[str, Any], invariant: str) -> "LossPart":
    """Returns the certain part of the probability of an invariant, or of DATA_LOSS."""
    from quorisk.analysis.estimate import rare

    of = _of(head, invariant)
    return rare.LossPart(of["inside"], of["leaves"], head["left_out"], head["exits"], of["sampled"])


def runs_broken(head: Mapping[str, Any], invariant: str) -> int:
    """Returns the number of runs from a head's exits in which an invariant was broken, or data lost."""
    return sum(each["broken"] for each in head["invariants"] if each["name"] == invariant)


def _of(head: Mapping[str, Any], invariant: str) -> Any:
    return next(each for each in head["invariants"] if each["name"] == invariant)


def interval_of(head: Mapping[str, Any], invariant: str, estimator: "Estimator") -> tuple[float, float, float, str]:
    """Returns estimate, interval and method of an invariant, or DATA_LOSS."""
    from quorisk.analysis.estimate import rare

    known, losses, runs = part(head, invariant), runs_broken(head, invariant), runs_from_exits(head)
    low, high = known.interval(estimator, losses, runs, head["unfinished"])
    any_loss = _of(head, DATA_LOSS)
    return known.p(losses, runs), low, high, rare.named(any_loss["leaves"], any_loss["sampled"], estimator)


def answer_from_beginning(
    head: Mapping[str, Any], invariant: str, estimator: "Estimator", losses: int, runs: int, hidden: int
) -> tuple[float, float, float, str]:
    """Returns the same as `interval_of` by runs from the beginning, for an invariant that no run from exits samples."""
    from quorisk.analysis.estimate import rare

    known = part(head, invariant)
    if not known.leaves:
        return interval_of(head, invariant, estimator)
    return *known.counted(estimator, losses, runs, hidden), f"{rare.COUNTED}: {estimator.method}"


def terms_of_answer(head: Mapping[str, Any], invariant: str) -> dict[str, float]:
    """Returns the numbers from which the answer of an invariant, or DATA_LOSS, follows, by their names in BEYOND."""
    known = part(head, invariant)
    runs = runs_from_exits(head) if known.is_sampled else 0
    counted = (runs, runs_broken(head, invariant), head["unfinished"])
    return dict(zip(BEYOND, (known.inside, known.leaves - known.left_out, *counted), strict=True))


def wrong(head: Mapping[str, Any], invariants: list[str]) -> str:
    """Returns how a row's head contradicts itself; empty if it does not."""
    if not head["digest"]:
        return ""
    if [each["name"] for each in head["invariants"]] != [DATA_LOSS, *invariants]:
        return "its head has other invariants"
    for each in head["invariants"]:
        if not (0.0 <= each["inside"] <= 1.0 + 1e-9 and 0.0 <= each["leaves"] <= 1.0 + 1e-9):
            return "its head has probabilities outside 0 to 1"
        if not 0 <= each["broken"] <= runs_from_exits(head):
            return "its head has more losses than runs"
    return ""
