"""Has `quorisk plot` draw crafted results: whoever wrote the table, it draws or says in a line what is wrong.

Each table is the one of a sweep with a few values changed for others, or a few bits of its file flipped, and sealed
again as Quorisk seals its own: what a checksum notices is not what is looked for here.
"""

import json
import random
import time
import warnings
from collections import Counter
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from quorisk.analysis.experiment.identity import id_of
from quorisk.analysis.results import schema, sealed, sweeps
from quorisk.kernels.errors import QuoriskError
from quorisk.plots.figures import Wish
from quorisk.sparkjobs.draw import plot
from tests.validation.flips import small_sweep
from tests.validation.page import Check

MOST_S = 60.0
NUMBERS = (0, 1, -1, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
VALUES = [
    *NUMBERS,
    *(1e-320, 1e308, -0.0, float("inf"), float("-inf"), float("nan"), True, None, "", "x" * 5000, "\u001b[31m", "\0"),
    *("$\\frac{1}{", "</script><img>", "\ud800", [], [1], {}, {"a": 1}, 10**400),
]
DEEP = "[" * 3000 + "]" * 3000
"""Instead of a value: deeper than Python reads."""


def crafted(row: dict[str, Any], chance: random.Random) -> None:
    """Changes a row in one to three places."""
    for _ in range(chance.randint(1, 3)):
        match chance.randrange(5):
            case 0 | 1:
                try:
                    parameters = dict(json.loads(row["parameters"]))
                except (RecursionError, TypeError, ValueError):  # changed before
                    return
                key = chance.choice([*parameters, "model.more", "a", "", "run.scenario"])
                if chance.random() < 0.1:
                    parameters.pop(key, None)
                else:
                    parameters[key] = chance.choice(VALUES)
                text = json.dumps(parameters)
                cut = chance.randrange(len(text))
                broken = [text, text, text, text[:cut], DEEP, "null", "[]", text.replace("1", DEEP, 1)]
                row["parameters"] = chance.choice(broken)
                if row["parameters"] != text:
                    return
            case 2:
                row[chance.choice([name for name in row if isinstance(row[name], int)])] = chance.choice(NUMBERS)
            case 3:
                lists = ("step_histogram", "loss_time_histogram", "losses_by_faults", "versions", "engines", "stopped")
                name = chance.choice(lists)
                row[name] = chance.choice([[], row[name] * 2, row[name][:1], row[name][::-1]])
            case 4 if row["invariants"]:
                one = chance.choice(row["invariants"])
                one[chance.choice(list(one))] = chance.choice(VALUES)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """The rows, under the ids that their parameters have."""
    for row in rows:
        row["point_id"] = id_of(row["protocol"], row["model_version"], row["parameters"])
    return pa.Table.from_pylist(rows, schema=schema.SCHEMA)


def flipped(rows: list[dict[str, Any]], chance: random.Random) -> bytes:
    """A file of the rows with one to three flipped bits, half of them in what describes the pages, and a right seal."""
    buffer = BytesIO()
    pq.write_table(table(rows).select(schema.REPRODUCIBLE), buffer, compression="zstd")
    whole = bytearray(buffer.getvalue())
    described_at = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    first = chance.choice([0, described_at])
    for _ in range(chance.randint(1, 3)):
        whole[chance.randrange(first, len(whole) - 8)] ^= 1 << chance.randrange(8)
    return sealed.sealed(bytes(whole))


def outcome(path: Path) -> str:
    """What drawing a table comes to: `drawn`, `refused`, or what is wrong with the way it was refused."""
    start = time.perf_counter()
    try:
        plot(path, path.parent / "figures", ["svg"], Wish(), None)
        said = "drawn"
    except QuoriskError as error:
        said = "refused" if "\n" not in str(error) else f"badly told: {str(error)[:300]!r}"
    except Exception as error:
        said = f"traceback: {error!r:.300}"
    took_s = time.perf_counter() - start
    return said if took_s < MOST_S else f"took {took_s:.0f} s"


def tables(count: int, seed: int) -> Check:
    """Crafted result tables."""
    counts: Counter[str] = Counter()
    with TemporaryDirectory() as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what NumPy cannot divide
        source = schema.read_rows(small_sweep(Path(temporary, "out")) / sweeps.RESULTS).to_pylist()
        path = Path(temporary, sweeps.RESULTS)
        for number in range(count):
            chance = random.Random(f"{seed} {number}")
            rows = json.loads(json.dumps(chance.sample(source, min(len(source), 6)), default=int))
            if chance.random() < 0.3:
                path.write_bytes(flipped(rows, chance))
            else:
                for _ in range(chance.randint(1, 2)):
                    crafted(chance.choice(rows), chance)
                try:
                    schema.write_reproducible(table(rows), path)
                except (pa.ArrowException, OverflowError, TypeError, UnicodeEncodeError, ValueError):
                    counts["not a table"] += 1
                    continue
            said = outcome(path)
            counts[said if said in ("drawn", "refused") else "wrong"] += 1
            if said not in ("drawn", "refused"):
                print(f"table {number}: {said}", flush=True)
    return Check(
        "Damage: crafted results",
        "Tables of results whose values were changed, or bits of their files flipped, and that were sealed again, as "
        "an attacker might do: `quorisk plot` draws them or refuses them in one line, within 60 s. Values that Parquet "
        "cannot hold make no table.",
        ("tables", "drawn", "refused in a line", "not a table", "traceback or slow"),
        [(f"{count:,}", *(f"{counts[each]:,}" for each in ("drawn", "refused", "not a table", "wrong")))],
        f"{count:,} tables, seed {seed}: {', '.join(f'{n:,} {what}' for what, n in sorted(counts.items()))}.",
        counts["wrong"] == 0,
    )
