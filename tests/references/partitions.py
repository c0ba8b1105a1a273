"""Partitions on brokers that share zones, drawn literally: which partitions one zone's outage loses while brokers are
restarted for an upgrade, and in how many outages it loses any."""

from typing import NamedTuple

import numpy as np


class Fleet(NamedTuple):
    """Where partitions are, and how they fail."""

    partitions: int = 1000
    brokers: int = 30
    zones: int = 3
    replicas: int = 2
    p_restarting: float = 0.02
    """That a broker is being restarted as the zone fails: its copies are behind, and do not count."""


def placed(fleet: Fleet, rng: np.random.Generator) -> np.ndarray:
    """Returns [partition, replica]: the brokers of each partition, in zones of their own. Broker b is in zone b mod
    zones."""
    zones = rng.permuted(np.tile(np.arange(fleet.zones), (fleet.partitions, 1)), axis=1)[:, : fleet.replicas]
    return zones + fleet.zones * rng.integers(0, fleet.brokers // fleet.zones, zones.shape)


def lost(fleet: Fleet, brokers: np.ndarray, rng: np.random.Generator) -> int:
    """Returns how many partitions an outage of one zone loses: those whose brokers outside it are all restarting."""
    restarting = rng.random(fleet.brokers) < fleet.p_restarting
    zone = rng.integers(fleet.zones)
    in_zone = brokers % fleet.zones == zone
    return int((in_zone.any(axis=1) & (in_zone | restarting[brokers]).all(axis=1)).sum())


def outages(fleet: Fleet, num: int, seed: int) -> np.ndarray:
    """Returns the partitions that each of so many outages loses."""
    rng = np.random.default_rng(seed)
    brokers = placed(fleet, rng)
    return np.array([lost(fleet, brokers, rng) for _ in range(num)])
