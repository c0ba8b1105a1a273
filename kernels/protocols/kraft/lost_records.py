"""The number of records that a run loses where producers write all the time.

A value stands for the record that a step writes, for records that producers write meanwhile and that would tell nothing
new, and for the records of those values that it replaces in the normal form.
"""

from quorisk.kernels.ops import bits, popcount
from quorisk.kernels.protocols.kraft import replication
from quorisk.kernels.protocols.kraft.invariants import lacked, running_leader
from quorisk.kernels.protocols.kraft.normal_form import classified
from quorisk.kernels.protocols.rows import WIDTH, row, union

_WRITE = replication.write_record_to_leader
_NORMAL = {each.name: each.apply for each in (replication.receive_fetch_response, _WRITE)}


def lost_records(actions, state, params, rates, steps):
    """The records that are lost at the last of these steps, each with its time, from the initial state on."""
    counts, before = list[float](), 0.0
    for step, time in steps:
        joined = newest(state, params)
        for v in joined:
            counts[v] += rates[_WRITE.name] * (time - before) / len(joined)
        action, before = actions[step.action], time
        raw = _NORMAL.get(action.name, action.apply)(state, params, step.instance, step.lost)
        counts += [1.0] * (raw.sent.bit_count() - state.sent.bit_count())
        state = action.apply(state, params, step.instance, step.lost)
        if action.name in _NORMAL and state.sent.bit_count() < raw.sent.bit_count():
            *_, (ones, twos, gone) = classified(raw, params)
            for v in bits(ones | twos):
                counts[v + (1 if ones >> v & 1 else 2)] += counts[v]
            counts = [count for v, count in enumerate(counts) if not (ones | twos | gone) >> v & 1]
    leader = running_leader(state)
    lost = lacked(state, leader) if leader else 0
    return sum(counts[v] for v in bits(lost | state.pos_acked & ~union(state.logs) * params.lost_without_leader))


def newest(state, params):
    """The newest value of each leader that another record would tell nothing new of."""
    if replication.at_peace(state, params):
        return []
    leaders = state.leaders & state.running & ~replication.taking_writes(state, params)
    takes, found = replication.writable(state._replace(sent=0), params, leaders), 0
    for b in bits(leaders):
        log = row(state.logs, b) if row(takes, b) else 0
        found |= log & row(state.offsets << WIDTH, popcount(log))
    return bits(found)
