"""The first page of a sweep's report: which rates, faults and lifetimes would change the choice."""

import html
import json
import os
import re

import pyarrow as pa
import pytest

from quorisk.analysis.decision import breakeven
from quorisk.analysis.decision.recommend import advise, as_json
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.experiment import config
from quorisk.analysis.results import schema
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.numba_engine import simulate
from quorisk.kernels.engines.tally import named_tally
from quorisk.sparkjobs import folder
from quorisk.sparkjobs.draw import draw_report
from quorisk.sparkjobs.state import identity
from quorisk.sparkjobs.sweep import work_of
from tests.support import FLIPPING_FILE


@pytest.fixture
def first_page(tmp_path, no_figures):
    """The sentences on what would change the choice in the report of FLIPPING_FILE, run with settings."""

    def first_page(within_s, *settings):
        path = tmp_path / "x.toml"
        path.write_text(FLIPPING_FILE, "utf-8")
        experiment = config.load(path, settings)
        jobs = [Job(point, 0, experiment.run.runs) for point in range(len(experiment.points))]
        found = simulate(experiment.model, work_of(experiment).points, jobs, 1).tolist()
        rows = [
            schema.row(
                identity(experiment, each), experiment.model, 0, named_tally(experiment.model, sums), "numba", 1.0
            )
            for each, sums in zip(experiment.points, found, strict=True)
        ]
        table = pa.Table.from_pylist([row | {"stopped": ["runs"]} for row in rows], schema=schema.SCHEMA)
        draw_report(table, [experiment], "", tmp_path, None, within_s)
        [page] = re.findall('<ul id="flips">(.*?)</ul>', (tmp_path / "report.html").read_text(), re.DOTALL)
        return [html.unescape(each) for each in re.findall("<li>(.*?)</li>", page)]

    return first_page


def test_a_rate_that_would_change_the_choice_stands_on_the_first_page_and_both_sides_hold(first_page, tmp_path):
    """And if there was too little time for them, more time finds them."""
    assert any(each.startswith("Not tried: ") and '"bookie is lost"' in each for each in first_page(1e-9))
    assert json.loads((tmp_path / folder.BREAK_EVEN).read_text())["within_s"] == 1e-9
    said = first_page(1000.0)
    pattern = r'With "bookie is lost" at (\S+) \(up from 0\.001\): (.*); with (\S+), still (.*)\.'
    [(beyond, instead, before, chosen)] = [told.groups() for each in said if (told := re.fullmatch(pattern, each))]
    assert chosen == "AQ 2"
    assert instead == "no design meets the targets"
    experiment = config.load(tmp_path / "x.toml")
    for value, expected in ((before, "AQ 2"), (beyond, None)):
        there = advise(experiment.changed(f"rates.bookie_is_lost={value}"), Weigher(1 << 26, 1))
        assert as_json(there)["chosen"] == expected


def test_without_time_or_targets_none_is_told_and_a_report_is_called_as_the_experiment_s_file_is(first_page, tmp_path):
    assert not any("bookie is lost" in each for each in first_page(0.0))
    said = (tmp_path / "report.html").read_text()
    assert "<title>Quorisk: x</title>" in said
    assert "<h1>x: " in said
    assert not any("bookie is lost" in each for each in first_page(1000.0, "run.target=inf"))


@pytest.mark.exhaustive
def test_what_was_found_is_not_searched_for_again_unless_something_changed(first_page, tmp_path, monkeypatch):
    searched = []

    def search(*given, **named):
        searched.append(given)
        return breakeven_search(*given, **named)

    breakeven_search = breakeven.find_break_even
    monkeypatch.setattr(breakeven, "find_break_even", search)
    said = first_page(1000.0)
    for within_s in (1000.0, 2000.0):  # nothing was left for want of time
        assert first_page(within_s) == said
    assert len(searched) == 1
    first_page(1000.0, "run.target=0.006")
    assert len(searched) == 2
    kept = tmp_path / folder.BREAK_EVEN
    whole = kept.read_bytes()
    other = whole.replace(b"bookie", b"broker")
    for damaged in (b"", b"[]", whole[:-3], b"[" * 100_000, other):
        kept.write_bytes(damaged)
        assert first_page(1000.0) == said
    assert (len(searched), other != whole) == (7, True)
    kept.unlink()
    os.mkfifo(kept)
    assert first_page(1000.0) == said
