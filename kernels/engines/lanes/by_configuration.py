"""A process's cache of objects by configuration, for all calls of the engine."""

import threading
from collections.abc import Callable
from typing import Any

from quorisk.kernels.engines.points import Points, alone, key
from quorisk.kernels.model import Model


class ByConfiguration:
    """Objects made by `make(model, points)`; `points` is the configuration alone. Above `most` the oldest goes."""

    def __init__(self, make: Callable[[Model, Points], Any], most: int) -> None:
        self._make, self._most = make, most
        self._made: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def get(self, model: Model, points: Points, point: int) -> Any:
        """Returns the object of a point, made if it is not there yet."""
        configuration = model.name, *key(points, point)
        with self._lock:
            if configuration not in self._made:
                if len(self._made) >= self._most:
                    self._made.pop(next(iter(self._made)))
                self._made[configuration] = self._make(model, alone(points, point))
            return self._made[configuration]
