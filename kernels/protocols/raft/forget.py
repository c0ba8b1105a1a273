"""One state for all that go on alike: without parts that nothing reads any more, and whichever server is which.

Servers are alike: no step and no invariant tells one from another, and each bag of messages is in an order of its own.
So of all states that differ only in which server is which a head keeps one, in which servers are in the order of their
signatures. Where two have the same signature both orders stay, which costs states and changes no answer.
"""

from itertools import product

from quorisk.kernels.ops import where
from quorisk.kernels.protocols.raft.bags import TAKEN
from quorisk.kernels.protocols.raft.layout import CANDIDATE, LEADER, MAX_SERVERS, Bags
from quorisk.kernels.protocols.raft.margin import loses_power

_EVERYBODY = range(MAX_SERVERS)
_HASH, _FACTOR = (1 << 31) - 1, 0x5BD1E995


def forget(state, params):
    """Representative of this state."""
    return in_order(without_what_is_over(state, params), params)


def without_what_is_over(state, params):
    """Votes count for candidates, and how far followers are for leaders: both begin anew with the next term. What is on
    disk counts while somebody may lose power, or where a leader waits for it."""
    pairs = list(product(_EVERYBODY, _EVERYBODY))
    leads = [state.role[i] == LEADER for i in _EVERYBODY]
    votes = [where(state.role[i] == CANDIDATE, state.votes_granted[i], 0) for i in _EVERYBODY]
    waits = (params.leader_fsync_before_append_entries | params.leader_fsync_before_include_in_quorum) != 0
    counts = waits | loses_power(state, params)
    return state._replace(
        votes_granted=state.votes_granted.of(votes),
        next_index=state.next_index.of([where(leads[i], state.next_index[i, j], 1) for i, j in pairs]),
        match_index=state.match_index.of([where(leads[i], state.match_index[i, j], 0) for i, j in pairs]),
        fsync_index=where(counts, state.fsync_index, state.length),
    )


def mixed(word):
    """A hash of 31 bits, of up to 62."""
    word = ((word ^ word >> 31) & _HASH) * _FACTOR
    return (word ^ word >> 29) & _HASH


def signatures(state):
    """A number for each server, made of its own state, how it stands to others, and the messages between them."""
    own = []
    for i in _EVERYBODY:
        word = state.learners[i]
        for field in (state.term, state.length, state.fsync_index, state.commit_index, state.role):
            word = word << 3 | field[i]
        own.append(mixed(mixed(state.log[i]) << 16 ^ word))
    signs = []
    for i in _EVERYBODY:
        others = sum(mixed(_between(state, i, j) << 31 | own[j]) for j in _EVERYBODY)
        signs.append(mixed(own[i] << 8 ^ others))
    for kind, bag in enumerate(state.messages):
        for slot in bag.numbers:
            dest, source = slot >> 1 & 0b111, slot >> 4 & 0b111
            rest = mixed(slot >> 7 << 3 | (slot & TAKEN) << 2 | kind)
            of_dest = where(slot == 0, 0, mixed(rest << 31 | _of(own, source)))
            of_source = where(slot == 0, 0, mixed(mixed(rest) << 31 | _of(own, dest)))
            for i in _EVERYBODY:
                signs[i] = signs[i] + where(dest == i, of_dest, 0) + where(source == i, of_source, 0)
    return signs


def _between(state, i, j):
    """All that two servers know of each other."""
    word = (state.votes_granted[i] >> j & 1) << 1 | (state.votes_granted[j] >> i & 1)
    word = word << 2 | where(state.voted_for[i] == j + 1, 2, 0) | where(state.voted_for[j] == i + 1, 1, 0)
    for field in (state.next_index, state.match_index):
        word = word << 6 | field[i, j] << 3 | field[j, i]
    return word


def _of(own, server):
    """The number of a server, out of one for each."""
    found = own[0]
    for i in _EVERYBODY[1:]:
        found = where(server == i, own[i], found)
    return found


def in_order(state, params):
    """The state with its servers in the order of their signatures."""
    signs = [where(i < params.servers, sign, (1 << 62) + i) for i, sign in enumerate(signatures(state))]
    ranks = [0] * MAX_SERVERS
    for i, j in product(_EVERYBODY, _EVERYBODY):
        if i < j:
            is_behind = where(signs[j] < signs[i], 1, 0)
            ranks[i], ranks[j] = ranks[i] + is_behind, ranks[j] + (is_behind ^ 1)
    places, servers = 0, 0
    for i in _EVERYBODY:
        places, servers = places | ranks[i] << 3 * i, servers | i << 3 * ranks[i]
    return where(places == _SAME, state, renamed(state, places, servers))


_SAME = sum(i << 3 * i for i in _EVERYBODY)


def renamed(state, places, servers):
    """The state in which each server has another place. `places` has three bits for each server, its new place, and
    `servers` three for each place, the server that gets it."""

    def place(i):
        return places >> 3 * i & 0b111

    def server(at):
        return servers >> 3 * at & 0b111

    def members(mask):
        return sum(((mask >> i) & 1) << place(i) for i in _EVERYBODY)

    def rows(field, value=lambda number: number):
        return field.of([value(field[server(at)]) for at in _EVERYBODY])

    def pairs(field):
        return field.of([field[server(i), server(j)] for i in _EVERYBODY for j in _EVERYBODY])

    return state._replace(
        messages=Bags(*(_renamed_bag(bag, place) for bag in state.messages)),
        term=rows(state.term),
        role=rows(state.role),
        voted_for=rows(state.voted_for, lambda voted: where(voted == 0, 0, ((places << 3 >> 3 * voted) & 0b111) + 1)),
        log=rows(state.log),
        length=rows(state.length),
        commit_index=rows(state.commit_index),
        fsync_index=rows(state.fsync_index),
        votes_granted=rows(state.votes_granted, members),
        next_index=pairs(state.next_index),
        match_index=pairs(state.match_index),
        learners=type(state.learners)(members(state.learners.words[0])),
    )


def _renamed_bag(bag, place):
    """A bag, in order again; slots are `TAKEN`, destination and source, lowest first, and the rest of a message."""
    slots = []
    for slot in bag.numbers:
        word = where(slot == 0, 0, slot & ~0b1111110 | place(slot >> 1 & 0b111) << 1 | place(slot >> 4 & 0b111) << 4)
        for k, other in enumerate(slots):
            slots[k], word = where(word > other, word, other), where(word > other, other, word)
        slots.append(word)
    return bag.of(slots)
