"""The verb that writes an experiment file about a cluster: by options, or by questions in a terminal."""

import sys

import pytest

from quorisk.analysis.experiment import config, starters

OPTIONS = {
    "--nodes": "40",
    "--racks": "3",
    "--entries-per-second": "1600",
    "--retention": "3 days",
    "--quorums": "E 3, WQ 3, AQ 2",
}
FILLED = starters.filled_template("bookkeeper", starters.OperatorAnswers(*OPTIONS.values()))


def options(**changed):
    return [part for pair in (OPTIONS | changed).items() if pair[1] for part in pair]


def test_options_fill_a_file(quorisk, tmp_path):
    path = tmp_path / "mine.toml"
    assert quorisk("init", "bookkeeper", *options(), "--out", str(path))[0] == 0
    assert path.read_text("utf-8") == FILLED
    assert quorisk("init", "bookkeeper", *options()) == (0, FILLED, "")  # to a pipe


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (options(**{"--retention": "soon"}), 'error: --retention soon: a time such as "5 s" or "7 days"\n'),
        (options(**{"--retention": ""}), 'error: --retention: missing; how long each is kept, such as "3 days"\n'),
        (options(**{"--quorums": "50/3/2"}), "error: --quorums E 50: E at most 5, as large as the model is\n"),
        ([*options()[:-2], "--topics=50/3/2"], "error: --topics E 50: E at most 5, as large as the model is\n"),
    ],
)
def test_what_is_wrong_or_missing_is_told_by_its_option(quorisk, tmp_path, arguments, said):
    path = tmp_path / "mine.toml"
    assert quorisk("init", "bookkeeper", *arguments, "--out", str(path)) == (2, "", said)
    assert not path.exists()


def test_options_for_what_is_assumed_otherwise(quorisk, refused, tmp_path):
    path, more = tmp_path / "mine.toml", ("--node-loss", "2 % / year", "--entry-size", "6.7 kB", "--outages", "0.2")
    others = ("--failovers", "2,000", "--profile", "pulsar_cloud")
    assert quorisk("init", "bookkeeper", *options(), *more, *others, "--out", str(path), "--json")[0] == 0
    experiment = config.load(path)
    cluster, [scenario] = experiment.clusters[0].cluster, experiment.scenarios.values()
    assert (cluster.node_loss, cluster.events[0].per_year, scenario.per_year) == (0.02, 0.2, 2000.0)
    assert experiment.profile
    assert (experiment.clusters[0].entry_bytes, experiment.profile.name) == (6700.0, "pulsar_cloud")
    assert "cluster.node_loss" not in experiment.known
    path.unlink()
    assert quorisk("init", "bookkeeper", *options(), "--disks", "4", "--out", str(path), "--json")[0] == 0
    cluster = config.load(path).clusters[0].cluster
    assert (cluster.disks_per_node, cluster.node_loss) == (4, 0.0)
    assert cluster.disk_loss == pytest.approx(0.01)
    assert cluster.lost_alone == cluster.disk_loss
    for protocol, option in (("kraft", "--failovers"), ("kraft", "--disks"), ("bookkeeper", "--partitions")):
        other = "kraft" if protocol == "bookkeeper" else "bookkeeper"
        design = options(**{"--quorums": "3/2/all"}) if protocol == "kraft" else options()
        assert quorisk("init", protocol, *design, option, "3")[2] == f"error: {option} 3: for {other} only\n"
    said = refused("init", "bookkeeper", *options(), "--node-loss", "often")
    assert said.startswith("--node-loss often: a number of times a year from 0 to 1e6")


def test_only_where_there_is_a_file_about_a_cluster(quorisk, refused):
    assert quorisk("init", "kafka", "--nodes", "3") == (2, "", "error: --nodes 3: for bookkeeper and kraft only\n")
    assert refused("init") == "init: one of bookkeeper, kafka, kraft, raft or compaction"


@pytest.fixture
def asked(monkeypatch):
    """In a terminal in which these answers are typed; gathers what was asked."""
    questions = []

    def terminal(*answers):
        left = list(answers)

        def prompt(question, default, **_):
            questions.append(question)
            return (left.pop(0) if left else "") or default

        for stream in (sys.stdin, sys.stdout):
            monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        monkeypatch.setattr("typer.prompt", prompt)
        return questions

    return terminal


def test_a_terminal_asks_for_what_is_not_given_until_it_is_an_answer(quorisk, asked, tmp_path):
    path = tmp_path / "mine.toml"
    questions = asked("", "40", "three", "3", "1600", "3 days", "3/3/2")
    code, _, err = quorisk("init", "--out", str(path))
    assert (code, err) == (0, "three: an integer from 1 up\n")
    assert path.read_text("utf-8") == FILLED
    assert [question.split(",")[0] for question in questions][2:4] == ["In how many racks or zones"] * 2
    questions.clear()
    path.unlink()
    asked("3 days")
    assert quorisk("init", "bookkeeper", *options(**{"--retention": ""}), "--out", str(path))[0] == 0
    assert path.read_text("utf-8") == FILLED
    assert questions[0] == 'How long each is kept, such as "3 days"'
    assert questions[1] == 'The size of an entry, such as 1024 or "6.7 kB"'
    assert len(questions) == 1 + len(starters.USUAL["bookkeeper"])


@pytest.mark.parametrize(
    ("protocol", "answers", "said"),
    [
        (
            "bookkeeper",
            ["40", "41", "3", "1600", "3 days", "E 3 WQ 4 AQ 2", "3/3/2"],
            "41: at most as many as nodes (40)\nE 3, WQ 4, AQ 2: E >= WQ >= AQ\n",
        ),
        (
            "kraft",
            ["30", "3", "1e4", "7 days", "31/2/all", "3/2/all", ""],
            "RF 31: RF at most 5, as large as the model is\n",
        ),
    ],
)
def test_a_terminal_asks_again_where_answers_do_not_go_together(quorisk, asked, tmp_path, protocol, answers, said):
    asked(*answers)
    path = tmp_path / "mine.toml"
    code, _, err = quorisk("init", protocol, "--out", str(path))
    assert (code, err) == (0, said)
    assert path.exists()


def test_a_terminal_without_an_answer_gets_the_file_to_fill_in(quorisk, asked, tmp_path):
    for protocol, answers in (("kraft", [""]), ("compaction", [])):
        asked(*answers)
        path = tmp_path / f"{protocol}.toml"
        assert quorisk("init", protocol, "--out", str(path))[0] == 0
        assert path.read_text("utf-8") == starters.starter_text(protocol)
