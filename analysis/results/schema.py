"""Result rows: the one schema of what a sweep writes, merges and reads back.

A row sums up runs first_run to first_run + num_runs - 1 of one point. Numbers only: nothing in a row is ever executed.
Rows of the same point whose run ranges lie end to end merge by addition; anything else is refused. Sums of steps and
times are decimals of 38 digits, since those of 10**12 runs need not fit 64 bits.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from quorisk.analysis.experiment.identity import id_of
from quorisk.analysis.results import heads, sealed
from quorisk.kernels.engines.tally import MOST_TICKS, Tally
from quorisk.kernels.errors import ResultError
from quorisk.kernels.model import EXPOSURE, OUTCOMES, Model

IDENTITY, RANGE, SUM, SUM_EACH, UNION, INVARIANTS = "identity", "range", "sum", "sum each", "union", "invariants"
EFFORT, BY_FAULTS, HEAD = "effort", "by faults", "head"
BY_RUNS, CERTAIN = "runs", "certain"
"""Values of `stopped`: the number of runs was fixed before the first of them; no runs were needed."""


class Column(NamedTuple):
    """A column of a result row; `merge` says how its values merge."""

    name: str
    type: pa.DataType
    merge: str
    doc: str


WIDE = pa.decimal128(38, 0)
INVARIANT = pa.struct(
    {
        "name": pa.string(),
        "data_loss": pa.bool_(),
        "about": pa.string(),
        "broken": pa.int64(),
        "first_steps": WIDE,
        "exposed_ticks": WIDE,
    }
)
FAULTS = pa.struct({"faults": pa.list_(pa.string()), "losses": pa.int64()})
COLUMNS = (
    Column("point_id", pa.string(), IDENTITY, "SHA-256, in hex; see analysis.experiment.identity"),
    Column("protocol", pa.string(), IDENTITY, "the model's name"),
    Column("model_version", pa.int64(), IDENTITY, "the model's version: counted up with every change of behaviour"),
    Column("parameters", pa.string(), IDENTITY, "canonical JSON by dotted key; see analysis.experiment.identity"),
    Column("seed", pa.int64(), IDENTITY, "a run is a function of the parameters, the seed and its index"),
    Column("first_run", pa.int64(), RANGE, "index of the first run"),
    Column("num_runs", pa.int64(), RANGE, "number of runs"),
    Column("completed", pa.int64(), SUM, "runs in which nothing was left to do"),
    Column("stuck", pa.int64(), SUM, "runs in which nothing could happen any more, but something was left to do"),
    Column("lost", pa.int64(), SUM, "runs that a broken data-loss invariant ended"),
    Column("horizon", pa.int64(), SUM, "runs that the horizon, or the end of a lifetime, ended"),
    Column("unfinished", pa.int64(), SUM, "runs that max_steps ended: neither lost nor safe"),
    Column("steps", WIDE, SUM, "steps of all runs"),
    Column("steps_squared", WIDE, SUM, "squares of the runs' steps"),
    Column("messages", WIDE, SUM, "messages sent, whether lost or not"),
    Column("loss_steps", WIDE, SUM, "steps of the lost runs"),
    Column("loss_time_ticks", WIDE, SUM, "model time of the lost runs, in ticks of 2**-30"),
    Column("step_histogram", pa.list_(pa.int64()), SUM_EACH, "runs by steps: 0, 1, 2-3, 4-7, ..., the last bin open"),
    Column("loss_time_histogram", pa.list_(pa.int64()), SUM_EACH, "lost runs by model time in ticks, in such bins"),
    Column(
        "losses_by_faults",
        pa.list_(FAULTS),
        BY_FAULTS,
        "lost runs by the kinds of faults that they met: sorted names, of those sets alone that came up",
    ),
    Column(
        "invariants",
        pa.list_(INVARIANT),
        INVARIANTS,
        "in the model's order: name, whether its breach is data loss and what it is about, runs that broke it, sum of "
        "the first such steps, and of exposure for how long it lasted in all runs together, in ticks; else null",
    ),
    Column(
        "stopped",
        pa.list_(pa.string()),
        UNION,
        "why there are no more runs: `runs` (their number was fixed), `precision` (it was reached), `budget` (it was "
        "not, and the runs were spent), `certain` (none were needed), `time` (the time was spent: how many runs that "
        "took depends on the machines' speed); empty in rows of tasks",
    ),
    Column(
        "head",
        heads.TYPE,
        HEAD,
        "of losses too rare to count: the likeliest paths solved, and the runs that leave them; the other columns are "
        "of the pilot then, the runs from the beginning; none if all was counted. See analysis.results.heads",
    ),
    Column("engines", pa.list_(pa.string()), UNION, "what stepped the runs; all engines give the same bits"),
    Column("versions", pa.list_(pa.string()), UNION, "what computed it, each as 'name version'"),
    Column("wall_s", pa.float64(), EFFORT, "seconds that the engine took, added up over rows; not reproducible"),
)
SCHEMA = pa.schema([pa.field(c.name, c.type, metadata={"doc": c.doc}) for c in COLUMNS])
REPRODUCIBLE = [c.name for c in COLUMNS if c.merge != EFFORT]
"""The columns that are the same whenever and wherever the runs are computed: those of a table of results on disk."""


class Identity(NamedTuple):
    """The columns in which rows that merge agree."""

    point_id: str
    protocol: str
    model_version: int
    parameters: str
    seed: int


IDENTITY_COLUMNS = Identity._fields


def row(
    identity: Identity,
    model: Model,
    first_run: int,
    tally: Tally,
    engine: str,
    wall_s: float,
    head: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns a row of SCHEMA from the tally of runs first_run to first_run + tally.runs - 1, computed by `engine`."""
    sums = {c.name: getattr(tally, c.name) for c in COLUMNS if c.name in Tally._fields and c.merge != BY_FAULTS}
    invariants = [
        {
            "name": invariant.name,
            "data_loss": invariant.data_loss,
            "about": invariant.about,
            "broken": tally.broken[invariant.name],
            "first_steps": tally.first_steps[invariant.name],
            "exposed_ticks": tally.exposed_ticks.get(invariant.name),
        }
        for invariant in model.invariants
    ]
    return {
        **identity._asdict(),
        "first_run": first_run,
        "num_runs": tally.runs,
        **tally.outcomes,
        **sums,
        "losses_by_faults": _by_faults(tally.losses_by_faults),
        "invariants": invariants,
        "stopped": [],
        "head": head,
        "engines": [engine],
        "versions": versions(engine),
        "wall_s": wall_s,
    }


@cache  # reading them takes milliseconds, and every row of a sweep has them
def versions(engine: str) -> list[str]:
    """Returns the packages that compute results with an engine here, each as 'name version'."""
    found = []
    for name in (
        "quorisk",
        "numba" if engine == "lanes" else engine,
        "numpy",
    ):  # others go by the names of their distributions
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} unknown")
    return sorted(found)


def merge_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the sum of a point's rows, given in any order. Errors call a row by its `source`, if it has one.

    Raises ResultError unless the rows agree in all identity columns and their run ranges lie end to end.
    """
    rows = sorted(rows, key=lambda each: (each["first_run"], each["num_runs"]))  # those of heads have no runs
    first = rows[0]
    point = f"point {first['point_id'][:12]}"
    for name in IDENTITY_COLUMNS:
        values = {each[name] for each in rows}
        if len(values) > 1:
            raise ResultError(f"{point}: rows differ in {name}: {', '.join(sorted(map(str, values)))}")
    for before, after in pairwise(rows):
        end, start = before["first_run"] + before["num_runs"], after["first_run"]
        if start < end:
            last = min(end, start + after["num_runs"]) - 1
            where = f"both in {before['source']} and in {after['source']}" if "source" in after else "in two rows"
            raise ResultError(f"{point}: runs {start} to {last} are {where}")
        if start > end and not all(each["head"] for each in rows):  # each has a pilot of its own then
            raise ResultError(f"{point}: runs {end} to {start - 1} are missing between two rows")
    merged = {c.name: _MERGES[c.merge]([each[c.name] for each in rows]) for c in COLUMNS if c.merge in _MERGES}
    identity = {name: first[name] for name in IDENTITY_COLUMNS}
    return {**identity, "first_run": first["first_run"], "num_runs": sum(each["num_runs"] for each in rows), **merged}


def by_faults(row: Mapping[str, Any]) -> list[tuple[frozenset[str], int]]:
    """Returns the lost runs of a row by the set of faults that they met, which may be empty; the most first."""
    found = [(frozenset(each["faults"]), int(each["losses"])) for each in row["losses_by_faults"]]
    return sorted(found, key=lambda each: (-each[1], sorted(each[0])))


def _by_faults(losses: Mapping[frozenset[str], int]) -> list[dict[str, Any]]:
    return [{"faults": list(faults), "losses": losses[frozenset(faults)]} for faults in sorted(map(sorted, losses))]


def _sum_by_faults(values: Iterable[Iterable[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    sums = Counter[frozenset[str]]()
    for each in chain.from_iterable(values):
        sums[frozenset(each["faults"])] += each["losses"]
    return _by_faults(sums)


def _sum_invariants(values: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    merged = []
    for same in zip(*values, strict=True):
        if len({(each["name"], each["data_loss"], each["about"]) for each in same}) > 1:
            raise ResultError("rows of one point differ in their invariants")
        counted = ["broken", "first_steps", *(["exposed_ticks"] if same[0]["about"] == EXPOSURE else [])]
        merged.append({**same[0], **{name: _sum(each[name] for each in same) for name in counted}})
    return merged


def _sum(values: Iterable[int | Decimal]) -> int:
    return sum(map(int, values))  # decimals would be rounded to 28 digits


_MERGES: Mapping[str, Any] = {
    SUM: _sum,
    EFFORT: sum,
    SUM_EACH: lambda values: [sum(column) for column in zip(*values, strict=True)],
    UNION: lambda values: sorted(set().union(*values)),
    BY_FAULTS: _sum_by_faults,
    INVARIANTS: _sum_invariants,
    HEAD: heads.merge_heads,
}


def write_reproducible(table: pa.Table, file: Path | IO[bytes]) -> None:
    """Writes the reproducible columns of a table of SCHEMA as Parquet. Raises OSError."""
    sealed.write_sealed(table.select(REPRODUCIBLE), file)


def read_rows(path: Path) -> pa.Table:
    """Returns a table that `write_reproducible` wrote, of SCHEMA, without seconds. Raises ResultError for another."""
    table = sealed.read_sealed(path, pa.schema([SCHEMA.field(name) for name in REPRODUCIBLE]))
    table = pa.table([*table.columns, pa.nulls(table.num_rows, pa.float64())], schema=SCHEMA)
    check_rows(table, path)
    ids = table["point_id"].to_pylist()
    if twice := next((each for each, number in Counter(ids).items() if number > 1), None):
        raise ResultError(f"{path}: not what a sweep writes: point {twice[:12]} is there twice")
    return table


def check_rows(table: pa.Table, path: Path) -> None:
    """Raises ResultError, which names `path`, unless each row agrees with itself."""
    columns = ("point_id", "protocol", "model_version", "parameters", "num_runs", "first_run", "lost")
    counted = table.select(
        [*columns, *OUTCOMES, "step_histogram", "loss_time_histogram", "losses_by_faults", "invariants", "head"]
    )
    try:
        rows = counted.to_pylist()
    except UnicodeDecodeError as error:
        raise ResultError(f"{path}: not what a sweep writes: {error}") from None
    for number, each in enumerate(rows, 1):
        try:
            wrong = _wrong(each)
        except (RecursionError, TypeError, ValueError) as error:
            wrong = repr(error)
        if wrong:
            raise ResultError(f"{path}: not what a sweep writes: row {number}: {wrong}")


def _wrong(each: Mapping[str, Any]) -> str:
    """Contradiction within a row; empty if there is none."""
    counts = [each[name] for name in OUTCOMES]
    if min(counts) < 0 or each["num_runs"] < (0 if each["head"] else 1) or each["first_run"] < 0:
        return "counts below zero, or no runs"
    if each["head"] and (said := heads.wrong(each["head"], [one["name"] for one in each["invariants"]])):
        return said
    if sum(counts) != each["num_runs"]:
        return f"outcomes add up to {sum(counts)} of {each['num_runs']} runs"
    if sum(each["step_histogram"]) != each["num_runs"] or sum(each["loss_time_histogram"]) != each["lost"]:
        return "histograms do not add up to the runs"
    losses = [one["losses"] for one in each["losses_by_faults"]]
    if sum(losses) != each["lost"] or min(losses, default=1) <= 0:
        return "losses by faults do not add up to the runs that lost data"
    if each["losses_by_faults"] != _sum_by_faults([each["losses_by_faults"]]):
        return "losses by faults are not sorted, or name one set twice"
    if any(not 0 <= one["broken"] <= each["num_runs"] for one in each["invariants"]):
        return "an invariant is broken in more runs than there are"
    if wrong := next((one["name"] for one in each["invariants"] if not _lasts(one)), None):
        return f"{wrong} cannot have been broken for so long"
    if id_of(each["protocol"], each["model_version"], each["parameters"]) != each["point_id"]:
        return "point_id is not that of the parameters"
    return ""


def _lasts(invariant: Mapping[str, Any]) -> bool:
    """Whether the time for which an invariant was broken is there if it is about exposure, and can be right."""
    ticks = invariant["exposed_ticks"]
    if invariant["about"] != EXPOSURE:
        return ticks is None
    return ticks is not None and 0 <= ticks <= invariant["broken"] * MOST_TICKS
