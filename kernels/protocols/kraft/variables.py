"""The specification's variables as TLA+ values, in the specification's own form."""

from collections.abc import Iterable
from typing import Any

from quorisk.kernels.protocols.kraft.spec import (
    AlterRequest,
    AlterResponse,
    FetchRequest,
    Message,
    PartitionMetadata,
    Record,
    RegisterRequest,
    RegisterResponse,
    SpecState,
)
from quorisk.kernels.telling import Function, Set

NIL, NO_LEADER, CONTROLLER = "Nil", "NoLeader", "Controller"
INT_MAX = 10000
_ELR_FIELDS = ("elr", "last_known_elr")


def spec_variables(s: SpecState, params: Any) -> dict[str, Any]:
    """The values of all variables, by name."""
    omitted = () if params.kip966 else _ELR_FIELDS
    log = [_change(md, omitted) for md in s.con_metadata_log]
    log[0] = {key: value for key, value in log[0].items() if key not in ("adding", "removing")}
    return {
        "con_unfenced": _set(s.con_unfenced),
        "con_broker_reg": tuple(reg._asdict() for reg in s.con_broker_reg),
        "con_partition_metadata": _partition(s.con_partition_metadata, omitted),
        "con_metadata_log": tuple(log),
        "broker_state": tuple(broker._asdict() for broker in s.broker_state),
        "broker_fetchers": tuple(
            tuple(
                {"partition": f.partition._asdict() if f.partition else NIL, "pending_response": f.pending_response}
                for f in row
            )
            for row in s.broker_fetchers
        ),
        "broker_metadata_log": tuple(tuple(log[: len(own)]) for own in s.broker_metadata_log),
        "partition_status": tuple(status or NIL for status in s.partition_status),
        "partition_metadata": tuple(_plain(md._asdict()) for md in s.partition_metadata),
        "partition_data": tuple(data._asdict() | {"log": _records(data.log)} for data in s.partition_data),
        **({} if params.flush_every_message else {"partition_flushed": s.partition_flushed}),
        "partition_leso": tuple(leso or NIL for leso in s.partition_leso),
        "partition_replica_state": tuple(
            tuple({"leo": peer.leo or NIL, "broker_epoch": peer.broker_epoch} for peer in row)
            for row in s.partition_replica_state
        ),
        "partition_pending_ap": tuple(
            {"epoch": p.epoch, "request": _message(p.request, params) if p.request else NIL}
            for p in s.partition_pending_ap
        ),
        "messages": Set(tuple(_message(m, params) for m in sorted(s.messages, key=repr))),
        "aux_broker_epoch": s.aux_broker_epoch,
        "aux_ctrs": _counters(s, params),
        "aux_flo": tuple(flo or INT_MAX for flo in s.aux_flo),
        "inv_sent": _values(s.inv_sent),
        "inv_pos_acked": _values(s.inv_pos_acked),
        "inv_neg_acked": _values(s.inv_neg_acked),
        "inv_true_hwm": s.inv_true_hwm,
        "inv_consumed": _records(s.inv_consumed),
        **({"stalled": _set(s.stalled)} if params.max_stalls else {}),
        **({"to_restart": _set(s.to_restart), "restarting": _set(s.restarting)} if params.max_rolls else {}),
        **({"isolated": _set(s.isolated)} if params.max_isolations else {}),
    }


def _counters(s: SpecState, params: Any) -> dict[str, int]:
    omitted = {
        "outage_ctr": params.max_outages,
        "zone_outage_ctr": params.max_zone_outages,
        "tail_loss_ctr": params.max_tail_losses,
        "stall_ctr": params.max_stalls,
        "roll_ctr": params.max_rolls,
        "isolation_ctr": params.max_isolations,
    }
    names = {"no_data_loss_shutdown_ctr": "clean_shutdown_ctr", "data_loss_shutdown_ctr": "unclean_shutdown_ctr"}
    counters = {key: value for key, value in s.aux_ctrs._asdict().items() if omitted.get(key, 1)}
    return {key if params.kip966 else names.get(key, key): value for key, value in counters.items()}


def _set(brokers: Iterable[int]) -> Set:
    return Set(tuple(sorted(brokers)))


def value_name(value: int) -> str:
    """What a record is called: A, B, ..."""
    return chr(ord("A") + value)


def _values(values: Iterable[int]) -> Set:
    return Set(tuple(map(value_name, sorted(values))))


def _records(records: Iterable[Record]) -> tuple[dict[str, Any], ...]:
    return tuple(record._asdict() | {"value": value_name(record.value)} for record in records)


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields with sets as sets, and a leader that is missing as NoLeader."""
    plain = {key: _set(value) if isinstance(value, frozenset) else value for key, value in fields.items()}
    return {key: NO_LEADER if key == "leader" and value is None else value for key, value in plain.items()}


def _partition(md: PartitionMetadata, omitted: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in _plain(md._asdict()).items() if key not in omitted}


def _change(md: PartitionMetadata, omitted: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "PartitionChangeRecord"} | _partition(md, omitted)


def _message(m: Message, params: Any) -> dict[str, Any]:
    """A message as the record that the spec sends."""
    match m:
        case RegisterRequest():
            epoch = {"broker_epoch": m.broker_epoch} if params.kip966 else {}
            asked = {"broker_id": m.source, "incarnation_id": m.incarnation_id, "source": m.source}
            return {"type": m.type, **epoch, **asked, "dest": CONTROLLER}
        case RegisterResponse():
            return m._asdict() | {"source": CONTROLLER}
        case AlterRequest():
            epochs = Function(m.isr_and_epochs)
            return _plain(m._asdict()) | {"isr_and_epochs": epochs, "leader": m.source, "dest": CONTROLLER}
        case AlterResponse():
            fields = _plain(m._asdict()) | {"request": _message(m.request, params), "source": CONTROLLER}
            rejected = ("type", "error", "request", "dest", "source")
            if m.error:
                return {key: fields[key] for key in rejected}
            return fields | {"error": NIL}
        case FetchRequest():
            asked = {key: getattr(m, key) for key in ("leader_epoch", "fetch_offset", "last_fetched_epoch")}
            return {
                "type": m.type,
                "broker_epoch": m.broker_epoch,
                "partition": asked,
                "dest": m.dest,
                "source": m.source,
            }
    good = m.error is None and m.diverging_epoch is None
    answered = {
        **({"type": m.type} if good else {}),
        "error": m.error or NIL,
        "leader_epoch": m.leader_epoch,
        "fetch_offset": m.fetch_offset,
        "diverging_epoch": m.diverging_epoch._asdict() if m.diverging_epoch else NIL,
        "hwm": m.hwm,
        "records": _records(m.records),
    }
    return {"type": m.type, "partition": answered, "dest": m.dest, "source": m.source}
