#!/usr/bin/env python3
"""What one watched record leaves out: how often a Kafka partition that is written to all the time loses something.

    .venv/bin/python tests/references/upgrades.py [--runs 2000000]

The upgrade scenarios of configs/starters/kraft.toml watch one record. This simulates the same upgrade of three brokers
by events, with its rates and without ELR, and asks both: is the record lost that was written
2 min after the upgrade began, on average; is any that was acknowledged. Steps of milliseconds take no time here.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from numba import njit

sys.path.insert(0, str(Path(__file__).parents[2]))

from quorisk.analysis.experiment import config

STARTER = Path(__file__).parents[2] / "configs" / "starters" / "kraft.toml"
UPGRADE = next(each.point for each in config.load(STARTER).points if each.scenario == "broker_lost_in_upgrade")
BROKERS = 3
IN_SYNC, DOWN, LOADING, FENCED, CATCHING_UP = range(5)
"""What a broker does; it fetches while it is in sync or catching up."""
_GOES_ON = "broker_start", "receive_broker_reg_response", "unfence_broker", "send_alter_partition_request"
NEXT = np.array([0.0, *(UPGRADE.rates[name] for name in _GOES_ON)])
"""A second: at what rate it goes on to what comes next."""
CLEAN_SHUTDOWN, FATAL, FLUSHES, WRITES = (
    UPGRADE.rates[name]
    for name in ("no_data_loss_shutdown", "data_loss_shutdown", "broker_flushes", "write_record_to_leader")
)
"""A second: of each broker its shutdown, its fault and its flushes; of the partition the watched record's writing."""
ENDS, MOST_SHUTDOWNS = 1.0 / UPGRADE.lifetime, UPGRADE.values["max_clean_shutdowns"]
SHUTDOWN, FAULT, ADVANCE, FLUSH = (BROKERS * each for each in range(4))
WRITE, END = 4 * BROKERS, 4 * BROKERS + 1
"""Where events stand among the rates: those of broker b at SHUTDOWN + b and so on."""


@njit
def rates_now(doing, has_leader, acknowledges, shutdowns, faults, takes_disk, is_written, rates):
    """Sets the rate of each event."""
    for b in range(BROKERS):
        is_up = doing[b] != DOWN
        rates[SHUTDOWN + b] = CLEAN_SHUTDOWN if is_up and shutdowns else 0.0
        rates[FAULT + b] = FATAL if faults and (is_up or not takes_disk) else 0.0
        rates[ADVANCE + b] = NEXT[doing[b]] if doing[b] != CATCHING_UP or has_leader else 0.0
        rates[FLUSH + b] = FLUSHES
    rates[WRITE] = WRITES if acknowledges and not is_written else 0.0
    rates[END] = ENDS


@njit
def drawn(rates, total):
    """One of the events, by its rate."""
    left = np.random.random() * total
    for event in range(len(rates)):
        left -= rates[event]
        if left < 0.0:
            return event
    return END


@njit
def stop(b, doing, isr):
    """A broker goes down, and leaves the ISR unless nobody else is in it."""
    doing[b] = DOWN
    if isr.sum() > 1:
        isr[b] = False


@njit
def elected(doing, isr):
    """A broker of the ISR that is in sync; -1 if there is none."""
    for b in range(BROKERS):
        if isr[b] and doing[b] == IN_SYNC:
            return b
    return -1


@njit
def run(min_isr, takes_disk):
    """Whether the watched record is lost, and whether any is, in one upgrade with one fault.

    `log` is the time until which a broker has all records, `disk` that until which they are on its disk.
    """
    doing, isr = np.zeros(BROKERS, np.int64), np.ones(BROKERS, np.bool_)
    log, disk, rates = np.zeros(BROKERS), np.zeros(BROKERS), np.zeros(END + 1)
    shutdowns, faults, leader, now, acknowledged, written = MOST_SHUTDOWNS, 1, 0, 0.0, 0.0, np.inf
    watched_lost = any_lost = False
    while faults or leader < 0 or doing.any():
        acknowledges = leader >= 0 and isr.sum() >= min_isr
        rates_now(doing, leader >= 0, acknowledges, shutdowns, faults, takes_disk, written < np.inf, rates)
        total = rates.sum()
        now += np.random.exponential(1.0 / total)
        if acknowledges:
            acknowledged = now
            for b in range(BROKERS):
                if doing[b] == IN_SYNC or doing[b] == CATCHING_UP:
                    log[b] = now
        event = drawn(rates, total)
        b = event % BROKERS
        if event == END:
            break
        if event == WRITE:
            written = now
        elif event >= FLUSH:
            disk[b] = log[b]
        elif event >= ADVANCE:
            keeps_place = doing[b] == FENCED and isr[b]
            doing[b] = IN_SYNC if keeps_place or doing[b] == CATCHING_UP else doing[b] + 1
            isr[b] = isr[b] or doing[b] == IN_SYNC
        elif event >= FAULT:
            faults -= 1
            disk[b] = 0.0 if takes_disk else disk[b]
            log[b] = min(log[b], disk[b])
            stop(b, doing, isr)
        else:
            shutdowns -= 1
            disk[b] = log[b]
            stop(b, doing, isr)
        if leader >= 0 and doing[leader] == DOWN:
            leader = -1
        if leader < 0:
            leader = elected(doing, isr)
            if leader >= 0:
                any_lost = any_lost or log[leader] < acknowledged
                watched_lost = watched_lost or log[leader] < written <= acknowledged
        if leader >= 0:
            for other in range(BROKERS):
                if doing[other] == CATCHING_UP:
                    log[other] = log[leader]
    return watched_lost, any_lost


@njit
def counts(runs, seed, min_isr, takes_disk):
    """How many runs lose the watched record, and how many any."""
    np.random.seed(seed)
    watched, of_any = 0, 0
    for _ in range(runs):
        watched_lost, any_lost = run(min_isr, takes_disk)
        watched += watched_lost
        of_any += any_lost
    return watched, of_any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print("| fault in an upgrade | `min.insync.replicas` | the watched record | any record | times |")
    print("|---|---|---|---|---|")
    for takes_disk in (False, True):
        for min_isr in (1, 2):
            watched, of_any = counts(given.runs, given.seed, min_isr, takes_disk)
            told = (f"{lost / given.runs:.3g} ± {1.96 * lost**0.5 / given.runs:.1g}" for lost in (watched, of_any))
            what = "a broker loses its disk" if takes_disk else "a zone loses power"
            print(f"| {what} | {min_isr} | {' | '.join(told)} | {of_any / watched:.1f} |", flush=True)


if __name__ == "__main__":
    main()
