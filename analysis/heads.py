"""Heads in tables of results: what was solved of a point, and what the runs from its exits add up to.

A row's head is numbers alone, exact to the last bit, and a digest of all that it was made of, exits and their flows
included. Heads merge if their digests agree and their runs are others.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.kernels.errors import ResultError

if TYPE_CHECKING:
    from quorisk.analysis.method import Rare
    from quorisk.analysis.statistics.estimator import Estimator
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
        "stopped": pa.string(),
        "runs": pa.list_(_RUNS),
        "unfinished": pa.int64(),
        "invariants": pa.list_(_OF_INVARIANT),
    }
)
"""`digest`: empty if the point is counted after all, as a head knows no more. `cost`, `states`, `transitions`, `exits`,
`left_out`: see `analysis.rare.HeadPart`. `runs`: those from the exits, numbered from the experiment's first run on, and
how many of them are `unfinished`. By invariant, any data loss first: the probability of breaking it `inside`, that the
run `leaves` unbroken, whether runs from the exits tell of it, and in how many of them it was `broken`."""
_ADDED = ("stopped", "runs", "unfinished", "invariants")
COUNTED: Mapping[str, Any] = {
    **dict.fromkeys(("cost", "states", "transitions", "exits", "unfinished"), 0),
    "digest": "", "left_out": 0.0, "stopped": "", "runs": [], "invariants": [],
}  # fmt: skip


def record(model: "Model", found: "Rare | None", first_run: int) -> dict[str, Any]:
    """What a table keeps of a head, whose runs have numbers from `first_run` on; COUNTED of none."""
    from quorisk.analysis import rare  # here, since what reads tables solves nothing

    if found is None:
        return dict(COUNTED)
    solved, exits, tail = found.solved, found.exits, found.tail
    broken = {DATA_LOSS: tail.outcomes["lost"], **tail.broken}
    return {
        "digest": rare.digest(solved, exits),
        "cost": solved.cost,
        "states": solved.states,
        "transitions": solved.transitions,
        "exits": len(exits.flows) if exits else 0,
        "left_out": exits.left_out if exits else 0.0,
        "stopped": found.stopped,
        "runs": [{"first_run": first_run, "num_runs": tail.runs}] if tail.runs else [],
        "unfinished": tail.outcomes["unfinished"],
        "invariants": [
            {"name": name, "inside": p.inside, "leaves": p.leaves, "sampled": p.is_sampled, "broken": broken[name]}
            for name, p in rare.parts(model, solved, exits).items()
        ],
    }


def merge(heads: Iterable[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """The head of rows that merge: the only one there is, or equal ones whose runs add up. Raises ResultError."""
    there = [head for head in heads if head and head["digest"]]
    if not there:
        return None
    first = there[0]
    for name in ("digest", *(name for name in first if name not in ("digest", *_ADDED))):
        values = {head[name] for head in there}
        if len(values) > 1:
            raise ResultError(f"rows of one point differ in the {name} of their heads: {', '.join(map(str, values))}")
    runs = sorted((part for head in there for part in head["runs"]), key=lambda part: part["first_run"])
    for before, after in pairwise(runs):
        if after["first_run"] < before["first_run"] + before["num_runs"]:
            raise ResultError(f"runs from a head's exits, from {after['first_run']} on, are in two rows")
    by_invariant = zip(*(head["invariants"] for head in there), strict=True)
    return {
        **first,
        "runs": runs,
        "unfinished": sum(head["unfinished"] for head in there),
        "invariants": [{**same[0], "broken": sum(each["broken"] for each in same)} for same in by_invariant],
    }


def num_runs(head: Mapping[str, Any]) -> int:
    """How many runs from its exits there are."""
    return sum(int(part["num_runs"]) for part in head["runs"])


def answer(head: Mapping[str, Any], invariant: str, estimator: "Estimator") -> tuple[float, float, float, str]:
    """Estimate, interval and method of an invariant, or DATA_LOSS."""
    from quorisk.analysis import rare

    of = next(each for each in head["invariants"] if each["name"] == invariant)
    part = rare.Part(of["inside"], of["leaves"], head["left_out"], head["exits"], of["sampled"])
    losses, runs = of["broken"], num_runs(head)
    low, high = part.interval(estimator, losses, runs, head["unfinished"])
    any_loss = next(each for each in head["invariants"] if each["name"] == DATA_LOSS)
    return part.p(losses, runs), low, high, rare.named(any_loss["leaves"], any_loss["sampled"], estimator)


def wrong(head: Mapping[str, Any], invariants: list[str]) -> str:
    """In what a row's head contradicts itself; empty if in nothing."""
    if not head["digest"]:
        return ""
    if [each["name"] for each in head["invariants"]] != [DATA_LOSS, *invariants]:
        return "its head has other invariants"
    for each in head["invariants"]:
        if not (0.0 <= each["inside"] <= 1.0 + 1e-9 and 0.0 <= each["leaves"] <= 1.0 + 1e-9):
            return "its head has probabilities outside 0 to 1"
        if not 0 <= each["broken"] <= num_runs(head):
            return "its head has more losses than runs"
    return ""
