"""The bounded retransmission protocol (Helmink, Sellink and Vaandrager 1994; D'Argenio and others 2001).

A file goes in frames over a channel that loses 2% of them; each is acknowledged over one that loses 1%. The sender
repeats a frame that is not acknowledged in time, but not more often than MAX times: then it gives up.
"""

from typing import NamedTuple

from quorisk.kernels.model import COMPLETED, Action, Invariant, Model, Parameter, sends_nothing, sends_one
from quorisk.kernels.ops import where

FRAME_LOSS = 0.02
RATES = {"ack_arrives": 0.99, "ack_is_lost": 0.01}
P1 = {2: "4.233334e-04", 3: "1.261777e-05", 4: "3.760116e-07", 5: "1.120515e-08"}
"""P(the sender does not report success) of a file of 16 frames, by MAX."""
P4 = {2: "8.000000e-06", 3: "1.600000e-07", 4: "3.200000e-09", 5: "6.400000e-11"}
"""P(the sender gives up and the receiver got nothing)."""

SENDING, FRAME_ARRIVED, WAITING, SUCCESS, GAVE_UP = range(5)


class State(NamedTuple):
    phase: int
    frame: int  # that the sender is at, from 1
    retries: int  # of that frame
    received: int  # by the receiver: frames 1 to this one


class Params(NamedTuple):
    frames: int
    max_retries: int


def send_frame_enabled(state, params):
    return (where(state.phase == SENDING, 1, 0),)


def send_frame(state, params, instance, lost):
    # a repeated frame that the receiver has already is acknowledged again
    received = where(state.frame > state.received, state.frame, state.received)
    arrived = state._replace(phase=FRAME_ARRIVED, received=received)
    return where(lost != 0, state._replace(phase=WAITING), arrived)


def acknowledged(state, params):
    return (where(state.phase == FRAME_ARRIVED, 1, 0),)


def ack_arrives(state, params, instance, lost):
    last = state.frame == params.frames
    following = state._replace(phase=SENDING, frame=state.frame + 1, retries=0)
    return where(last, state._replace(phase=SUCCESS), following)


def ack_is_lost(state, params, instance, lost):
    return state._replace(phase=WAITING)


def time_out_enabled(state, params):
    return (where(state.phase == WAITING, 1, 0),)


def time_out(state, params, instance, lost):
    again = state._replace(phase=SENDING, retries=state.retries + 1)
    return where(state.retries < params.max_retries, again, state._replace(phase=GAVE_UP))


def sender_succeeds(state, params):
    return state.phase != GAVE_UP


def receiver_got_something(state, params):
    return (state.phase != GAVE_UP) | (state.received > 0)


def outcome(state, params):
    return COMPLETED


def initial(params, choice):
    return State(SENDING, 1, 0, 0)


MODEL = Model(
    name="retransmission",
    version=2,
    parameters=(
        Parameter("frames", "model", (1, 63), "frames of the file"),
        Parameter("max_retries", "model", (0, 15), "times that a frame is sent again"),
    ),
    conditions=(),
    make_params=lambda values: Params(values["frames"], values["max_retries"]),
    initial=initial,
    actions=(
        Action("send_frame", send_frame_enabled, sends_one, send_frame),
        Action("ack_arrives", acknowledged, sends_nothing, ack_arrives),
        Action("ack_is_lost", acknowledged, sends_nothing, ack_is_lost),
        Action("time_out", time_out_enabled, sends_nothing, time_out),
    ),
    invariants=(
        Invariant("SenderSucceeds", sender_succeeds, data_loss=True),
        Invariant("ReceiverGotSomething", receiver_got_something, data_loss=False),
    ),
    outcome=outcome,
    widths=State(3, 6, 4, 6),
    max_sends=1,
)
