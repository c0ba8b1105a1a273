"""The promise of BookKeeper on an acknowledged entry."""

from collections.abc import Mapping
from math import inf
from typing import Any

from quorisk.kernels.protocols.promises import Promise


def promise(values: Mapping[str, Any]) -> Promise:
    """Returns the promise of a configuration, from its parameters by dotted key."""
    write_quorum, ack_quorum = values["model.write_quorum"], values["model.ack_quorum"]
    # all bookies of an ensemble but one may be in one rack, as it spans two at least; a stripe of it may be in one
    striped = (values.get("model.ensemble_size") or write_quorum) > write_quorum
    spread = values.get("model.racks", 0) > 1 and bool(values.get("variant.rack_aware_placement")) and not striped
    zones = int(spread and ack_quorum == write_quorum > 1)
    if values.get("variant.enforce_min_fault_domains_for_write"):
        zones = min(write_quorum, values["model.min_racks_per_write_quorum"]) - 1
    # a lost bookie is silent; one that restarts empty answers, unless limbo and fencing keep it from doing harm
    guarded = all(values.get(f"variant.{name}_on_unclean_shutdown", True) for name in ("limbo", "fence"))
    # so does one that restarts without what it had not synced, and with journal writes on it does not notice
    written, synced = (values.get(f"variant.{name}", True) for name in ("journal_write", "journal_sync"))
    forgets = not (written and synced) and (written or not guarded)
    gives_up = values.get("rates.client_changes_ensemble", 1.0)
    harmful = [what for what, harms in (("empty", not guarded), ("unclean", forgets)) if harms]
    return Promise(
        copies=ack_quorum,
        stored=write_quorum,
        on_disk=bool(written and synced and values.get("faults.max_empty_restarts", 0) == 0),
        nodes=ack_quorum - 1,
        zones=zones,
        asked=write_quorum,
        waits_for=ack_quorum,
        replaced_after=1.0 / gives_up if gives_up else inf,
        node="bookie",
        provided=f", but no {' or '.join(harmful)} restart" if ack_quorum > 1 and harmful else "",
    )
