"""Kafka's replication protocol once more, from the spec's text: slow, with sets and tuples, sharing no rule with
`kernels.protocols.kafka`. Only the shape of the states is taken from `kernels.protocols.kafka.describe`."""

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import permutations, product
from typing import Any

from quorisk.kernels.protocols.kafka.describe import NIL, QuorumState, Record, ReplicaState, SpecState

Values = dict[str, Any]
Successors = Iterator[SpecState]


def initial(values: Values) -> SpecState:
    everyone = range(values["replicas"])
    return SpecState(
        replicaLog=tuple(() for _ in everyone),
        replicaState=tuple(ReplicaState(0, NIL, NIL, frozenset()) for _ in everyone),
        nextRecordId=0,
        nextLeaderEpoch=0,
        leaderAndIsrRequests=frozenset(),
        quorumState=QuorumState(NIL, NIL, frozenset(everyone)),
        flushed=(0,) * len(everyone),
        uncleanRestarts=0,
        outages=0,
        zoneOutages=0,
    )


def _set(items: tuple, i: int, item: Any) -> tuple:
    return items[:i] + (item,) + items[i + 1 :]


def all_replicas(s: SpecState) -> range:
    return range(len(s.replicaLog))


def _pairs(s: SpecState) -> Iterator[tuple[int, int]]:
    return product(all_replicas(s), all_replicas(s))


def presumes(s: SpecState, r: int) -> bool:
    return s.replicaState[r].leader == r


def is_true_leader(s: SpecState, r: int) -> bool:
    return s.quorumState.leader == r and presumes(s, r) and s.replicaState[r].leaderEpoch == s.quorumState.leaderEpoch


def record_at(s: SpecState, r: int, offset: int) -> Record | None:
    return s.replicaLog[r][offset] if 0 <= offset < len(s.replicaLog[r]) else None


def controller_update_isr(s: SpecState, v: Values, leader: int, isr: frozenset[int]) -> Successors:
    if s.nextLeaderEpoch <= v["max_leader_epoch"]:
        quorum = QuorumState(s.nextLeaderEpoch, leader, isr)
        yield s._replace(
            quorumState=quorum,
            leaderAndIsrRequests=s.leaderAndIsrRequests | {quorum},
            nextLeaderEpoch=s.nextLeaderEpoch + 1,
        )


def controller_elect_leader(s: SpecState, v: Values) -> Successors:
    for leader in s.quorumState.isr - {s.quorumState.leader}:
        yield from controller_update_isr(s, v, leader, s.quorumState.isr)


def controller_shrink_isr(s: SpecState, v: Values) -> Successors:
    quorum = s.quorumState
    for r in all_replicas(s):
        if quorum.leader == r:
            rest = quorum.isr - {r}
            yield from controller_update_isr(s, v, NIL, quorum.isr if quorum.isr == {r} else rest)
        elif r in quorum.isr:
            yield from controller_update_isr(s, v, quorum.leader, quorum.isr - {r})


def become_leader(s: SpecState, v: Values) -> Successors:
    for request in s.leaderAndIsrRequests:
        leader = request.leader
        if leader != NIL and request.leaderEpoch > s.replicaState[leader].leaderEpoch:
            new = ReplicaState(s.replicaState[leader].hw, request.leaderEpoch, leader, request.isr)
            yield s._replace(replicaState=_set(s.replicaState, leader, new))


def leader_write(s: SpecState, v: Values) -> Successors:
    for r in all_replicas(s):
        if presumes(s, r) and s.nextRecordId < v["max_records"] and len(s.replicaLog[r]) < v["log_size"]:
            record = Record(s.nextRecordId, s.replicaState[r].leaderEpoch)
            logs = _set(s.replicaLog, r, (*s.replicaLog[r], record))
            yield s._replace(replicaLog=logs, nextRecordId=s.nextRecordId + 1)


def _update_isr(s: SpecState, leader: int, isr: frozenset[int]) -> Successors:
    if is_true_leader(s, leader):
        replicas = _set(s.replicaState, leader, s.replicaState[leader]._replace(isr=isr))
        yield s._replace(quorumState=s.quorumState._replace(isr=isr), replicaState=replicas)


def _caught_up(s: SpecState, leader: int, follower: int, end: int) -> bool:
    """IsFollowerCaughtUp."""
    there = record_at(s, leader, end - 1) is not None and record_at(s, follower, end - 1) is not None
    return s.replicaState[follower].leader == leader and (end == 0 or there)


def _caught_up_to_leader_epoch(s: SpecState, leader: int, follower: int, end: int) -> bool:
    """IsFollowerCaughtUpToLeaderEpoch."""
    if not presumes(s, leader) or s.replicaState[follower].leader != leader:
        return False
    mine, theirs = record_at(s, follower, end - 1), record_at(s, leader, end - 1)
    return end == 0 or (mine is not None and theirs is not None and mine.epoch == theirs.epoch)


def _following_leader_epoch(s: SpecState, leader: int, follower: int) -> bool:
    """IsFollowingLeaderEpoch."""
    same = s.replicaState[follower].leaderEpoch == s.replicaState[leader].leaderEpoch
    return presumes(s, leader) and s.replicaState[follower].leader == leader and same


def _in_epoch_up_to(s: SpecState, leader: int, follower: int, end: int) -> bool:
    return _following_leader_epoch(s, leader, follower) and len(s.replicaLog[follower]) >= end


def _hw_reached_epoch(s: SpecState, leader: int) -> bool:
    """HasHighWatermarkReachedCurrentEpoch."""
    hw = s.replicaState[leader].hw
    record = record_at(s, leader, hw)
    in_epoch = record is not None and record.epoch == s.replicaState[leader].leaderEpoch
    return hw == len(s.replicaLog[leader]) or in_epoch


def _expand(caught_up: Callable[..., bool], wait_for_epoch: bool) -> Callable[[SpecState, Values], Successors]:
    def expand(s: SpecState, v: Values) -> Successors:
        for leader, r in _pairs(s):
            isr, hw = s.replicaState[leader].isr, s.replicaState[leader].hw
            ready = not wait_for_epoch or _hw_reached_epoch(s, leader)
            if r not in isr and caught_up(s, leader, r, hw) and ready:
                yield from _update_isr(s, leader, isr | {r})

    return expand


def _shrink(caught_up: Callable[..., bool]) -> Callable[[SpecState, Values], Successors]:
    def shrink(s: SpecState, v: Values) -> Successors:
        for leader, r in _pairs(s):
            isr = s.replicaState[leader].isr
            if r in isr - {leader} and not caught_up(s, leader, r, len(s.replicaLog[leader])):
                yield from _update_isr(s, leader, isr - {r})

    return shrink


def _advance(acknowledged: Callable[..., bool], own_record: bool) -> Callable[[SpecState, Values], Successors]:
    def advance(s: SpecState, v: Values) -> Successors:
        for leader in all_replicas(s):
            state = s.replicaState[leader]
            if not presumes(s, leader) or state.hw >= v["log_size"]:
                continue
            if own_record and record_at(s, leader, state.hw) is None:
                continue
            if all(acknowledged(s, leader, r, state.hw) for r in state.isr):
                yield s._replace(replicaState=_set(s.replicaState, leader, state._replace(hw=state.hw + 1)))

    return advance


def _follows_with(s: SpecState, leader: int, follower: int, offset: int) -> bool:
    return s.replicaState[follower].leader == leader and record_at(s, follower, offset) is not None


def _fetch(allowed: Callable[..., bool]) -> Callable[[SpecState, Values], Successors]:
    def fetch(s: SpecState, v: Values) -> Successors:
        for follower, leader in _pairs(s):
            end = len(s.replicaLog[follower])
            record = record_at(s, leader, end)
            if record is not None and end < v["log_size"] and allowed(s, leader, follower):
                state = s.replicaState[follower]
                state = state._replace(hw=min(s.replicaState[leader].hw, end + 1))
                yield s._replace(
                    replicaLog=_set(s.replicaLog, follower, (*s.replicaLog[follower], record)),
                    replicaState=_set(s.replicaState, follower, state),
                )

    return fetch


def _presumed_and_following(s: SpecState, leader: int, follower: int) -> bool:
    return presumes(s, leader) and s.replicaState[follower].leader == leader


def _last_matches(s: SpecState, leader: int, follower: int) -> bool:
    return _caught_up_to_leader_epoch(s, leader, follower, len(s.replicaLog[follower]))


def _first_non_matching(s: SpecState, leader: int, follower: int) -> int:
    """FirstNonMatchingOffsetFromTail."""
    mine, theirs = s.replicaLog[follower], s.replicaLog[leader]
    return max((o + 1 for o in range(len(mine)) if record_at(s, leader, o) == mine[o]), default=0) if theirs else 0


def _truncation_offset(s: SpecState, kind: str, leader: int, follower: int) -> int:
    hw = s.replicaState[follower].hw
    mine, theirs = s.replicaLog[follower], s.replicaLog[leader]
    if kind == "high_watermark":
        return hw
    if kind in ("kip279", "kip320"):
        return _first_non_matching(s, leader, follower)
    if not mine:
        return 0
    epoch = mine[-1].epoch
    if not theirs:
        return hw
    if theirs[-1].epoch == epoch:
        return len(theirs)
    return min((o for o, record in enumerate(theirs) if record.epoch > epoch), default=hw)


def _truncate(s: SpecState, r: int, offset: int, clamp: bool = False) -> Successors:
    if offset <= len(s.replicaLog[r]) or clamp:
        state = s.replicaState[r]
        yield s._replace(
            replicaLog=_set(s.replicaLog, r, s.replicaLog[r][:offset]),
            replicaState=_set(s.replicaState, r, state._replace(hw=min(offset, state.hw))),
        )


def _become_follower(kind: str) -> Callable[[SpecState, Values], Successors]:
    def become_follower(s: SpecState, v: Values) -> Successors:
        for r, request in product(all_replicas(s), s.leaderAndIsrRequests):
            leader = request.leader
            if leader in (NIL, r) or request.leaderEpoch <= s.replicaState[r].leaderEpoch:
                continue
            if kind == "kip320" and s.replicaState[leader][1:3] != (request.leaderEpoch, leader):
                continue
            truncated = iter([s])
            if kind != "kip320_first_try":
                clamp = v["truncation_beyond_end"] == "no_op"
                truncated = _truncate(s, r, _truncation_offset(s, kind, leader, r), clamp)
            for t in truncated:
                new = ReplicaState(t.replicaState[r].hw, request.leaderEpoch, leader, request.isr)
                yield t._replace(replicaState=_set(t.replicaState, r, new))

    return become_follower


def follower_truncate(s: SpecState, v: Values) -> Successors:
    for leader, follower in _pairs(s):
        mine, theirs = s.replicaLog[follower], s.replicaLog[leader]
        differs = bool(mine) and len(mine) <= len(theirs) and theirs[len(mine) - 1].epoch != mine[-1].epoch
        if _presumed_and_following(s, leader, follower) and (len(mine) > len(theirs) or differs):
            yield from _truncate(s, follower, _first_non_matching(s, leader, follower))


# ---- What is on disk: written from tests/data/tla/FLUSH.md


def _on_disk(action: Callable[[SpecState, Values], Successors]) -> Callable[[SpecState, Values], Successors]:
    """The action, and what it leaves on disk: truncation goes there at once, records once they are flushed."""

    def with_disks(s: SpecState, v: Values) -> Successors:
        for after in action(s, v):
            ends = tuple(map(len, after.replicaLog))
            yield after._replace(flushed=ends if v["flush_every_message"] else tuple(map(min, after.flushed, ends)))

    return with_disks


def replica_flushes(s: SpecState, v: Values) -> Successors:
    for r, log in enumerate(s.replicaLog):
        if s.flushed[r] < len(log):
            yield s._replace(flushed=_set(s.flushed, r, len(log)))


def _controller_sees_failure(s: SpecState, v: Values, r: int) -> Successors:
    """Before the broker is back."""
    quorum = s.quorumState
    if quorum.leader != r and r not in quorum.isr:
        yield s
        return
    isr = quorum.isr if quorum.leader == r and quorum.isr == {r} else quorum.isr - {r}
    yield from controller_update_isr(s, v, NIL if quorum.leader == r else quorum.leader, isr)


def _restarted(s: SpecState, r: int) -> SpecState:
    """With what it had on disk."""
    state, end = s.replicaState[r], s.flushed[r]
    state = state._replace(hw=min(state.hw, end), leader=NIL if state.leader == r else state.leader)
    logs = _set(s.replicaLog, r, s.replicaLog[r][:end])
    return s._replace(replicaLog=logs, replicaState=_set(s.replicaState, r, state))


def replica_restarts_unclean(s: SpecState, v: Values) -> Successors:
    if s.uncleanRestarts >= v["max_unclean_restarts"]:
        return
    for r in all_replicas(s):
        for after in _controller_sees_failure(s, v, r):
            yield _restarted(after, r)._replace(uncleanRestarts=s.uncleanRestarts + 1)


def _lose_power(s: SpecState, v: Values, machines: list[int]) -> Successors:
    """All at one instant: the controller takes one after the other out of the ISR, in any order, but keeps the last."""
    quorum = s.quorumState
    isrs = set()
    for order in permutations(quorum.isr & {*machines}):
        isr = quorum.isr
        for r in order:
            isr = isr if isr == {r} else isr - {r}
        isrs.add(isr)
    for isr in sorted(isrs, key=sorted):
        seen = [s]
        if {quorum.leader, *quorum.isr} & {*machines}:
            seen = list(controller_update_isr(s, v, NIL if quorum.leader in machines else quorum.leader, isr))
        for after in seen:
            yield reduce(_restarted, machines, after)


def cluster_loses_power(s: SpecState, v: Values) -> Successors:
    if s.outages < v["max_outages"]:
        for after in _lose_power(s, v, list(all_replicas(s))):
            yield after._replace(outages=s.outages + 1)


def zone_loses_power(s: SpecState, v: Values) -> Successors:
    if s.zoneOutages < v["max_zone_outages"]:
        for zone in range(v["zones"]):
            for after in _lose_power(s, v, list(all_replicas(s))[zone :: v["zones"]]):
                yield after._replace(zoneOutages=s.zoneOutages + 1)


def actions(values: Values) -> dict[str, Callable[[SpecState, Values], Successors]]:
    """The variant's Next."""
    truncation = values["truncation"]
    chosen: dict[str, Callable[[SpecState, Values], Successors]] = {
        "controller_elect_leader": controller_elect_leader,
        "controller_shrink_isr": controller_shrink_isr,
        "become_leader": become_leader,
        "leader_write": leader_write,
    }

    def add(switch: str, plain: tuple, first_try: tuple, fenced: tuple) -> None:
        of_variant = fenced if truncation == "kip320" and values[switch] else plain
        name, function = first_try if truncation == "kip320_first_try" else of_variant
        chosen[name] = function

    add(
        "fenced_isr_expand",
        ("leader_expand_isr", _expand(_caught_up, False)),
        ("leader_expand_isr_better_fencing", _expand(_caught_up_to_leader_epoch, True)),
        ("fenced_leader_expand_isr", _expand(_in_epoch_up_to, True)),
    )
    add(
        "fenced_isr_shrink",
        ("leader_shrink_isr", _shrink(_caught_up)),
        ("leader_shrink_isr_better_fencing", _shrink(_caught_up_to_leader_epoch)),
        ("fenced_leader_shrink_isr", _shrink(_in_epoch_up_to)),
    )
    add(
        "fenced_high_watermark",
        ("leader_inc_high_watermark", _advance(_follows_with, False)),
        (
            "improved_leader_inc_high_watermark",
            _advance(lambda s, leader, r, hw: _caught_up_to_leader_epoch(s, leader, r, hw + 1), True),
        ),
        (
            "fenced_leader_inc_high_watermark",
            _advance(lambda s, leader, r, hw: _in_epoch_up_to(s, leader, r, hw + 1), True),
        ),
    )
    add(
        "fenced_fetch",
        ("follower_replicate", _fetch(_presumed_and_following)),
        ("follower_fetch", _fetch(_last_matches)),
        ("fenced_follower_fetch", _fetch(_following_leader_epoch)),
    )
    add(
        "truncate_same_epoch_only",
        {
            "high_watermark": ("become_follower_truncate_to_high_watermark", _become_follower("high_watermark")),
            "kip101": ("become_follower_truncate_kip101", _become_follower("kip101")),
        }.get(truncation, ("become_follower_truncate_kip279", _become_follower("kip279"))),
        ("become_follower", _become_follower("kip320_first_try")),
        ("fenced_become_follower_and_truncate", _become_follower("kip320")),
    )
    if truncation == "kip320_first_try":
        chosen["follower_truncate"] = follower_truncate
    if not values["flush_every_message"]:
        chosen["replica_flushes"] = replica_flushes
    if values["max_unclean_restarts"]:
        chosen["replica_restarts_unclean"] = replica_restarts_unclean
    chosen |= {"cluster_loses_power": cluster_loses_power} if values["max_outages"] else {}
    chosen |= {"zone_loses_power": zone_loses_power} if values["max_zone_outages"] else {}
    return {name: _on_disk(action) for name, action in chosen.items()}
