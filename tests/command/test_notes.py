"""What overrides leave unchanged is told on stderr by verbs, and as a warning by functions: each line once."""

import warnings

import pytest

import quorisk as q
from quorisk.kernels.errors import ConfigError

FILE = """
protocol = "compaction"
[model]
messages = 2
compactions = 2
keys = 1
values = 1
max_crashes = 1
[variant]
persist_cursor_before_delete = false
[rates]
broker_crash = 0.01
[scenarios.calm]
per_year = 1000
[scenarios.storm]
per_year = 3
rates.broker_crash = 0.5
[run]
runs = 2000
"""
SET = ("--set", "broker_crash=0.02")
NOTE = (
    "note: rates.broker_crash does not change scenario storm, which has its own; to change that, set "
    "scenarios.storm.rates.broker_crash\n"
)
ALONE = "note: scenario storm alone, one object in one event, and not a year: storm\n"


@pytest.fixture
def file(written):
    return str(written("topic.toml", FILE))


@pytest.mark.parametrize(
    "verb",
    [
        ("exact",),
        ("estimate",),
        ("recommend", "--break-even", "none"),
        ("explore", "--set", "scenario=storm"),
        ("compare", "--vary", "variant.publish_context_before_horizon=true,false"),
        ("compare", "--ablation", "--set", "scenario=storm"),
    ],
    ids=lambda verb: " ".join(verb),
)
def test_verbs_tell_on_stderr_what_an_override_leaves_unchanged(quorisk, file, verb):
    code, out, err = quorisk(verb[0], file, *verb[1:], "--json", *SET)
    alone = ALONE if "scenario=storm" in verb else ""
    assert (code, err) == (0, NOTE + alone)
    assert out.startswith("{")
    assert quorisk(verb[0], file, *verb[1:], "--json", "--set", "run.seed=2")[2] == alone


def test_functions_warn_of_it(file):
    with pytest.warns(UserWarning, match=r"^rates.broker_crash does not change scenario storm, which has its own;"):
        q.load_experiment(file, {"rates.broker_crash": 0.02})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q.load_experiment(file, {"scenarios.storm.rates.broker_crash": 0.02})


def test_repeating_the_file_s_own_value_changes_no_number(quorisk, file):
    asked = [quorisk("exact", file, "--json", *more)[1] for more in ((), ("--set", "broker_crash=0.01"))]
    asked_again = (), ["scenarios.storm.rates.broker_crash=0.5"]
    p = [q.year(file, more, solve=True).found.entries.value for more in asked_again]
    assert p[0] == p[1]
    assert asked[0].partition('"scenarios"')[0] == asked[1].partition('"scenarios"')[0]


def test_a_list_that_would_replace_a_scenario_s_own_value_is_refused(quorisk, file):
    code, _, err = quorisk("compare", file, "--vary", "broker_crash=0.1,0.2")
    assert (code, err.count("\n")) == (2, 1)
    assert "grid.rates.broker_crash: scenario storm has its own rates.broker_crash" in err
    assert quorisk("compare", file, "--vary", "broker_crash=0.1,0.2", "--set", "scenario=storm", "--json")[0] == 0
    with pytest.raises(ConfigError, match="scenario storm has its own"):
        q.load_experiment(file, ["grid.broker_crash=[0.1, 0.2]"])
