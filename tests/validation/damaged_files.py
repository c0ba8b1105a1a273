"""Damaged and nonsensical experiment files: each is read or refused in time, in one line that names the file.

A file starts as one of configs/ or as TABLES, and is changed a few times: bytes and lines go, come twice or change
places, values become others that somebody may have meant or not. What can be read is not run, only read.
"""

import random
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from quorisk.analysis.experiment import config
from quorisk.kernels.errors import ConfigError
from tests.validation.page import ROOT, Check

MOST_S = 30.0
VALUES = [
    *("0", "-1", "1", "7", "1e6", "1e-18", "1e400", "inf", "-inf", "nan", "9" * 30, "true", "[]", "[1, 1]", "{}", '""'),
    *(
        '"x"',
        '"1 / 2 ms"',
        '"1 % / year"',
        '"5 s"',
        '"\\u001b[31m"',
        "2026-11-21",
        "[[[[[[]]]]]]",
        "'''a\nb'''",
        "0x10",
    ),
    *('"1 / (0 s)"', '"-3 s"', '"1 / 2 parsecs"', '["where < 3"]', '"' + "y" * 100_000 + '"', "[" * 2000 + "]" * 2000),
    *(
        "9" * 400,
        '"\\u0000"',
        '{ csv = "\\u0000" }',
        '{ csv = "." }',
        "{ median_ms = 1, p99_ms = inf }",
        "{ median_ms = " + "9" * 400 + ", p99_ms = 1 }",
    ),
]
KEYS = [
    *("runs", "bookies", "message_loss", "protocol", "a" + ".a" * 1500, "rates", '"\\u0000"', "where", "confidence"),
    *("replica", "cut_ms", "request", "entry_bytes", "losses_per_year", "survives", "csv", "profile"),
]

TABLES = """
protocol = "bookkeeper"
profile = "bookkeeper_ssd"
[model]
bookies = 3
clients = 2
write_quorum = 2
ack_quorum = 2
entries = 1
inflight = 1
[cost]
entry_bytes = 1000
[latency]
request = { median_ms = 1, p99_ms = 3 }
answer = { pareto_share = 0.5, pareto_min_ms = 1, pareto_shape = 3, exponential_per_ms = 2 }
cut_ms = 7
[targets]
losses_per_year = 1
write_p99 = "5 ms"
copies = 2
survives = "1 zone"
[scenarios.a]
per_year = 3
[run]
runs = 100
"""
"""Each table and kind of delay that those of configs/ lack."""


def damaged(text: str, chance: random.Random) -> bytes:
    """A file after one to four changes."""
    for _ in range(chance.randint(1, 4)):
        lines = text.split("\n")
        place = chance.randrange(len(lines))
        match chance.randrange(6):
            case 0:
                del lines[place]
            case 1:
                lines.insert(place, lines[chance.randrange(len(lines))])
            case 2:
                lines[place] = f"{lines[place].partition('=')[0]}= {chance.choice(VALUES)}"
            case 3:
                lines.insert(place, f"{chance.choice(KEYS)} = {chance.choice(VALUES)}")
            case 4:
                lines[place] = "".join(chance.sample(lines[place], len(lines[place])))
            case 5:
                cut = chance.randrange(len(text) + 1)
                lines = [text[:cut] + chance.choice(["", "\0", "é", "[", '"', "=", "\ufeff"]) + text[cut + 1 :]]
        text = "\n".join(lines)
    whole = text.encode()
    return whole if chance.random() < 0.95 else whole[: len(whole) // 2] + b"\xff\xfe" + whole[len(whole) // 2 :]


def outcome(path: Path) -> tuple[str, float]:
    """What reading a file comes to, in how many seconds of processor time: `read`, `refused`, or what is wrong with the
    way it was refused.
    """
    start = time.process_time()
    try:
        config.load(path)
        said = "read"
    except ConfigError as error:
        text = str(error)
        short = "\n" not in text and len(text) < 2000 and text.isprintable() and text.startswith(str(path))
        said = "refused" if short else f"badly told: {text[:300]!r}"
    except Exception as error:
        said = f"traceback: {error!r:.300}"
    took_s = time.process_time() - start
    return said if took_s < MOST_S else f"took {took_s:.0f} s", took_s


def files(count: int, seed: int) -> Check:
    """Experiment files."""
    sources = [path.read_text("utf-8") for path in sorted((ROOT / "configs").glob("*.toml"))]
    sources = [text for text in sources if len(text) < 20_000] + [TABLES]
    counts, longest_s = Counter[str](), 0.0
    with TemporaryDirectory() as temporary:
        for number in range(count):
            chance = random.Random(f"{seed} {number}")
            path = Path(temporary, f"{number}.toml")
            path.write_bytes(damaged(chance.choice(sources), chance))
            said, took_s = outcome(path)
            longest_s = max(longest_s, took_s)
            counts[said if said in ("read", "refused") else "wrong"] += 1
            if said not in ("read", "refused"):
                print(f"file {number}: {said}", flush=True)
            path.unlink()
    found = ", ".join(f"{n:,} {what}" for what, n in sorted(counts.items()))
    return Check(
        "Damage: experiment files",
        "Files of configs/, and one with every table that they lack, with bytes, lines and values changed: each is "
        "read, or refused in one short line that names the file, within 30 s of processor time.",
        ("files", "read", "refused in a line", "traceback, long line or slow"),
        [(f"{count:,}", *(f"{counts[each]:,}" for each in ("read", "refused", "wrong")))],
        f"{count:,} files, seed {seed}: {found}, none in more than {longest_s:.2g} s.",
        counts["wrong"] == 0,
    )
