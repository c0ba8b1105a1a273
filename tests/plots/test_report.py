"""The report: what it says of made-up result frames, and that it runs nothing of what they hold."""

import hashlib
import math
import re
from base64 import b64decode, b64encode

import numpy as np
import pytest

from quorisk.analysis.decision import years
from quorisk.analysis.decision.advice import recommend
from quorisk.analysis.experiment import config
from quorisk.analysis.results.frame import frame as frame_of
from quorisk.kernels.protocols import registry
from quorisk.plots.loss import loss_figure
from quorisk.plots.report import MOST_DESIGNS, MOST_LINES, LosingTrace, Picture, Provenance, report
from quorisk.plots.style import save
from quorisk.say import choose, numbers, text
from quorisk.say.scope import ScenarioWords, Scope
from quorisk.sparkjobs import screen
from quorisk.sparkjobs.draw import draw_report
from tests.plots.tables import HOSTILE, frame, table

PROVENANCE = Provenance("quorisk run x.toml --out results", "protocol = 1", ["numpy 2"])
LOST_AT = {"faults__message_loss": [0.1, 0.2]}


@pytest.fixture(scope="module")
def usual():
    """The report of two configurations, of which one lost data."""
    return report(frame([0, 30], **LOST_AT), [], PROVENANCE)


def test_a_report_escapes_whatever_it_is_given():
    given = frame([0, 5], **LOST_AT, **{f"model__{HOSTILE}": [HOSTILE]})
    given["invariant"] = given["invariant"].replace("CompactedLedgerLeak", HOSTILE)
    for column in ("point_id", "protocol", "engine", "method"):
        given[column] += HOSTILE
    picture = Picture(HOSTILE, HOSTILE, b"<svg/>")
    hostile = Provenance(f"quorisk run '{HOSTILE}'", HOSTILE, [HOSTILE], name=HOSTILE)
    html = report(given.assign(target=0.1), [picture], hostile, LosingTrace(HOSTILE.encode(), HOSTILE, HOSTILE))
    assert html.count("<script") == html.count("</script") == 1
    assert "<img src=x" not in html
    assert html.count("&lt;/script&gt;&lt;img") > 10
    for value in re.findall(r'(?:alt|aria-label|data-value)="([^"]*)"', html):
        assert not set("<>'") & set(value)


def test_headings_have_the_words_of_a_name_apart_so_that_none_run_together_where_a_line_breaks():
    given = frame([0, 5], **LOST_AT)
    given.loc[given["invariant"] == "CompactedLedgerLeak", ["invariant", "losses"]] = "EntriesReachAckQuorum", 1
    assert '<th scope="col" class="risk">P(Entries Reach Ack Quorum)</th>' in report(given, [], PROVENANCE)


def test_a_report_needs_and_runs_nothing_but_its_own():
    svg = save(loss_figure(frame([0, 5], **LOST_AT)), "svg")
    html = report(frame([0, 5], **LOST_AT), [Picture("Loss", "Of a model", svg)], PROVENANCE)
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html.replace("&#39;", "'"))
    hashes = {}
    for tag in ("style", "script"):
        [content] = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        hashes[tag] = b64encode(hashlib.sha256(content.encode()).digest()).decode()
    assert policy == (
        "default-src 'none'; img-src data:; "
        f"style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'"
    )
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(?!data:)[a-z]+:""", html)
    assert not re.search(r"""\s(on[a-z]+|style)=""", html)
    [image] = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", html)
    assert b64decode(image) == svg


def test_a_report_says_where_losses_were_solved_and_not_counted(usual):
    given = frame([0, 30], **LOST_AT)
    said = "of them, losses are too rare to count: there, the likeliest paths were solved exactly."
    assert said not in " ".join(usual.split())
    rare = given["faults.message_loss"] == 0.1
    given.loc[rare, "method"] = "exact head, tail bounded"
    assert f"In 1 {said}" in " ".join(report(given, [], PROVENANCE).split())


def test_breaches_are_counts_and_not_told_where_p_was_solved(usual):
    given = frame([0, 30], **LOST_AT)
    assert "estimated as breaches divided by runs." in " ".join(usual.split())
    rare = given["faults.message_loss"] == 0.1
    given["losses"] = given["losses"].astype(float)
    given.loc[rare, ["method", "losses"]] = ["exact head, tail bounded", 0.00010771524082712907]
    html = " ".join(report(given, [], PROVENANCE).split())
    assert '<td class="count">30</td>' in html
    assert '<td class="count">0.000' not in html
    assert '<td class="count"></td>' in html
    assert "elsewhere it was solved" in html
    html = " ".join(report(given.assign(method="exact head, tail bounded"), [], PROVENANCE).split())
    assert 'class="count"' not in html
    assert "It was solved; the runs give outcomes and steps." in html


def test_what_scenarios_have_of_their_own_is_not_told_as_if_all_had_it():
    given = frame([0, 3], run__scenario=["a", "b"])
    first = given["run.scenario"] == "a"
    own = {"run.lifetime": np.where(first, 60.0, 604800.0), "rates.fault": np.where(first, 2.0, 3.0)}
    told = text.fixed(given.assign(**own, **{"run.time_unit": "s", "rates.step": 400.0}))
    assert "lifetime 7 days" not in told["run"]
    assert "lifetime 1 min" not in told["run"]
    assert told["run"].endswith("each scenario has its own lifetime")
    assert told["rates"] == "1 / s, except step 1 / 2.5 ms; each scenario has its own fault"
    said = text.terms(given.assign(**own))  # in a sentence of its own, so that the others are those of all figures
    assert "Each scenario has its own fault and lifetime." in said
    assert said.count("its own") == 1
    acks = {"model.ack_quorum": np.where(first, 1, 2)}
    assert "Each scenario has its own AQ." in text.terms(given.assign(**acks))


def test_a_report_writes_large_and_small_numbers_in_one_way():
    given = frame([0, 3], run__scenario=["a", "b"]).assign(per_year=1.0)
    seldom = {"run.max_steps": 100_000, "run.time_unit": "s", "rates.fault": 4.2e-7 / 31_557_600}
    given = given.assign(hits=1.0, fates="", **seldom)
    outage = ScenarioWords("b", 5.207e10, "power", (), 9.9792e8)
    html = report(given, [], PROVENANCE._replace(scope=Scope(scenarios=(outage,))))
    assert "5.21 × 10¹⁰ times a year, 9.98 × 10⁸ objects each time: power." in html
    assert "max steps 100,000" in html
    assert "fault 4.2 × 10⁻⁵ % / year" in html
    assert "1,000 runs a point" in text.terms(given)
    assert "1,000 runs a point" in text.terms(years.yearly_frame(given))  # each, and not those of both scenarios


def test_the_methods_of_a_year_are_each_told_once():
    given = frame([0, 3], model__keys=[1, 2])
    given = given.assign(method=np.where(given["model.keys"] == 1, "exact head or counted", "counted"))
    assert "95% intervals (counted; or exact head), each on its own" in text.intervals(given)


def test_an_ensemble_as_large_as_the_write_quorum_is_nobodys_own():
    given = frame([0, 3, 3, 3], model__write_quorum=[2, 3], model__ensemble_size=[2, 3])
    given = given[given["model.write_quorum"] == given["model.ensemble_size"]]
    told = text.fixed(given.assign(**{"model.entries": 1}))
    assert "entries 1" in told["model"]
    assert "its own" not in told["model"]
    assert "E 2" not in told["model"]


def test_rates_and_times_have_units_where_the_file_has_them():
    given = frame([0], run__lifetime=[604800.0], rates__disk=[0.01 / 31_557_600])
    assert "lifetime 6.048 × 10⁵" in text.fixed(given)["run"]
    told = text.fixed(given.assign(**{"run.time_unit": "s"}))
    assert "lifetime 7 days" in told["run"]
    assert "time unit" not in told["run"]
    assert told["rates"] == "1 / s, except disk 1 % / year"


def test_a_report_says_less_than_and_not_0_where_nothing_was_lost(usual):
    bound = frame([0, 30], **LOST_AT)["high"][0]
    high = numbers.number(numbers.above(bound))
    assert f'data-value="{bound}">&lt; {high}</td><td class="count">0</td>' in usual
    assert "0.0300<small>" in usual
    assert "Seen in 1 of 2 configurations. Highest probability: 0.0300" in usual
    assert f"Not seen in the other 1, where it is at most {high}." in usual


def test_findings_are_of_the_likeliest_breach_and_of_the_weakest_bound():
    given = frame([0, 3, 30, 0], faults__message_loss=[0.1, 0.2, 0.3, 0.4])
    given.loc[given["point_id"] == "id3", "high"] = 0.5
    html = report(given, [], PROVENANCE)
    assert "Seen in 2 of 4 configurations. Highest probability: 0.0300" in html
    assert "with message loss 0.3. Not seen in the other 2, where it is at most 0.500." in html


def test_the_highest_probability_says_if_only_bounds_are_known():
    given = frame([30], model__keys=[1]).assign(method="exact head, sampled tail", bounds=True)
    assert "Highest probability: 0.0300 (bounds only) (0.0" in report(given, [], Provenance("quorisk run", "", []))


def test_of_a_large_grid_those_are_shown_whose_intervals_reach_highest():
    given = choose.rows_of(frame([0, 30, 0], model__keys=[1, 2, 3]), "data loss")
    given.loc[given["point_id"] == "id2", "high"] = 0.5
    assert list(choose.worst(given, 1)["point_id"]) == ["id2"]
    assert list(choose.worst(given, 2)["point_id"]) == ["id1", "id2"]


def test_a_report_says_what_became_of_unfinished_runs_and_of_those_that_the_horizon_ended(usual):
    given = table([0, 30], unfinished=7, horizon=5, **LOST_AT)
    by_then, at_any_time = (
        " ".join(report(frame_of(given, 0.95, False, which), [], PROVENANCE).split()) for which in (False, True)
    )
    assert "14 runs reached the limit of steps" in by_then
    assert "The horizon ended 10 runs. What they would have broken later is not counted." in by_then
    assert "The horizon ended 10 runs. The upper end of each interval counts each of them" in at_any_time
    for lifetime, horizon, said in ((5.0, math.inf, "lifetime"), (5.0, 9.0, "horizon or lifetime")):
        times = {"run.lifetime": lifetime, "run.horizon": horizon}
        html = report(frame_of(given, 0.95, False, False).assign(**times), [], PROVENANCE)
        assert f"The {said} ended 10 runs." in html
        assert f'<th scope="col">{said}</th>' in html
    assert "ended by the horizon" not in usual


def test_a_report_says_whether_time_was_up(usual):
    given = frame([0, 30], **LOST_AT)
    assert "give the same counts, bit for bit" in usual
    given.loc[given["point_id"] == "id1", "stopped"] = "time"
    judged = given.assign(target=0.1)
    html = " ".join(report(judged, [], PROVENANCE, words=recommend(judged, without_runs=3)).split())
    assert "Time was up at 1 of the 2 configurations before all their runs were done" in html
    assert "give the same counts, bit for bit" not in html
    assert "3 configurations without any runs yet" in html


def test_what_a_sweep_draws_says_which_configurations_have_no_runs(tmp_path):
    grid = {"rates": {"broker_crash": [0.5, 1.0, 2.0]}}
    experiment = config.build_experiment(
        {"protocol": "compaction", "model": registry.cases("compaction").small, "grid": grid}, "x.toml"
    )
    part = table([3], rates__broker_crash=[0.5])
    place = part.schema.get_field_index("point_id")
    part = part.set_column(place, part.schema.field(place), [[experiment.points[0].point_id]])
    draw_report(part, [experiment], "", tmp_path)
    assert "2 configurations without any runs yet" in (tmp_path / "report.html").read_text()


def test_a_report_says_what_a_probability_is_before_any_number(usual):
    assert usual.index("P(data loss) of a run") < usual.index('class="risk-now"')
    assert usual.index("it is not the rate at which a cluster fails in a year") < usual.index('id="recommendation"')


def test_a_report_judges_by_the_target():
    # 1000 runs: no losses are below 0.00369; 30 are 0.0203 to 0.0426
    given = frame([0, 0, 30, 30], model__keys=[1, 2], faults__message_loss=[0.1, 0.2])
    html = report(given.assign(target=0.01), [], PROVENANCE)
    verdicts = re.findall(r'class="verdict ([a-z-]+)">([a-z ]+)<', html)
    assert verdicts == [("meets", "meets"), ("does-not-meet", "does not meet")]
    assert "Run keys 1." in html
    assert "The other design does not meet the target" in html
    assert ">about" not in html
    undecided = report(given.assign(target=0.001), [], PROVENANCE)
    assert "undecided" in undecided
    assert "about 3687 runs of each configuration would settle them; there are 1,000" in undecided
    assert 'class="verdict' not in report(given, [], PROVENANCE)


def test_what_all_captions_say_is_said_once():
    pictures = [Picture("One", "Model x. Runs. Bars.", b""), Picture("Two", "Model x. Marks. Runs.", b"")]
    html = report(frame([0, 5], **LOST_AT), pictures, PROVENANCE)
    assert '<p class="soft" id="shared">For all figures of runs: Model x. Runs.</p>' in html
    assert "<figcaption>Bars.</figcaption>" in html
    assert "<figcaption>Marks.</figcaption>" in html
    with_cluster = report(frame([0, 5], **LOST_AT), [Picture("Cluster", "Nodes.", b""), *pictures], PROVENANCE)
    assert "For all figures of runs: Model x. Runs.</p>" in with_cluster
    assert "<figcaption>Nodes.</figcaption>" in with_cluster


def test_the_first_page_says_when_and_by_which_version():
    dated = PROVENANCE._replace(date="2026-11-21", versions=["numpy 2", "quorisk 0.1.0"])
    head = report(frame([0, 5], **LOST_AT), [], dated).partition("</header>")[0]
    assert " ".join(head.split()).find("2026-11-21 · compaction model, version 1 · quorisk 0.1.0") > 0


def test_a_report_names_the_command_that_settles_what_is_undecided():
    given = frame([0, 30], **LOST_AT).assign(target=0.001)
    resumed = PROVENANCE._replace(resume="quorisk run x.toml --out results --resume")
    html = report(frame([0, 0], **LOST_AT).assign(target=0.001), [], resumed)
    assert "<pre>quorisk run x.toml --out results --resume --set run.runs=3700</pre>" in html
    assert 'id="settle"' not in report(given, [], resumed)  # settled: it fails under one kind of faults
    assert 'id="settle"' not in report(frame([0, 0], **LOST_AT).assign(target=0.001), [], PROVENANCE)


def test_a_report_shows_a_counterexample_or_says_why_not():
    lossy, safe = frame([0, 30], **LOST_AT), frame([0, 0], **LOST_AT)
    html = report(lossy, [], PROVENANCE, counterexample=LosingTrace(b"<svg>1</svg>", "Two bookies", "First, a < b."))
    assert b64encode(b"<svg>1</svg>").decode() in html
    assert "Two bookies" in html
    assert "<pre>First, a &lt; b.</pre>" in html
    assert "no-counterexample" not in html
    assert "This report was made without one" in report(lossy, [], PROVENANCE)
    assert "None of these runs lost data" in report(safe, [], PROVENANCE)


def test_a_report_of_a_large_grid_is_bounded_and_says_what_it_leaves_out():
    given = frame([i % 30 for i in range(300)], model__keys=range(300))
    html = report(given.assign(target=0.01), [], PROVENANCE)
    assert len(html) < 140_000
    assert html.count("<tr>") < 2 * MOST_LINES + MOST_DESIGNS + 20
    assert "Shown: the configurations whose intervals reach highest, 200 of 300" in html
    assert "Shown: the first 50 of 300" in " ".join(html.split())


def test_a_report_speaks_of_lost_messages_only_where_some_may_be(usual):
    assert "Each message is lost independently" in usual
    none = report(frame([0, 30], model__keys=[1, 2]), [], PROVENANCE)
    assert "No message is lost in these runs" in none
    assert "lost independently" not in none
    assert "lost independently" not in report(frame([3]), [], PROVENANCE)  # its point sends none


def test_a_report_says_whether_its_intervals_hold_together(usual):
    assert "about 0.1 of 2 intervals may miss" in usual
    together = frame_of(table([0, 30], faults__message_loss=[0.1, 0.2]), 0.95, simultaneous=True)
    assert "all 2 intervals hold together" in report(together, [], PROVENANCE)
    assert text.intervals(together) == "95% intervals (simultaneous Clopper-Pearson), for all points together"
    assert text.intervals(frame([0, 30], **LOST_AT)) == "95% intervals (Clopper-Pearson), each on its own"


def test_invariants_that_say_nothing_more_are_not_shown():
    given = frame([0, 30], faults__message_loss=[0.1, 0.2])
    assert text.shown(given) == ["data loss"]
    given.loc[given["invariant"] == "CompactedLedgerLeak", "losses"] = 3
    lossy = given["invariant"] == "CompactionHorizonCorrectness"
    given.loc[lossy, "losses"] = [0, 30]  # the only way in which data were lost
    assert text.shown(given) == ["data loss", "CompactedLedgerLeak"]
    given.loc[given["invariant"] == "CompactedLedgerLeak", "losses"] = [0, 30]  # by chance, as often
    assert text.shown(given) == ["data loss", "CompactedLedgerLeak"]
    given.loc[lossy, "losses"] = [0, 29]
    assert text.shown(given) == ["data loss", "CompactedLedgerLeak", "CompactionHorizonCorrectness"]


def test_a_summary_on_screen_ends_before_it_fills_the_screen():
    table = screen.probability_table(frame([1] * 50, model__keys=range(50)), 100)
    assert table.row_count == screen.MOST_LINES
    assert table.caption == "10 more configurations in results.parquet"


def test_a_report_says_what_the_model_leaves_out_and_what_the_year_is_beside_its_recommendation(usual):
    told = ScenarioWords("failover", 2000.0, "a broker dies", ("One entry is in flight.",))
    once = told._replace(name="outage", per_year=1.0, about="the power fails")
    scope = Scope(("The metadata store never fails.",), (told, once), ("Round trips are independent.",), "ssd: disks")
    given = PROVENANCE._replace(scope=scope, ask="quorisk recommend x.toml --break-even all")
    html = " ".join(report(frame([0, 30], **LOST_AT), [], given).split())
    [box] = re.findall('<div class="box" id="recommendation">.*?</div>', html)
    [model] = re.findall('<details class="fold" id="model">.*?</details>', html)
    said = '<ul id="limits"> <li>The metadata store never fails.</li> <li>Round trips are independent.</li> </ul>'
    assert said in model
    assert f'<a href="#exclusions">{model.count("<li>")} assumptions and exclusions</a>' in html
    assert "<code>quorisk recommend x.toml --break-even all</code>" in box
    assert "<dd>2000 times a year: a broker dies. One entry is in flight.</dd>" in html
    assert "<dd>once a year: the power fails. One entry is in flight.</dd>" in html
    settings = PROVENANCE._replace(scope=Scope(settings=(("acks=0", "not modelled", "nothing is acknowledged"),)))
    html = report(frame([0, 30], **LOST_AT), [], settings)
    assert '<tr><td class="text">acks=0</td><td class="text">not modelled</td>' in html
    assert 'id="limits"' not in usual


def test_exposure_and_availability_stand_apart_from_losses():
    given = frame([0, 30], **LOST_AT)
    others = ("DuplicateNullKeyMessage", "CompactedLedgerLeak")
    given.loc[given["invariant"].isin(others), ["losses", "p"]] = 7, 0.007
    about = dict(zip(others, ("exposure", "availability"), strict=True))
    given["about"] = given["invariant"].map(about).fillna("")
    given["exposed_for"] = given["about"].map({"exposure": "58 min"}).fillna("")
    html = report(given, [], PROVENANCE)
    assert html.count("It then lasts for 58 min on average") == 1
    headings = re.findall(r"<h3>((?:Exposure|Availability).*?): nothing is lost", html)
    assert headings == ["Exposure", "Availability"]
    places = [html.index(f"A run {text.event(each)}") for each in (text.ANY_LOSS, *others)]
    assert places == sorted(places)
    assert html.index("<h3>Exposure") < places[1] < html.index("<h3>Availability") < places[2]


def test_a_report_tells_three_quantiles_of_the_write_latency_and_what_is_stored():
    levels = {
        f"write_{name}_{end}ms": ms * by
        for name, ms in (("p50", 1.0), ("p99", 10.0), ("p999", 20.0))
        for end, by in (("", 1.0), ("low_", 0.9), ("high_", 1.1))
    }
    given = frame([0, 30], model__keys=[1, 2]).assign(**levels, stored_bytes=3 * 1024.0, wants_write_p99_ms=15.0)
    html = report(given.assign(target=0.1), [], PROVENANCE)
    cell = '10.0<small>9.00 to 11.0</small><small class="extra">median 1.00; p99.9 20.0</small>'
    assert f'<td data-value="10.0">{cell}</td>' in html
    assert '<td data-value="3072.0">3 KiB</td>' in html
