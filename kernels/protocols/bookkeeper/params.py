"""Parameters of a ledger in an experiment file, and the numbers that the rules read."""

from collections.abc import Iterable
from typing import NamedTuple

from quorisk.kernels.model import Condition, Parameter, Probability, switch
from quorisk.kernels.protocols.bookkeeper import beginning
from quorisk.kernels.protocols.bookkeeper.layout import (
    MAX_AMNESIAS,
    MAX_BOOKIES,
    MAX_CLIENTS,
    MAX_ENTRIES,
    MAX_FRAGMENTS,
    MAX_LIST,
    MAX_OUTAGES,
)
from quorisk.kernels.telling import with_docs


class Params(NamedTuple):
    """The spec's constants, the variant and the faults, as integers (switches: 0 or 1)."""

    bookies: int  # Bookies, bit b
    clients: int
    write_quorum: int
    ack_quorum: int
    entries: int  # SendLimit
    inflight: int  # InflightLimit
    striped: int  # EnsembleSize > WriteQuorum; what follows of lists plays no part where it is not
    listed: int  # of rows by position, 6 bits each, all bits of the positions 0 to 3 that an ensemble has
    digits: int  # the same of an order, 3 bits a position
    turns: int  # times such rows: a list over and over again, ten rows at most
    ensembles: int  # bit S - 1: the bookies S are EnsembleSize of those in use
    spread_ensembles: int  # those of them that placement prefers
    literal: int
    fence_recovery_reads: int
    recovery_lac_floor: int
    recovery_reads_initial_ensemble: int
    defer_recovery_ensemble_change: int
    fence_unknown_ledger: int
    strict_negative_reads: int
    close_checks_version: int
    delay_ensemble_change: int
    guaranteed_write_quorum: int
    early_callbacks: int  # callbacks_after_unset is off, and there are positions that an entry does not go to
    fence_on_unclean_shutdown: int
    limbo_on_unclean_shutdown: int
    max_lost: int
    max_empty_restarts: int
    writer_crash: int
    auto_recovery: int
    replacement: int
    pairs: int  # bit S - 1: the bookies S are two that may be lost together
    triples: int  # the same for three
    racks: int  # the bookies of each rack, 6 bits a rack
    ack_racks: int  # racks that have to confirm an entry; 0 if any may
    max_outages: int
    max_rack_outages: int
    max_unclean_restarts: int
    max_partial_losses: int
    entries_are_durable: int  # on disk before they are confirmed
    fences_are_durable: int
    fences_when_unclean: int  # a bookie that comes back from an unclean shutdown fences the ledger
    limbo_when_unclean: int  # and answers Unknown
    damaged_reads_unknown: int
    limbo_answers_fencing: int
    repair_open_ledgers: int
    fence_open_ledgers: int
    first_ensemble: int  # of the closed ledger that a run begins with; 0 and so on if it begins with none
    first_order: int  # who is at the positions 0 to 3 of it, if E > WQ
    first_write_sets: int  # of all entries, 6 bits an entry
    stored_lacs: int  # 3 bits a bookie
    stored_requests: int  # the add requests that were sent


PARAMETERS = with_docs(
    __file__,
    Parameter("bookies", "model", (1, MAX_BOOKIES)),
    Parameter("clients", "model", (1, MAX_CLIENTS)),
    Parameter("ensemble_size", "model", (1, MAX_BOOKIES), follows="write_quorum"),
    Parameter("write_quorum", "model", (1, MAX_BOOKIES)),
    Parameter("ack_quorum", "model", (1, MAX_BOOKIES)),
    Parameter("entries", "model", (1, MAX_ENTRIES)),
    Parameter("inflight", "model", (1, MAX_ENTRIES)),
    Parameter("racks", "model", (0, MAX_BOOKIES), default=0),
    Parameter("min_racks_per_write_quorum", "model", (1, MAX_BOOKIES), default=2, later=True),
    Parameter("ledger", "model", ("new", "closed"), later=True),
    Parameter("semantics", "variant", ("intended", "literal")),
    switch("fence_recovery_reads"),
    switch("recovery_lac_floor"),
    switch("recovery_reads_initial_ensemble"),
    switch("defer_recovery_ensemble_change"),
    switch("fence_unknown_ledger"),
    switch("strict_negative_reads"),
    switch("close_checks_version"),
    switch("callbacks_after_unset"),
    switch("delay_ensemble_change", default=False, later=True),
    switch("guaranteed_write_quorum", default=False, later=True),
    switch("fence_on_unclean_shutdown"),
    switch("limbo_on_unclean_shutdown"),
    switch("rack_aware_placement"),
    switch("enforce_min_racks_per_write_quorum", default=False, later=True),
    switch("enforce_min_fault_domains_for_write", default=False, later=True),
    switch("journal_write", later=True),
    switch("journal_sync", later=True),
    switch("damaged_reads_unknown", later=True),
    switch("limbo_answers_fencing", later=True),
    Parameter("max_lost", "faults", (0, MAX_BOOKIES)),
    Parameter("max_empty_restarts", "faults", (0, MAX_AMNESIAS), formerly="max_amnesias"),
    switch("writer_crash", table="faults"),
    switch("auto_recovery", table="faults", repair=True),
    switch("replacement", table="faults", repair=True),
    switch("lost_together", table="faults"),
    Parameter("max_outages", "faults", (0, MAX_OUTAGES), later=True),
    Parameter("max_rack_outages", "faults", (0, MAX_OUTAGES), later=True),
    Parameter("max_unclean_restarts", "faults", (0, MAX_AMNESIAS), later=True),
    Parameter("max_partial_losses", "faults", (0, MAX_AMNESIAS), formerly="max_partial_amnesias", later=True),
    switch("repair_open_ledgers", table="faults", repair=True, later=True),
    switch("fence_open_ledgers", table="faults", repair=True, later=True),
)
PROBABILITIES = (
    Probability("p_lost_in_outage", "that a bookie does not come back from a power outage of the cluster"),
    Probability("p_lost_in_rack_outage", "that a bookie does not come back from a power outage of its rack"),
    Probability("p_lost_entry", "that a bookie that loses a part of its entries loses a given one"),
)
CONDITIONS = (
    Condition(
        "racks",
        "at least min_racks_per_write_quorum if that is enforced",
        lambda v: not _enforces_racks(v) or v["racks"] >= _racks_of_a_write_quorum(v),
    ),
    Condition(
        "ensemble_size",
        "the write quorum if min_racks_per_write_quorum is enforced",
        lambda v: not _enforces_racks(v) or v["ensemble_size"] == v["write_quorum"],
    ),
    Condition("write_quorum", "at most bookies", lambda v: v["write_quorum"] <= v["bookies"]),
    Condition("ack_quorum", "at most write_quorum", lambda v: v["ack_quorum"] <= v["write_quorum"]),
    Condition("ensemble_size", "at least write_quorum", lambda v: v["ensemble_size"] >= v["write_quorum"]),
    Condition("ensemble_size", "at most bookies", lambda v: v["ensemble_size"] <= v["bookies"]),
    Condition(
        "ensemble_size",
        f"at most {MAX_LIST} if it is not the write quorum",
        lambda v: v["ensemble_size"] in (v["write_quorum"], *range(MAX_LIST + 1)),
    ),
    Condition(
        "guaranteed_write_quorum",
        "false with delay_ensemble_change, which leaves entries below it",
        lambda v: not (v["guaranteed_write_quorum"] and v["delay_ensemble_change"]),
    ),
    Condition(
        "guaranteed_write_quorum",
        "false with callbacks_after_unset off if ensemble_size is not the write quorum",
        lambda v: (
            not v["guaranteed_write_quorum"] or v["callbacks_after_unset"] or v["ensemble_size"] == v["write_quorum"]
        ),
    ),
    Condition("inflight", "at most entries", lambda v: v["inflight"] <= v["entries"]),
    Condition(
        "fence_open_ledgers",
        "false with one client: it takes another one to recover the ledger",
        lambda v: not v["fence_open_ledgers"] or v["clients"] > 1,
    ),
    Condition(
        "entries",
        "at most 2 with 3 clients, recovery_lac_floor off and defer_recovery_ensemble_change off: a ledger may then "
        f"need more than {MAX_FRAGMENTS} fragments",
        lambda v: (
            v["recovery_lac_floor"] or v["defer_recovery_ensemble_change"] or v["clients"] * (v["entries"] + 1) < 11
        ),
    ),
)


def make_params(values) -> Params:
    """`Params` from checked values of PARAMETERS."""
    sets, size = range(1, 1 << values["bookies"]), values["ensemble_size"]
    ensembles = [s for s in sets if s.bit_count() == size]
    striped = size > values["write_quorum"]
    racks = [sum(1 << b for b in range(r, values["bookies"], values["racks"])) for r in range(values["racks"])]
    num_racks = _racks_of_a_write_quorum(values)
    spread = [s for s in ensembles if sum(s & rack != 0 for rack in racks) >= num_racks]
    is_enforced = values["rack_aware_placement"] and values["enforce_min_racks_per_write_quorum"]
    together = sets if values["lost_together"] else []
    derived = {
        "bookies": sets[-1],
        "striped": striped,
        "listed": (1 << 6 * min(size, 4)) - 1,
        "digits": (1 << 3 * min(size, 4)) - 1,
        "turns": sum(1 << 6 * size * i for i in range(10 // size)),
        "early_callbacks": striped and not values["callbacks_after_unset"],
        "ensembles": _members(spread if is_enforced else ensembles),
        "spread_ensembles": _members(spread if values["rack_aware_placement"] and racks else ensembles),
        "ack_racks": num_racks if values["enforce_min_fault_domains_for_write"] else 0,
        "literal": values["semantics"] == "literal",
        "pairs": _members(s for s in together if s.bit_count() == 2),
        "triples": _members(s for s in together if s.bit_count() == 3),
        "entries_are_durable": values["journal_write"] and values["journal_sync"],
        "fences_are_durable": values["journal_sync"],
        # a bookie asks how it was shut down only if its journal is not written
        "fences_when_unclean": not values["journal_write"] and values["fence_on_unclean_shutdown"],
        "limbo_when_unclean": not values["journal_write"] and values["limbo_on_unclean_shutdown"],
        "racks": sum(rack << 6 * r for r, rack in enumerate(racks)),
        **beginning.words(values),
    }
    return Params(**{name: int((values | derived)[name]) for name in Params._fields})


def _enforces_racks(values) -> bool:
    return values["enforce_min_racks_per_write_quorum"] or values["enforce_min_fault_domains_for_write"]


def _racks_of_a_write_quorum(values) -> int:
    """The racks that a write quorum is to span."""
    return min(values["write_quorum"], values["min_racks_per_write_quorum"])


def alike(params: Params) -> int:
    """Returns the number of bookies if no step tells them apart, else 0.

    Of several spare bookies the smallest one is chosen, and racks are of given bookies. With one bookie more than an
    ensemble has, there is never more than one spare. In a list, positions tell bookies apart.
    """
    bookies = params.bookies.bit_count()
    return bookies if bookies <= params.write_quorum + 1 and params.racks == 0 and not params.striped else 0


def _members(sets: Iterable[int]) -> int:
    """Sets of bookies as one number: bit S - 1 for the set S."""
    return sum(1 << (s - 1) for s in sets)
