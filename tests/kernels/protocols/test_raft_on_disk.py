"""How many disks have an acknowledged value of Raft: a chain against drawn times, closed forms and a year."""

import math

import numpy as np
import pytest

from quorisk.analysis.cluster.answer import Effort, answer, placed_designs
from quorisk.analysis.experiment import config
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols.raft.few_copies import few_copies, on_disks
from quorisk.kernels.protocols.raft.unflushed import unflushed_for
from tests.support import ROOT

SENDS, STORES, HEARS, COMMITS, SYNCS = 10.0, 4.0, 3.0, 8.0, 0.5
DRAWN = 200_000


def values(servers, follower=True, leader=True, first=False, syncs=SYNCS):
    return {
        "model.servers": servers,
        "variant.follower_fsync_before_reply": follower,
        "variant.leader_fsync_before_include_in_quorum": leader,
        "variant.leader_fsync_before_append_entries": first,
        "faults.message_loss": 0.0,
        "rates.append_entries": SENDS,
        "rates.accept_append_entries_request": STORES,
        "rates.handle_append_entries_response": HEARS,
        "rates.advance_commit_index": COMMITS,
        "rates.advance_fsync_index": syncs,
    }


def drawn(servers, follower, leader, first):
    """The same by times that are drawn for each value: acknowledgement, and each server's sync."""
    chance = np.random.default_rng(7)

    def waits(rate, *shape):
        return chance.exponential(1.0 / rate, (DRAWN, *shape))

    synced = waits(SYNCS, 1)
    stored = waits(SENDS, servers - 1) + waits(STORES, servers - 1) + (synced if first else 0.0)
    known = stored + waits(HEARS, servers - 1)
    counts = np.sort(np.concatenate([synced if leader else 0.0 * synced, known], 1), 1)
    acknowledged = counts[:, servers // 2] + waits(COMMITS)
    on_disk = np.concatenate([synced, stored if follower else stored + waits(SYNCS, servers - 1)], 1)
    since = np.sort(np.maximum(on_disk - acknowledged[:, None], 0.0), 1)
    between = np.diff(since, axis=1, prepend=0.0).mean(0)  # for the k-th of these exactly k disks have the value
    return {disks: time for disks, time in enumerate(between.tolist()) if time > 0.0}


@pytest.mark.parametrize("servers", [1, 3, 4, 5])
@pytest.mark.parametrize(
    ("follower", "leader", "first"),
    [(True, True, False), (True, False, False), (False, False, False), (True, True, True)],
)
def test_times_on_each_number_of_disks_are_those_of_drawn_times(servers, follower, leader, first):
    found, expected = on_disks(values(servers, follower, leader, first)), drawn(servers, follower, leader, first)
    for disks in found.keys() | expected.keys():
        assert found.get(disks, 0.0) == pytest.approx(expected.get(disks, 0.0), rel=0.03, abs=2e-3)


@pytest.mark.parametrize("servers", range(1, 7))
def test_an_outage_loses_what_the_leader_lacks_that_a_majority_votes_for(servers):
    """By elections: each server has all up to its last sync, and votes for the first candidate with no shorter log."""
    chance = np.random.default_rng(3)
    ages = chance.exponential(1.0, (DRAWN // 10, servers))
    candidates = chance.permuted(np.tile(np.arange(servers), (len(ages), 1)), axis=1)
    votes = (ages[:, :, None] <= ages[:, None, :]).sum(2)  # for a log at least as long as the voter's
    first = (next(i for i in order if has[i] > servers // 2) for order, has in zip(candidates, votes, strict=True))
    lost = [own[leader] for own, leader in zip(ages, first, strict=True)]
    found = unflushed_for(values(servers, False, False, syncs=1e-6))
    assert found == pytest.approx(1e6 * np.mean(lost), rel=0.03)


def test_what_is_never_synced_is_at_risk_for_ever():
    assert unflushed_for(values(3, False, False, syncs=0.0)) == math.inf
    assert unflushed_for(values(3)) == 0.0
    assert list(few_copies(values(5))) == [3, 4]


def load(*overrides):
    return config.load(ROOT / "configs" / "raft_cluster.toml", overrides)


def test_an_outage_takes_values_that_only_a_quorum_has():
    """With etcd's rates a value of three servers is on two disks alone for 1.3255 ms: 1,600 of them a second."""
    [design] = placed_designs(load())
    found = answer(design, Effort(years=2000, seed=1))
    thin = 0.02 * 1600 * 1.3255e-3 * 0.0075**2 * (1 - 0.0075)
    assert found.losses.p_any.value == pytest.approx(thin + 4.79e-7, rel=0.05)  # two entries may go together


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["rejoin_as_new=false"], "variant.rejoin_as_new = false: true with a cluster"),
        (["follower_fsync_before_reply=false", "cluster.placement=two_racks"], "and a majority of the servers may be"),
    ],
)
def test_what_a_majority_loses_that_is_not_computed_is_refused(overrides, said):
    with pytest.raises(ConfigError, match=said):
        placed_designs(load(*overrides))
