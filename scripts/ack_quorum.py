"""What an acknowledgement that waits for one bookie less costs, exactly: a figure, and the sentence that it says.

An entry's life (configs/pulsar.toml) is solved for ack quorums of write_quorum and of one less, for message losses from
none to one in a hundred, without and with power outages. Minutes.

    python scripts/ack_quorum.py
    python scripts/ack_quorum.py --write-quorum 2 --out results/ack_quorum.svg
"""

import itertools
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import typer

from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config
from quorisk.command import bars
from quorisk.plots.ack_quorum import TERMS, ack_quorum_figure
from quorisk.plots.style import save
from quorisk.say import numbers
from quorisk.say.quantities import say_rate

ROOT = Path(__file__).parent.parent
FILE = ROOT / "configs" / "pulsar.toml"
LOSSES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
SHOWN_LOSS = 1e-3
"""The message loss at which losses are broken down."""
OUTAGES = {False: "disks that fail", True: "also power outages"}
MEMORY_BYTES = 4 << 30


def losses_per_year(write_quorum: int, ack_quorum: int, message_loss: float, outages: bool) -> float:
    """Expected losses a year of the file's scenario of an entry's life."""
    overrides = {
        "run.scenario": "entry",
        "model.write_quorum": write_quorum,
        "model.ack_quorum": ack_quorum,
        "model.bookies": write_quorum + 1,
        "faults.message_loss": message_loss,
        "faults.max_outages": int(outages),
    }
    experiment = config.load(FILE, [f"{key}={value}" for key, value in overrides.items()])
    return experiment.scenarios["entry"].per_year * exact(experiment, MEMORY_BYTES).data_loss.p


def main(write_quorum: int = 3, out: Path = ROOT / "docs" / "gallery" / "ack_quorum.svg") -> None:
    """Solves, draws and says it."""
    quorums = (write_quorum, write_quorum - 1)
    losses: dict[tuple[int, bool, float], float] = {}
    with bars.run_bar(len(quorums) * 2 * len(LOSSES), "chains") as progress:
        for ack_quorum, outages, loss in itertools.product(quorums, OUTAGES, LOSSES):
            losses[ack_quorum, outages, loss] = losses_per_year(write_quorum, ack_quorum, loss, outages)
            if progress:
                progress(1)
    curves = pd.DataFrame(
        [
            {"design": f"AQ {ack_quorum}", "faults": OUTAGES[outages], "message_loss": loss, "losses_per_year": each}
            for (ack_quorum, outages, loss), each in losses.items()
        ]
    )
    budget = pd.DataFrame([{"design": f"AQ {ack_quorum}"} | _terms(losses, ack_quorum) for ack_quorum in quorums])
    factors = {key: losses[quorums[1], *key] / losses[quorums[0], *key] for key in itertools.product(OUTAGES, LOSSES)}
    without, with_outages = (factors[each, SHOWN_LOSS] for each in OUTAGES)
    title = (
        f"Acknowledging {write_quorum} copies after {write_quorum - 1} multiplies losses by {numbers.plain(without)} "
        f"if disks fail one by one, by {numbers.plain(with_outages)} if power fails, too"
    )
    figure = ack_quorum_figure(curves, budget, title, _caption(write_quorum))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(save(figure, out.suffix.removeprefix(".")))
    print(budget.to_string(index=False))
    for key, factor in factors.items():
        when = f"{OUTAGES[key[0]]}, message loss {key[1]:g}"
        print(f"{when}: an ack quorum of {quorums[1]} multiplies losses by {factor:,.4g}")
    print(out)


def _terms(losses: Mapping[tuple[int, bool, float], float], ack_quorum: int) -> dict[str, float]:
    """What losses a year at SHOWN_LOSS add up from."""
    alone, both = losses[ack_quorum, False, 0.0], losses[ack_quorum, True, 0.0]
    terms = (alone, both - alone, losses[ack_quorum, True, SHOWN_LOSS] - both)
    return dict(zip(TERMS, terms, strict=True))


def _caption(write_quorum: int) -> str:
    experiment = config.load(FILE, ["run.scenario=entry"])
    scenario, rates = experiment.scenarios["entry"], experiment.points[0].point.rates
    outages, p_lost = (
        say_rate(rates["cluster_loses_power"]),
        experiment.points[0].point.other_losses["p_lost_in_outage"],
    )
    alone, per_year = say_rate(rates["bookie_is_lost"]), numbers.short(scenario.per_year)
    return (
        f"{per_year} times a year {scenario.about}: exact, no sampling, by scripts/ack_quorum.py. "
        f"Write quorum {write_quorum}, {write_quorum + 1} bookies; a bookie is lost at {alone}; "
        f"power fails at {outages}, and a bookie does not come back with {numbers.plain(p_lost)}. Right: at a message "
        f"loss of {numbers.plain(SHOWN_LOSS)}, what losses would be if disks failed one by one and no message were "
        "lost, what power outages add, and what lost messages add to both."
    )


if __name__ == "__main__":
    typer.run(main)
