"""Which Spark a sweep runs on, and what it is told."""

import pytest

from quorisk.kernels.errors import ConfigError
from quorisk.sparkjobs.spark_conf import LOCAL_MASTER, checked_settings, given, is_loopback, spark_configuration


@pytest.fixture
def defaults(tmp_path, monkeypatch):
    """Writes spark-defaults.conf."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return lambda text: (tmp_path / "spark-defaults.conf").write_text(text)


def test_the_option_wins_over_conf_and_conf_over_sparks_own_file(defaults, tmp_path):
    def master(option, settings):
        return spark_configuration(option, settings, tmp_path, "quorisk").get("spark.master")

    assert master(None, {}) == LOCAL_MASTER
    defaults("# spark.master yarn\nspark.master  local[1]\nspark.executor.memory=3g\n")
    assert given() == {"spark.master": "local[1]", "spark.executor.memory": "3g"}
    assert master(None, {}) == "local[1]"
    assert master(None, {"spark.master": "local[2]"}) == "local[2]"
    assert master("local[3]", {"spark.master": "local[2]"}) == "local[3]"


def test_what_sparks_own_file_says_is_not_overruled(defaults, tmp_path):
    defaults("spark.log.level ERROR\nspark.ui.enabled: true\n")
    conf = spark_configuration(None, {}, tmp_path, "quorisk: demo.toml")
    assert (conf.get("spark.log.level"), conf.get("spark.ui.enabled")) == ("ERROR", "true")
    assert conf.get("spark.app.name") == "quorisk: demo.toml"


def test_sockets_that_run_code_are_in_the_private_folder_and_only_there(tmp_path):
    local, cluster = (
        spark_configuration(each, {}, tmp_path, "quorisk") for each in ("local[1]", "spark://127.0.0.1:7077")
    )
    assert local.get("spark.python.unix.domain.socket.dir") == str(tmp_path)
    assert cluster.get("spark.python.unix.domain.socket.enabled") is None


def test_a_driver_somewhere_in_the_cluster_is_refused(defaults):
    defaults("spark.submit.deployMode cluster\n")
    with pytest.raises(ConfigError, match=r"^spark.submit.deployMode = cluster: [^\n]*; use client$"):
        checked_settings(None, [])


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.3.2.1", True), ("localhost", True), ("::1", True), ("10.0.0.1", False), ("h", False)],
)
def test_loopback_is_what_nobody_else_reaches(host, expected):
    assert is_loopback(host) == expected
