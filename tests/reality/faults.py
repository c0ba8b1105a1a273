"""The faults of experiments: a function of a few lines each. All times are time.time().

A fault gets a cluster that is written to. It ends the load, gives back what it took, and returns the loss's instant.
"""

import signal
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.reality.load import Load
from tests.reality.machines import Machine
from tests.reality.servers.cluster import Cluster, within

Fault = Callable[..., float]


def lose_power(machines: Sequence[Machine]) -> float:
    """Machines lose power at one instant, which is returned: processes die, with all that their disks did not have."""
    for machine in machines:
        machine.signal(signal.SIGSTOP)
    instant = time.time()
    for machine in machines:
        machine.cut_power()
    for machine in machines:
        machine.kill()
        machine.remount()
    return instant


def start(machines: Sequence[Machine]) -> None:
    """Machines start."""
    for machine in machines:
        machine.start()


def power(cluster: Cluster, load: Load, rng: Random, count: int) -> float:
    """So many servers, drawn at random, lose power at one instant; all of them with whoever else there is."""
    data, others = cluster.machines[:3], cluster.machines[3:]
    victims = rng.sample(data, count) + (others if count == len(data) else [])
    instant = lose_power(victims)
    load.stop()
    start(victims)
    return instant


def power_of_one_while_others_are_away(cluster: Cluster, load: Load, rng: Random, away_s: float) -> float:
    """One follower is cut off for a while. Then the other one loses power, and starts as the first is back and the
    leader is cut off: these two are a majority. Once one of them leads, the old leader is back, too."""
    leader = cluster.led_by()
    away, victim = rng.sample([machine for machine in cluster.machines if machine is not leader], 2)
    away.plug(up=False)
    time.sleep(away_s)
    instant = lose_power([victim])
    load.stop()
    leader.plug(up=False)
    away.plug(up=True)
    victim.start()
    within(60.0, lambda: cluster.leader() in (away.index, victim.index))
    leader.plug(up=True)
    return instant


def wiped(cluster: Any, load: Load, rng: Random, leader_lives: bool, state: str = "") -> float:
    """A member is down for 3 s while the others acknowledge. Another one loses its disk, and starts under its old
    name, as `state` if the server has such a thing, while the leader lives, or once that is down and the first is up.
    In the end the leader is back."""
    leader = cluster.led_by()
    stale, victim = rng.sample([machine for machine in cluster.machines if machine is not leader], 2)
    stale.kill()
    time.sleep(3.0)
    instant = time.time()
    load.stop()
    victim.kill()
    victim.new_disk()
    if state:
        cluster.set_command(victim, state)
    if leader_lives:
        victim.start()
        time.sleep(5.0)
    leader.kill()
    stale.start()
    if not leader_lives:
        time.sleep(2.0)
        victim.start()
    within(20.0, lambda: cluster.leader() is not None)
    leader.start()
    return instant


def leader_dies(cluster: Cluster, load: Load, rng: Random) -> float:
    """The leader's process dies, and its machine goes on. It starts once another one leads."""
    leader = cluster.led_by()
    instant = time.time()
    leader.kill()
    load.stop()
    within(20.0, lambda: cluster.leader() not in (None, leader.index))
    leader.start()
    within(60.0, cluster.whole)
    return instant


def leader_is_cut_off(cluster: Cluster, load: Load, rng: Random, mean_s: float) -> float:
    """The leader hears nothing of its peers, nor they of it, for an exponential time; producers reach it."""
    leader = cluster.led_by()
    leader.plug(up=False, networks=["peers"])
    time.sleep(rng.expovariate(1.0 / mean_s))
    instant = time.time()
    load.stop()
    leader.plug(up=True, networks=["peers"])
    time.sleep(15.0)  # as long as a session, and more: it hears who leads
    within(60.0, cluster.whole)
    return instant


def leader_dies_while_followers_pause(
    cluster: Cluster, load: Load, rng: Random, pause_s: float, power: bool = False
) -> float:
    """All followers stand still for so long. Then the leader's process dies, or it loses power, and they go on. It
    starts once one of them leads, or after 30 s."""
    leader = cluster.led_by()
    followers = [machine for machine in cluster.machines[:3] if machine is not leader]
    for follower in followers:
        follower.signal(signal.SIGSTOP)
    time.sleep(pause_s)
    instant = lose_power([leader]) if power else time.time()
    leader.kill()
    load.stop()
    for follower in followers:
        follower.signal(signal.SIGCONT)
    within(30.0, lambda: cluster.leader() not in (None, leader.index))
    leader.start()
    within(60.0, cluster.whole)
    return instant


def another_client_recovers(cluster: Any, load: Load, rng: Random) -> float:
    """Another client recovers and reads the log while its writer goes on, which it does for a second after that."""
    instant = time.time()
    cluster.read_all()
    time.sleep(1.0)
    load.stop()
    return instant


def followers_restart_and_the_leader_loses_power(
    cluster: Cluster, load: Load, rng: Random, gated: bool, alone_s: float
) -> float:
    """One follower shuts down cleanly, then the other one: with a gate, once the first is back and has all. Some
    seconds later the leader, which is the last in sync without a gate, loses power. Then all that are down start."""
    leader = cluster.led_by()
    first, second = rng.sample([machine for machine in cluster.machines[:3] if machine is not leader], 2)
    first.stop()
    if gated:
        first.start()
        if not within(60.0, cluster.whole):
            raise RuntimeError("the first follower does not get back in sync")
    second.stop()
    time.sleep(alone_s)
    instant = lose_power([leader])
    load.stop()
    start([machine for machine in cluster.machines if not machine.runs()])
    within(60.0, cluster.whole)
    return instant


def disk_is_lost_while_others_are_away(cluster: Any, load: Load, rng: Random, away_s: float) -> float:
    """All servers but one are cut off for so long. Then that one loses its disk for good, and the writer dies with it,
    and with what it had not sent; the others start again, and a spare one does."""
    lost, *away = rng.sample(cluster.machines[:3], 3)
    for machine in away:
        machine.plug(up=False)
    time.sleep(away_s)
    instant = time.time()
    load.stop()
    cluster.writer_dies()
    for machine in (lost, *away):
        machine.kill()
    lost.new_disk()
    for machine in away:
        machine.plug(up=True)
    start([*away, cluster.machines[-1]])
    return instant
