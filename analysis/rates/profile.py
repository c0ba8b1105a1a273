"""A profile made from data: a file that experiments take figures from, with counts, posterior, source and date."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from quorisk.analysis.experiment.characters import one_line
from quorisk.analysis.experiment.profiles import Profile
from quorisk.analysis.files import reason
from quorisk.analysis.files import write_whole as whole
from quorisk.analysis.rates.answer import RatesAnswer
from quorisk.analysis.rates.findings import EVENTS, OF_CLUSTER, Finding
from quorisk.analysis.rates.observed import DAY_S
from quorisk.analysis.statistics.known import Beta, Gamma
from quorisk.kernels.errors import ConfigError
from quorisk.say.quantities import digits, written_rate

_SCOPES = {"rack_lost": "rack", "nodes_lost_together": "batch"}
"""Scopes of the events in data: what their nodes share. Experiment files give the scope of outages."""
_UNITS = (("days", DAY_S), ("h", 3600), ("s", 1))


def write_profile(answer: RatesAnswer, path: Path, command: str) -> None:
    """Writes the profile from data, dated today; `command` is the command line. Raises ConfigError if nothing can be
    written there, and RunError if the disk has no room for it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f" {path}: cannot be written: {reason(error)}", "out") from None
    whole(path, profile_text(answer, command, datetime.now(UTC).date()).encode(), "out")


def profile_text(answer: RatesAnswer, command: str, day: date) -> str:
    """Returns the profile's text: the figures that data give, and the name of the profile with all others."""
    base, found = answer.base, [each for each in answer.findings if each.key]
    names = ", ".join(each.key.partition(".")[2] for each in found)
    lines = [
        f"# Made by `{one_line(command)}`.",
        "# What it does not say is as in the profile that it names: each figure there has its own source.",
        f"protocol = {json.dumps(base.protocol)}",
        f"profile = {json.dumps(base.name)}",
        f"about = {_string(f'{base.about}; {names} from our own data')}",
        f"date = {day.isoformat()}",
    ]
    cluster = _of_cluster(answer.findings)
    for each in [*found, *cluster.values()]:
        lines += ["", *_figure(each, base, day)]
    for event, scope in _SCOPES.items():
        if often := cluster.get(f"{EVENTS}{event}.per_year"):
            lines += ["", *_setting(f"{EVENTS}{event}.scope", json.dumps(scope), "what an event may take")]
            if scope == "batch":
                nodes = cluster[f"{EVENTS}{event}.p_lost"].observed.exposure / often.observed.events
                lines += ["", *_setting(f"{EVENTS}{event}.nodes", f"{nodes:.0f}", "the most that one event took")]
    return "\n".join(lines) + "\n"


def _of_cluster(findings: Sequence[Finding]) -> dict[str, Finding]:
    """Findings on [cluster], for files that have it, by its keys; if two kinds give one key, the first. An event has
    both figures or none: a file without such an event would lack the other."""
    found: dict[str, Finding] = {}
    for each in findings:
        if key := OF_CLUSTER.get(each.observed.kind):
            found.setdefault(key, each._replace(key=key, why=each.why if each.key else "all counts together"))
    fields = Counter(key.rpartition(".")[0] for key in found)
    return {
        key: each for key, each in found.items() if not key.startswith(EVENTS) or fields[key.rpartition(".")[0]] == 2
    }


def _setting(key: str, value: str, means: str) -> list[str]:
    return [f"[{key}]", f"value = {value}", f"means = {_string(means)}", 'source = "the same data"']


def _figure(found: Finding, base: Profile, day: date) -> list[str]:
    observed, known = found.observed, found.known
    say = (lambda p: f"{digits(100 * p)} %") if observed.kind.in_trials else written_rate
    low, high, least, most = (say(float(each)) for each in known.quantile([0.05, 0.95, 0.025, 0.975]))
    counted = f"{observed.kind.name}: {observed.events:,} in {observed.amount}"
    there = base.figures.get(found.key)
    value = f"{known.median:.3g}" if observed.kind.in_trials else f'"{written_rate(known.median)}"'
    match known:
        case Gamma(events, exposure_s):
            what = [f"events = {events}", f'exposure = "{_exposure(exposure_s)}"']
        case Beta(events, trials):
            what = [f"events = {events}", f"trials = {int(trials)}"]
        case _:
            what = [f'low = "{low}"', f'high = "{high}"']
    nothing = [f"# Nothing happened: at most {high} with 95 %, an upper bound; the value is a median all the same."]
    return [
        *(nothing if not observed.events else []),
        f"# Posterior, {one_line(found.why)}: median {say(known.median)}, mean {say(known.mean)};",
        f"# 90 %: {low} to {high}; 95 %: {least} to {most}.",
        f"[{found.key}]",
        f"value = {value}",
        *what,
        f"means = {_string(there.means if there else observed.kind.about)}",
        f"source = {_string(f'{counted} ({observed.source}); read on {day.isoformat()}')}",
    ]


def _exposure(time_s: float) -> str:
    """A time in a unit in which it has few digits, exact to nine of them."""
    unit, seconds = next((each for each in _UNITS if time_s >= 10 * each[1]), _UNITS[-1])
    return f"{float(f'{time_s / seconds:.9g}'):.10g} {unit}"


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
