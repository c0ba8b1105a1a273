"""Bookies and writers that fail, and what mends it: not in the spec, which loses messages only.

All of it is off unless [faults] asks for it. A bookie that fails takes with it the requests on their way to it, not the
responses that it has sent.

When the cluster, or a rack, loses power, all of its bookies go down and come back at one instant, in which nobody can
act. Some do not come back: they are lost for good, whatever `max_lost` says. The others restart with what they have on
disk, which is all of it if journals are synced. But requests on their way to any of them are lost. Clients, metadata
and other racks go on. A rack loses power alone: nothing else does at that instant.
"""

from quorisk.kernels.model import action, variant_of
from quorisk.kernels.ops import lowest_bit, popcount, when, where
from quorisk.kernels.protocols.bookkeeper.adding import sets_without
from quorisk.kernels.protocols.bookkeeper.disks import back_from_disk, store, without_disks
from quorisk.kernels.protocols.bookkeeper.layout import (
    CLIENT_WITHDRAWN,
    EVERY_FRAGMENT_ROW,
    EVERY_REQUEST_ROW,
    EVERY_ROW,
    EVERY_SLOT_ROW,
    MAX_BOOKIES,
    ROW,
    STATUS_CLOSED,
    STATUS_NIL,
    STATUS_OPEN,
    any_row,
    entries_up_to,
    nonzero_rows,
)
from quorisk.kernels.protocols.bookkeeper.messages import lose
from quorisk.kernels.protocols.bookkeeper.slots import bookie_of, slot_row, with_clients
from quorisk.kernels.protocols.bookkeeper.stripes import (
    arrange,
    ensemble_at,
    with_ensemble_at,
    write_sets,
    write_sets_by_entry,
)

_LOST, _EMPTY, _CORRELATED, _CRASH = "lost bookie", "empty restart", "correlated", "writer crash"
_OUTAGE = "power outage"


def without_requests(client, bookies):
    """BreakRequests, for the add requests of one client."""
    broken = client.requests.on_way & (bookies * EVERY_REQUEST_ROW)
    return client._replace(requests=lose(client.requests, broken))


def break_requests(state, bookies):
    """BreakRequests of these bookies: requests on their way to them are lost."""
    of_slots = slot_row(0, bookies) | slot_row(1, bookies)
    return with_clients(state, without_requests, bookies)._replace(
        fence_requests=lose(state.fence_requests, state.fence_requests.on_way & of_slots),
        read_requests=lose(state.read_requests, state.read_requests.on_way & (of_slots * EVERY_SLOT_ROW)),
    )


def emptied(state, bookies):
    """These bookies lose their entries, their LACs and the messages on the way to them."""
    return without_disks(break_requests(state, bookies), bookies)


def restarted_empty(state, params, bookies):
    """These bookies are back without their data."""
    return emptied(state, bookies)._replace(
        b_fenced=where(params.fence_on_unclean_shutdown, state.b_fenced | bookies, state.b_fenced & ~bookies),
        b_limbo=where(params.limbo_on_unclean_shutdown, state.b_limbo | bookies, state.b_limbo & ~bookies),
        amnesias=state.amnesias + popcount(bookies),
    )


def lost_for_good(state, bookies):
    """These bookies are down."""
    return emptied(state, bookies)._replace(
        b_fenced=state.b_fenced & ~bookies, b_limbo=state.b_limbo & ~bookies, b_down=state.b_down | bookies
    )


def up(state, params):
    """The bookies that may fail: once the ledger is created, those that are not down."""
    return where(state.meta_status == STATUS_NIL, 0, params.bookies & ~state.b_down)


def bookie_restarts_empty_enabled(state, params):
    return (where(state.amnesias < params.max_empty_restarts, up(state, params), 0),)


@action(bookie_restarts_empty_enabled, _EMPTY, bounds=("max_empty_restarts",))
def bookie_restarts_empty(state, params, bookie, lost):
    """Each bookie that is up restarts without its data."""
    return restarted_empty(state, params, 1 << bookie)


def bookie_is_lost_enabled(state, params):
    return (where(popcount(state.b_down) < params.max_lost, up(state, params), 0),)


@action(bookie_is_lost_enabled, _LOST, bounds=("max_lost",))
def bookie_is_lost(state, params, bookie, lost):
    """Each bookie that is up is lost for good."""
    return lost_for_good(state, 1 << bookie)


def bookie_is_replaced_enabled(state, params):
    closed = (params.replacement != 0) & (state.meta_status == STATUS_CLOSED)
    return (where(closed, state.b_down & ~any_row(state.meta_fragments.ensembles), 0),)


@action(bookie_is_replaced_enabled, bounds=("replacement",))
def bookie_is_replaced(state, params, bookie, lost):
    """Each lost bookie that no fragment names is replaced by an empty machine."""
    return state._replace(b_down=state.b_down & ~(1 << bookie))


def writer_crashes_enabled(state, params):
    return (where((params.writer_crash != 0) & (state.writer_status == STATUS_OPEN), 1, 0),)


@action(writer_crashes_enabled, _CRASH, bounds=("writer_crash",))
def writer_crashes(state, params, instance, lost):
    """The writer crashes, while it has the ledger open."""
    return state._replace(writer=state.writer._replace(meta_version=0), writer_status=CLIENT_WITHDRAWN)


def repairable_fragments(state, params):
    """Bit 6 i + b: lost bookie b is in the ensemble of fragment i, counted from the current one, and another bookie can
    take its place."""
    ensembles, down = state.meta_fragments.ensembles, state.b_down * EVERY_FRAGMENT_ROW
    spare = params.bookies * EVERY_FRAGMENT_ROW & ~(ensembles | down)
    return ensembles & down & (nonzero_rows(spare) * ROW)


def auditor_replicates_fragment_enabled(state, params):
    is_closed = state.meta_status == STATUS_CLOSED
    wanted = (params.auto_recovery != 0) & (is_closed | (params.repair_open_ledgers != 0)) & (state.b_down != 0)
    # the current fragment of a ledger that is not closed is its writer's
    return (when(wanted, repairable_fragments, state, params) & where(is_closed, -1, ~ROW),)


def replacement_for(state, params, ensemble, rest):
    """The smallest bookie that can complete `rest` of an ensemble: one that placement prefers, if there is one."""
    spare = params.bookies & ~(ensemble | state.b_down)
    preferred = 0
    for b in range(MAX_BOOKIES):
        completed = rest | (1 << b)
        preferred |= where((params.spread_ensembles >> (completed - 1)) & 1, 1 << b, 0)
    preferred &= spare
    return lowest_bit(where(preferred != 0, preferred, spare))


def told_of_repair(client, fragments, place, ensemble):
    """A client whose fragments, if it knows the one at this place of the metadata, have this ensemble there.

    In BookKeeper it finds out once its next update conflicts: it reads the metadata, and updates what it finds.
    """
    known = client.fragments.num - fragments.num + place
    at = where(known < 0, 0, known)
    now, old = ensemble_at(client.fragments, at), ensemble_at(fragments, place)
    same = (known >= 0) & (now.members == old.members) & (now.order == old.order)
    return client._replace(fragments=with_ensemble_at(client.fragments, at, where(same, ensemble, now)))


@action(auditor_replicates_fragment_enabled, bounds=("auto_recovery",))
def auditor_replicates_fragment(state, params, instance, lost):
    """Each lost bookie of a fragment's ensemble gets a substitute there, with its entries."""
    fragments, place = state.meta_fragments, instance // 6
    ensemble, bookie = ensemble_at(fragments, place), bookie_of(instance)
    rest = ensemble.members & ~(1 << bookie)
    replacement = replacement_for(state, params, ensemble.members, rest)
    first = (fragments.first_ids >> (3 * place)) & 7
    next_first = (fragments.first_ids >> (3 * where(place == 0, 0, place - 1))) & 7
    end = where(place == 0, state.meta_last_entry + 1, next_first)
    sets = write_sets(params, ensemble)
    held = nonzero_rows(state.b_entries & sets & (rest * EVERY_ROW)) & (sets >> bookie)
    copied = held & entries_up_to(end - 1) & ~entries_up_to(first - 1)
    repaired = arrange(params, ensemble, rest | (1 << replacement))
    is_closed = state.meta_status == STATUS_CLOSED  # or else nobody asks any more
    state = where(is_closed, state, with_clients(state, told_of_repair, fragments, place, repaired))
    fragments = with_ensemble_at(fragments, place, repaired)
    return store(state, params, copied << replacement)._replace(
        meta_fragments=fragments, meta_write_sets=write_sets_by_entry(params, fragments)
    )


def losable_together(state, params, sets, size):
    """The sets of `size` bookies among `sets` (bit S - 1) that may be lost at the same moment."""
    room = popcount(state.b_down) + size <= params.max_lost
    return where(room & (state.meta_status != STATUS_NIL), sets_without(sets, state.b_down), 0)


def two_bookies_are_lost_together_enabled(state, params):
    return (when(params.pairs != 0, losable_together, state, params, params.pairs, 2),)


@action(two_bookies_are_lost_together_enabled, _CORRELATED, bounds=("lost_together", "max_lost"))
def two_bookies_are_lost_together(state, params, instance, lost):
    """Each pair of bookies that are up is lost for good at one instant."""
    return lost_for_good(state, instance + 1)


@variant_of(
    two_bookies_are_lost_together, counts="Each set of three bookies that are up is lost for good at one instant."
)
def three_bookies_are_lost_together(state, params):
    return (when(params.triples != 0, losable_together, state, params, params.triples, 3),)


def rack_of(params, rack):
    """The bookies of a rack."""
    return (params.racks >> (6 * rack)) & ROW


def restartable_racks(state, params):
    """Bit r: all bookies of rack r that are not down may restart empty."""
    racks = 0
    for r in range(MAX_BOOKIES):
        bookies = popcount(rack_of(params, r) & up(state, params))
        racks |= where((bookies != 0) & (state.amnesias + bookies <= params.max_empty_restarts), 1 << r, 0)
    return racks


def rack_restarts_empty_enabled(state, params):
    wanted = (params.racks != 0) & (state.amnesias < params.max_empty_restarts)
    return (when(wanted, restartable_racks, state, params),)


@action(rack_restarts_empty_enabled, _CORRELATED, bounds=("racks", "max_empty_restarts"))
def rack_restarts_empty(state, params, rack, lost):
    """Each rack restarts, all of its bookies without their data."""
    return restarted_empty(state, params, rack_of(params, rack) & up(state, params))


def without_power(state, params, bookies, lost):
    """These bookies, which are up, restart with what they have on disk, but for those that are lost."""
    return lost_for_good(back_from_disk(break_requests(state, bookies), params, bookies & ~lost), lost)


def cluster_loses_power_enabled(state, params):
    created = state.meta_status != STATUS_NIL
    return (where(created & (state.outages < params.max_outages), 1, 0),)


def bookies_that_lose_power(state, params, instance):
    return up(state, params)


@action(
    cluster_loses_power_enabled,
    _OUTAGE,
    sends=bookies_that_lose_power,
    lost_with="p_lost_in_outage",
    needs=("max_outages",),
)
def cluster_loses_power(state, params, instance, lost):
    """The cluster loses power, and with it every bookie at one instant."""
    return without_power(state, params, up(state, params), lost)._replace(outages=state.outages + 1)


def racks_in_use(params):
    """Bit r: rack r has bookies."""
    racks = 0
    for r in range(MAX_BOOKIES):
        racks |= where(rack_of(params, r) != 0, 1 << r, 0)
    return racks


def rack_loses_power_enabled(state, params):
    wanted = (state.meta_status != STATUS_NIL) & (state.rack_outages < params.max_rack_outages)
    return (when(wanted, racks_in_use, params),)


def bookies_of_rack_that_lose_power(state, params, rack):
    return rack_of(params, rack) & ~state.b_down


@action(
    rack_loses_power_enabled,
    _OUTAGE,
    sends=bookies_of_rack_that_lose_power,
    lost_with="p_lost_in_rack_outage",
    needs=("max_rack_outages",),
)
def rack_loses_power(state, params, rack, lost):
    """Each rack loses power, and with it all of its bookies at one instant."""
    bookies = bookies_of_rack_that_lose_power(state, params, rack)
    return without_power(state, params, bookies, lost)._replace(rack_outages=state.rack_outages + 1)
