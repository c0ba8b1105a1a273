"""What operators of Kafka do to a partition that is written to all the time, by events: is anything acknowledged lost?

It shares no code with the model, and what takes milliseconds takes no time here: a replica that is up and does not
stall has all that its leader has. `end` is the time until which a replica has all records, `disk` that until which
they are on its disk, `acked` that until which they are acknowledged. A leader that lacks some of these is a loss.
"""

import sys
from typing import Any, NamedTuple

import numpy as np
from numba import njit

REPLICAS = 3


class Setting(NamedTuple):
    """Rates a second, times in seconds and switches, as a row of tests/data/kafka_operations.jsonl names them."""

    min_isr: int
    elr: bool
    unclean: bool
    acks1: bool
    stall: float
    stalled_s: float
    lag_max_s: float
    join_s: float
    crash: float
    power: float
    disk: float
    down_s: float
    flush_s: float
    lifetime_s: float
    max_stalls: int
    max_faults: int
    roll: bool
    gated: bool
    restart_s: float
    zone_power: float
    spell_s: float = 0.0
    """If it is not 0, the kind of fault that has a rate comes once, at any time in a spell of so long; the lifetime is
    what comes after it."""
    roll_restarts_s: float = 1.0
    """Mean time until a roll restarts the next broker that is up."""


def setting(row: dict[str, Any]) -> Setting:
    """The setting of a row, with times as floats."""
    assert row["replicas"] == REPLICAS
    given: dict[str, Any] = {name: row[name] for name in Setting._fields if name in row}
    given |= {name: float(x) for name, x in given.items() if name.endswith("_s")}
    return Setting(**given)


STALL, RESUME, REMOVE, JOIN, CRASH, POWER, DISK, ZONE, START, FLUSH, RESTART, END = range(12)
"""Events; the rate of event e of replica b stands at REPLICAS * e + b."""


@njit
def set_rates(rates, s, up, stalled, isr, restarting, leader, num_stalls, num_faults, following):
    """The rate of each event."""
    rates[:] = 0.0
    faults = num_faults < s.max_faults and s.spell_s == 0.0
    for b in range(REPLICAS):
        follows = leader >= 0 and b != leader
        if up[b] and not stalled[b] and b != leader and num_stalls < s.max_stalls:
            rates[REPLICAS * STALL + b] = s.stall
        if stalled[b]:
            rates[REPLICAS * RESUME + b] = 1.0 / s.stalled_s
        if follows and isr[b] and stalled[b]:
            rates[REPLICAS * REMOVE + b] = 1.0 / s.lag_max_s
        if follows and not isr[b] and up[b] and not stalled[b]:
            rates[REPLICAS * JOIN + b] = 1.0 / s.join_s
        if faults and up[b]:
            rates[REPLICAS * CRASH + b], rates[REPLICAS * POWER + b] = s.crash, s.power
            rates[REPLICAS * DISK + b] = s.disk
        if faults:
            rates[REPLICAS * ZONE + b] = s.zone_power
        if not up[b]:
            rates[REPLICAS * START + b] = 1.0 / (s.restart_s if restarting[b] else s.down_s)
        rates[REPLICAS * FLUSH + b] = 1.0 / s.flush_s
    if s.roll and following < REPLICAS and up[following] and (isr.all() or not s.gated):
        rates[REPLICAS * RESTART + following] = 1.0 / s.roll_restarts_s
    if s.spell_s == 0.0 or num_faults > 0:
        rates[REPLICAS * END] = 1.0 / s.lifetime_s


@njit
def candidates(s, up, isr, elr, last_leader):
    """Who may lead, and whether that is by no clean election."""
    found = isr & up
    if not found.any() and s.elr:
        found = elr & up
    if found.any():
        return found, False
    if s.elr and not isr.any() and not elr.any() and up[last_leader]:
        found[last_leader] = True
    elif s.unclean:
        found = up.copy()
    return found, True


@njit
def leave(b, s, isr, elr):
    """A replica leaves the ISR: for the ELR if the ISR is too small; without ELR the last one stays."""
    if isr[b] and (s.elr or isr.sum() > 1):
        isr[b] = False
        elr[b] = s.elr and isr.sum() < s.min_isr


@njit
def runs_on(s, end, disk, up, stalled, isr, leader, acked, now):
    """Time passes: the leader is written to, replicas that fetch have all, and what is acknowledged is returned."""
    end[leader] = now
    for b in range(REPLICAS):
        if up[b] and not stalled[b]:
            end[b] = now
    if s.acks1:
        return now
    return max(acked, end[isr].min()) if isr.sum() >= s.min_isr else acked


@njit
def kind_of_fault(s):
    """The fault that has a rate."""
    if s.crash > 0.0:
        return CRASH
    if s.power > 0.0:
        return POWER
    return DISK if s.disk > 0.0 else ZONE


@njit
def run(s):
    """When what one partition loses in its life was acknowledged: from, to; 0 and 0 if it loses nothing."""
    up, isr = np.ones(REPLICAS, np.bool_), np.ones(REPLICAS, np.bool_)
    stalled, elr, restarting = np.zeros(REPLICAS, np.bool_), np.zeros(REPLICAS, np.bool_), np.zeros(REPLICAS, np.bool_)
    clean, end, disk = np.ones(REPLICAS, np.bool_), np.zeros(REPLICAS), np.zeros(REPLICAS)
    rates = np.zeros(REPLICAS * END + 1)
    leader, last_leader, following, num_stalls, num_faults, acked, now = 0, 0, 0, 0, 0, 0.0, 0.0
    fault_at = np.random.random() * s.spell_s if s.spell_s > 0.0 else np.inf
    while True:
        settled = up.all() and isr.all()
        if settled and (num_faults >= s.max_faults or (s.roll and following == REPLICAS)):
            return 0.0, 0.0
        set_rates(rates, s, up, stalled, isr, restarting, leader, num_stalls, num_faults, following)
        cumulated = np.cumsum(rates)
        later = now + np.random.exponential(1.0 / cumulated[-1])
        now, is_due = min(later, fault_at), later > fault_at
        if leader >= 0:
            acked = runs_on(s, end, disk, up, stalled, isr, leader, acked, now)
        drawn = np.searchsorted(cumulated, np.random.random() * cumulated[-1], side="right")
        event, b = drawn // REPLICAS, drawn % REPLICAS
        if is_due:
            event, b, fault_at = kind_of_fault(s), np.random.choice(np.flatnonzero(up)), np.inf
        if event == END:
            return 0.0, 0.0
        if event == STALL:
            stalled[b], num_stalls = True, num_stalls + 1
        elif event == RESUME:
            stalled[b] = False
        elif event == REMOVE:
            leave(b, s, isr, elr)
        elif event == JOIN:
            isr[b], elr[b], end[b] = True, False, end[leader]
            if isr.sum() >= s.min_isr:
                elr[:] = False
        elif event == FLUSH:
            disk[b] = end[b]
        elif event == START:
            up[b], restarting[b] = True, False
            if s.elr and not clean[b]:
                isr[b] = elr[b] = False
        else:
            clean[b] = event == RESTART
            num_faults += event != RESTART
            if event == RESTART:
                restarting[b], following, disk[b] = True, following + 1, end[b]
            if event == DISK:
                disk[b] = 0.0
            if event in (DISK, POWER, ZONE):
                end[b] = min(end[b], disk[b])
            if up[b]:
                up[b] = stalled[b] = False
                leave(b, s, isr, elr)
                if leader == b:
                    leader, last_leader = -1, b
        if leader < 0:
            found, unclean = candidates(s, up, isr, elr, last_leader)
            if not found.any():
                continue
            leader = np.random.choice(np.flatnonzero(found))
            if unclean:
                isr[:] = elr[:] = False
            isr[leader], elr[leader] = True, False
            if end[leader] < acked:
                return end[leader], acked
            for other in range(REPLICAS):
                end[other], disk[other] = min(end[other], end[leader]), min(disk[other], end[leader])


@njit
def lost(s, runs, seed):
    """How many of these runs lose something, and the seconds that lost records were acknowledged in."""
    np.random.seed(seed)
    found, seconds = 0, 0.0
    for _ in range(runs):
        since, until = run(s)
        found += until > since
        seconds += until - since
    return found, seconds


SPELL: dict[str, Any] = {"max_stalls": 10**6, "lifetime_s": 3600.0, "spell_s": 600.0}
"""Ten minutes in which stalls go on and the fault is as likely at any time; runs end an hour after it, on average."""
LAG = SPELL | {"stall": 0.02, "down_s": 120.0, "roll": False, "gated": True}
ROLL = {"stall": 0.0, "lifetime_s": 1e9, "max_stalls": 99, "down_s": 600.0, "roll": True}
COMMON = {"stalled_s": 60.0, "lag_max_s": 30.0, "join_s": 1.0, "flush_s": 30.0, "max_faults": 1, "restart_s": 300.0}
NO_FAULT = {"crash": 0.0, "power": 0.0, "disk": 0.0, "zone_power": 0.0}
HOURLY, IN_FIVE_MINUTES = 1 / 3600, 1 / 300
COLUMNS = {
    "under lag: a broker crashes": LAG | {"crash": IN_FIVE_MINUTES},
    "loses its disk": LAG | {"disk": IN_FIVE_MINUTES},
    "a zone loses power": LAG | {"zone_power": IN_FIVE_MINUTES},
    "in a roll that waits: a disk": ROLL | {"gated": True, "disk": HOURLY},
    "a zone": ROLL | {"gated": True, "zone_power": HOURLY},
    "in one that does not: a disk": ROLL | {"gated": False, "disk": HOURLY},
}
DESIGNS = {
    "2, ELR": (2, True, False, False),
    "2, without ELR": (2, False, False, False),
    "2, ELR, unclean": (2, True, True, False),
    "2, without ELR, unclean": (2, False, True, False),
    "1": (1, True, False, False),
    "1, unclean": (1, True, True, False),
    "acks = 1, ELR": (1, True, False, True),
}
"""min.insync.replicas, ELR, unclean elections, acks = 1."""


def with_ends(found: int, runs: int) -> str:
    """A share of the runs in words, with 95 % each way."""
    half = 1.96 * (found * (runs - found) / runs) ** 0.5 / runs
    return f"{found / runs:.3g} +- {half:.2g}" if found else f"< {3 / runs:.2g}"


def main(runs: int = 400_000) -> None:
    """Prints the table of docs/kafka.md: P(anything acknowledged is lost) given the event, and 95 % each way. Of three
    replicas, or of as many as the command's argument says."""
    for design, (min_isr, elr, unclean, acks1) in DESIGNS.items():
        chosen: dict[str, Any] = {"min_isr": min_isr, "elr": elr, "unclean": unclean, "acks1": acks1}
        for column, event in COLUMNS.items():
            found, _ = lost(Setting(**(COMMON | NO_FAULT | event | chosen)), runs, 17)
            print(f"{design:26} {column:32} {with_ends(found, runs)}", flush=True)


if __name__ == "__main__":
    REPLICAS = int(sys.argv[1]) if len(sys.argv) > 1 else REPLICAS
    main()
