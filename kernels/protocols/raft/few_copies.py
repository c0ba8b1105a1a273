"""Disks that have a value of Raft once it is acknowledged, while nothing fails: an exact sum over a chain.

The leader sends the value to each follower, which stores it and answers; each server syncs its log by itself. A request
that is lost is sent again. Lost answers are left out: a value that is acknowledged late is on more disks by then.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from quorisk.kernels.protocols.promises import FewCopies

_UNSENT, _SENT, _STORED, _KNOWN = range(4)
_Value = tuple[bool, tuple[tuple[int, bool], ...]]
"""Whether it is acknowledged; by server, the leader first, how far it is and whether it is on disk."""


def few_copies(values: Mapping[str, Any]) -> dict[int, FewCopies]:
    """Returns the time of acknowledged values on each number of disks from a quorum on, in the unit of the rates.
    `values` are those of all keys, by dotted name."""
    servers = values["model.servers"]
    return {disks: FewCopies(time, 0.0) for disks, time in on_disks(values).items() if disks > servers // 2}


def on_disks(values: Mapping[str, Any]) -> dict[int, float]:
    """Returns the mean time for which a value is acknowledged and on each number of disks below all."""
    servers, times = values["model.servers"], defaultdict[int, float](float)
    here: dict[_Value, float] = {(False, ((_KNOWN, False), *[(_UNSENT, False)] * (servers - 1))): 1.0}
    while here:
        after = defaultdict[_Value, float](float)
        for value, p in here.items():
            moves = [(there, rate) for there, rate in _moves(value, values) if rate > 0.0]
            out, disks = sum(rate for _, rate in moves), sum(on_disk for _, on_disk in value[1])
            if value[0] and disks < servers:
                times[disks] += p / out if out else inf
            for there, rate in moves:
                after[there] += p * rate / out
        here = after
    return dict(sorted(times.items()))


def _moves(value: _Value, values: Mapping[str, Any]) -> Iterator[tuple[_Value, float]]:
    """Yields what may come next, each with its rate."""
    is_acknowledged, servers = value
    leader, *followers = servers
    syncs, number = values["rates.advance_fsync_index"], len(servers)
    counted = sum(stage == _KNOWN for stage, _ in followers)
    counted += leader[1] or not values["variant.leader_fsync_before_include_in_quorum"]
    if not is_acknowledged and counted > number // 2:
        yield (True, servers), values["rates.advance_commit_index"]
    if not leader[1]:
        yield (is_acknowledged, ((_KNOWN, True), *followers)), syncs
    waits = values["variant.leader_fsync_before_append_entries"] and not leader[1]
    for at, (stage, on_disk) in enumerate(followers):
        others = followers[:at] + followers[at + 1 :]
        for there, rate in (
            ((_SENT, False), values["rates.append_entries"] * (1.0 - values["faults.message_loss"]) * (not waits)),
            ((_STORED, values["variant.follower_fsync_before_reply"]), values["rates.accept_append_entries_request"]),
            ((_KNOWN, on_disk), values["rates.handle_append_entries_response"] * (not is_acknowledged)),
        )[stage : stage + 1]:
            yield (is_acknowledged, (leader, *sorted([*others, there]))), rate
        if stage >= _STORED and not on_disk:
            yield (is_acknowledged, (leader, *sorted([*others, (stage, True)]))), syncs
