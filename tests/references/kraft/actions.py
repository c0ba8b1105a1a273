"""All actions, by name."""

from collections.abc import Callable

from quorisk.kernels.protocols.kraft.spec import SpecState
from tests.references.kraft.controller import (
    fence_broker,
    perform_partition_reassignment,
    receive_alter_partition_request,
    receive_broker_reg_request,
    unfence_broker,
)
from tests.references.kraft.fetching import receive_fetch_request, receive_fetch_response, send_fetch_request
from tests.references.kraft.flushing import broker_flushes, on_disk
from tests.references.kraft.leader import (
    leader_shrink_isr,
    send_alter_partition_request,
    write_record_to_leader,
)
from tests.references.kraft.lifecycle import (
    broker_start,
    cluster_loses_power,
    data_loss_shutdown,
    no_data_loss_shutdown,
    no_data_loss_unclean_shutdown,
    receive_broker_reg_response,
    tail_loss_shutdown,
    zone_loses_power,
)
from tests.references.kraft.operations import (
    follower_resumes,
    follower_stalls,
    isolation_ends,
    leader_is_isolated,
    leader_removes_stalled,
    receive_alter_partition_response,
    receive_metadata_update,
    restart_ends,
    roll_begins,
    roll_restarts,
    session_times_out,
)
from tests.references.kraft.state import Successors, Values

ACTIONS: dict[str, Callable[[SpecState, Values], Successors]] = {
    f.__name__: on_disk(f)
    for f in (
        broker_start,
        receive_broker_reg_response,
        receive_metadata_update,
        send_alter_partition_request,
        leader_shrink_isr,
        receive_alter_partition_response,
        send_fetch_request,
        receive_fetch_request,
        receive_fetch_response,
        write_record_to_leader,
        data_loss_shutdown,
        no_data_loss_shutdown,
        no_data_loss_unclean_shutdown,
        receive_broker_reg_request,
        receive_alter_partition_request,
        fence_broker,
        unfence_broker,
        perform_partition_reassignment,
        cluster_loses_power,
        zone_loses_power,
        tail_loss_shutdown,
        broker_flushes,
        follower_stalls,
        follower_resumes,
        leader_removes_stalled,
        roll_begins,
        roll_restarts,
        restart_ends,
        leader_is_isolated,
        isolation_ends,
        session_times_out,
    )
}


def successors(s: SpecState, v: Values) -> Successors:
    """The steps from a state: each way of each action, and where it leads."""
    return (after for action in ACTIONS.values() for after in action(s, v))
