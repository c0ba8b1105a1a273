"""The Python API gives the answers of the verbs, with frames and looks for notebooks; the notebook of docs/ runs."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from nbclient import NotebookClient

import quorisk as q
from quorisk.kernels.errors import ConfigError
from tests.analysis.experiment.files import BOOKKEEPER
from tests.analysis.rates.stats import row, write
from tests.support import FLIPPING_FILE, ROOT, SMALL_FILE

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
TIMES = ("seconds", "compile_s", "steps_per_s", "runs_per_s", "build_s", "solve_s", "threads")


@pytest.fixture
def file(written):
    return str(written("topic.toml", SMALL_FILE + "[run]\nruns = 3000\nseed = 3\n"))


def without_times(answer):
    return {key: value for key, value in json.loads(json.dumps(answer)).items() if key not in TIMES}


def test_functions_answer_what_the_verbs_answer(printed, file):
    switch = "variant.persist_cursor_before_delete"
    asked = {
        ("estimate",): lambda: q.estimate(file, {"run.seed": 4}),
        ("exact", "--by-steps", "9"): lambda: q.exact(q.load_experiment(file, {"run.seed": 4}), by_steps=[9]),
        ("sensitivity",): lambda: q.sensitivity(file, {"run.seed": 4}),
        ("explore", "--memory", "64MiB"): lambda: q.explore(file, ["run.seed=4"], memory="64MiB"),
        ("compare", "--vary", f"{switch}=true,false"): lambda: q.compare(file, {switch: [True, False]}, ["run.seed=4"]),
        ("compare", "--ablation"): lambda: q.compare(file, overrides={"run.seed": 4}),
        ("trace", "--invariant", "CompactedLedgerLeak"): lambda: q.trace(
            file, {"run.seed": 4}, invariant="CompactedLedgerLeak"
        ),
        ("trace", "--run", "4:7"): lambda: q.trace(file, ["run.seed=4"], run=(4, 7)),
    }
    for (verb, *options), answer in asked.items():
        out = printed(verb, file, *options, "--set", "run.seed=4", "--json")
        found: Any = answer()
        assert without_times(found.as_json()) == without_times(json.loads(out)), verb
        frame = found.frame()
        assert isinstance(frame, pd.DataFrame)
        assert len(frame)
        html = found._repr_html_()
        assert html.startswith(("<pre", "<svg", "<?xml"))
        assert len(html) > 500


def test_numbers_of_numpy_are_numbers(file):
    whole = {"protocol": "compaction", "model": {"messages": np.int64(2), "compactions": np.int32(2)}}
    whole["grid"] = {"max_crashes": np.arange(2)}
    given = q.load_experiment(whole, {"keys": np.int64(1), "values": 1, "rates.broker_crash": np.float64(0.5)})
    assert [each.point.values["max_crashes"] for each in given.points] == [0, 1]
    assert given.points[0].point.rates["broker_crash"] == 0.5
    told = q.load_experiment(file, {"run.seed": np.uint16(4), "grid.messages": np.array([2, 3])})
    assert (told.run.seed, len(told.points)) == (4, 2)


def test_runs_one_by_one_add_up_to_the_estimate(file):
    asked = {"run.first_run": 70, "variant.publish_context_before_horizon": False}
    frame, found = q.runs(file, asked), q.estimate(file, asked)
    assert found.data_loss.losses > 10
    assert frame["run"].tolist() == list(range(70, 70 + 3000))
    assert frame["outcome"].value_counts().to_dict() == found.outcomes
    assert frame["steps"].sum() == found.steps
    for name, risk in found.invariants.items():
        assert frame[name].sum() == risk.losses
    lost = frame[frame["outcome"] == "lost"]
    assert lost["time"].mean() == pytest.approx(found.mean_time_to_loss)
    with pytest.raises(ConfigError, match="records of each run"):
        q.runs(file, {"run.runs": 10**9})


def test_a_bound_is_no_probability_and_frames_say_of_what_they_are(file):
    frame = q.estimate(file, {"variant.persist_cursor_before_delete": True}).frame()
    bounded = frame["losses"] == 0
    assert bounded.any()
    assert (frame["p"].isna() == bounded).all()
    assert (frame["model.messages"] == 3).all()
    assert (q.exact(file).frame()["rates.broker_crash"] == 1.0).all()
    assert (q.explore(file, memory="64MiB").frame()["model.keys"] == 1).all()


@pytest.mark.parametrize("given", [{}, {"model.track_committed": True}])
def test_a_search_without_history_does_not_claim_that_nothing_is_lost(given):
    """Kafka's unflushed records are lost in an outage, which only `track_committed` shows."""
    kafka = {
        "protocol": "kafka",
        "model": {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2},
        "variant": {"flush_every_message": False},
        "faults": {"max_outages": 1},
    }
    found = q.explore(kafka, given, memory="64MiB")
    frame = found.frame().set_index("invariant")
    assert (frame["model.track_committed"] == bool(given)).all()
    assert (frame["breaking_states"]["CommittedRecordsSurvive"] > 0) == bool(given)
    assert ("none found" in found._repr_html_()) != bool(given)
    assert ("losses may be missed" in found._repr_html_()) != bool(given)


def test_recommend_answers_what_the_verb_answers(quorisk, written):
    path = written("designs.toml", FLIPPING_FILE)
    code, out, err = quorisk("recommend", str(path), "--break-even", "none", "--json")
    assert code == 0, err
    for line in err.splitlines():  # what is told as soon as it is known, where that takes a few seconds
        assert re.fullmatch(r"AQ [12]: P\(data loss\) of a run .*|configuration \d of 2.*", line), err
    found = q.recommend(path)
    assert found.as_json() == json.loads(out)
    assert found.frame()["design"].tolist() == [each["design"] for each in json.loads(out)["designs"]]
    assert found.frame()["chosen"].sum() == 1
    assert "Run AQ 2." in found._repr_html_()


def test_what_is_asked_wrongly_is_a_line(file):
    threads: Any
    for threads in (-3, 0, "a", 2.5, True, False):
        with pytest.raises(ConfigError, match=f"threads {threads}: a whole number from 1 up"):
            q.estimate(file, threads=threads)
    threads = np.int64(1)
    assert q.estimate(file, threads=threads).runs == q.estimate(file).runs
    sources: list[Any] = [None, 5, "\0"]
    for source in sources:
        with pytest.raises(ConfigError, match=r"^source .*: an experiment, the path of its file, or a dictionary of"):
            q.estimate(source)
    overrides: Any = [("run.runs", 1)]
    with pytest.raises(ConfigError, match=r"written as section\.key=value"):
        q.estimate(file, overrides)


WRONG: dict[str, tuple[Callable[..., object], dict[str, Any], str]] = {
    "overrides": (q.load_experiment, {"overrides": 5}, r"overrides 5: values by dotted key, or texts such as"),
    "no lists to compare": (q.compare, {"vary": "x"}, "vary 'x': a dictionary of lists of values by key"),
    "no list to compare": (q.compare, {"vary": {"model.keys": 2}}, "vary 2: a dictionary of lists of values by key"),
    "no list of figures": (q.recommend, {"break_even": 5}, "break_even 5: a list of keys, or None for all"),
    "a figure alone": (q.recommend, {"break_even": "rates.x"}, "break_even 'rates.x': a list of keys"),
    "a figure": (q.recommend, {"break_even": ["x"]}, "break_even x: one of "),
    "steps": (q.exact, {"by_steps": 5}, "by_steps 5: a list of numbers of steps"),
    "a step": (q.exact, {"by_steps": ["x"]}, "by_steps 'x': a whole number of steps, 0 or more"),
    "half a step": (q.exact, {"by_steps": [1.5]}, "by_steps 1.5: a whole number of steps, 0 or more"),
    "times": (q.exact, {"by_time": 5.0}, "by_time 5.0: a list of times"),
    "a time": (q.exact, {"by_time": ["x"]}, "by_time 'x': a time, 0 or more"),
    "a run": (q.trace, {"run": 5}, r"run 5: a seed and an index, \(SEED, INDEX\)"),
    "half a run": (q.trace, {"run": (1,)}, "run '1': SEED:INDEX"),
    "a trace": (q.trace, {"replay": 5}, "replay 5: the path of a saved trace"),
    "a folder": (q.sweep, {"out": 5}, "out 5: the path of a folder"),
    "seconds": (q.sweep, {"out": "x", "budget_s": "x"}, "budget_s 'x': a number of seconds from 0 up"),
    "seconds below 0": (q.sweep, {"out": "x", "budget_s": -1}, "budget_s -1: a number of seconds from 0 up"),
    "no seconds": (q.sweep, {"out": "x", "budget_s": math.nan}, "budget_s nan: a number of seconds from 0 up"),
    "a switch for seconds": (q.sweep, {"out": "x", "budget_s": True}, "budget_s True: a number of seconds from 0 up"),
    "settings": (q.sweep, {"out": "x", "conf": "x"}, "conf 'x': settings by name"),
    "a master": (q.sweep, {"out": "x", "master": 5}, "master 5: the URL of a Spark master"),
}


@pytest.mark.parametrize("name", WRONG)
def test_arguments_of_other_types_are_refused_in_a_line(file, name):
    function, given, said = WRONG[name]
    with pytest.raises(ConfigError, match=f"^{said}") as error:
        function(file, **given)
    assert "\n" not in str(error.value)


def test_what_is_read_from_a_path_takes_no_other_types(file):
    wrong: Any = 5
    for function, said in ((q.load, "path 5: the path of a folder or table"), (q.rates, "data 5: the path of a file")):
        with pytest.raises(ConfigError, match=f"^{said}"):
            function(wrong)
    with pytest.raises(ConfigError, match=r"^form 'x': one of words, "):
        q.trace(file, memory="64MiB").text("x")


def test_an_experiment_may_be_a_dictionary(file):
    document = {"protocol": "compaction", "run": {"runs": 3000, "seed": 3}}
    document["model"] = {"messages": 3, "compactions": 3, "keys": 1, "values": 1, "max_crashes": 2}
    assert q.estimate(document).data_loss == q.estimate(file).data_loss
    changed = q.load_experiment(document, {"variant.retain_null_key": False, "run.horizon": float("inf")})
    assert changed.points[0].point.values["retain_null_key"] is False
    known = q.load_experiment(document, {"rates.broker_crash": {"value": 0.5, "error_factor": 2}}).known
    assert known["rates.broker_crash"].quantile(0.95) == pytest.approx(1.0)
    assert changed.changed("run.runs=7").run.runs == 7
    with pytest.raises(ConfigError, match=r"^experiment: model\.messages = 99: an integer from 1 to 8$"):
        q.load_experiment(document, {"model.messages": 99})


def test_errors_name_arguments_here_and_options_on_the_command_line(refused, file):
    with pytest.raises(q.ConfigError, match=r"^memory 'lots': above 0 and at most"):
        q.explore(file, memory="lots")
    assert refused("explore", file, "--memory", "lots").startswith("--memory 'lots': above 0 and at most")
    with pytest.raises(q.ConfigError, match="has to be in a file"):
        q.sweep({"protocol": "compaction", "model": q.load_experiment(file).document["model"]}, "x")
    assert all(issubclass(error, q.QuoriskError) for error in (q.ConfigError, q.RunError, q.ResultError, q.EngineError))


def test_data_become_a_profile(printed, tmp_path):
    path = write(tmp_path / "x.csv", [row("2025-01-01", "a"), row("2025-01-02", "a", 1), row("2025-01-01", "b")])
    found = q.rates(path, of="fleet")
    out = printed("rates", str(path), "--of", "fleet", "--json")
    assert {**found.as_json(), "profile": None} == json.loads(out)
    assert found.frame()["about"].tolist() == ["posterior", "default", "model", "period"]
    assert "drive failures: 1 in 3 drive-days" in found._repr_html_()
    found.write(tmp_path / "profiles" / "ours.toml")
    (tmp_path / "x.toml").write_text(f'profile = "ours"\n{BOOKKEEPER}')
    assert q.load_experiment(tmp_path / "x.toml").known["rates.bookie_is_lost"].mean == pytest.approx(1.5 / 3 / 86_400)


def test_importing_quorisk_loads_nothing_heavy():
    program = "import sys, quorisk; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"numba", "numpy", "jax", "pandas", "pyspark", "matplotlib", "scipy"}
    assert set(q.__all__) == set(dir(q))
    for name in q.__all__:
        assert callable(getattr(q, name))
    with pytest.raises(AttributeError, match="no attribute 'estimat'"):
        q.estimat  # noqa: B018


def numbers(notebook):
    """The results and printed text of a notebook's cells, without progress, which slow machines display."""
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kept = [output for output in shown if output.output_type != "display_data"]
    return ["".join(output.get("data", {}).get("text/plain", output.get("text", ""))) for output in kept]


@pytest.mark.exhaustive
def test_the_notebook_of_the_documentation_runs_and_shows_what_it_shows():
    kept = nbformat.read(NOTEBOOK, as_version=4)
    again = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(again, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    assert numbers(again) == numbers(kept)
    assert all(cell.get("execution_count") for cell in kept.cells if cell.cell_type == "code")


def test_what_takes_long_to_load_waits_until_it_is_needed():
    program = "import sys, quorisk.command.show_year, quorisk.analysis.decision.recommend; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"scipy.stats", "scipy.optimize", "scipy.integrate", "matplotlib", "jax", "pyspark"} & {
        *done.stdout.split()
    }


def test_a_single_override_is_no_list_of_letters(file):
    assert q.load_experiment(file, "run.runs=7").run.runs == 7
