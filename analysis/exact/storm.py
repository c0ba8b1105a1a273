"""The same answers from the probabilistic model checker Storm, which shares no code with `analysis.exact.answers`.

Storm reads the chain as a UMB file. Where runs never come back to a state it goes through the states once; else it
takes the LU decomposition of the whole matrix, slower but as precise. Its numbers by time are good to 1e-6 at least.
"""

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quorisk.analysis.exact.answers import ENDS, ChainAnswers
from quorisk.analysis.exact.umb import Time, write_umb
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import LOST, OUTCOMES, UNFINISHED, Model
from quorisk.kernels.states.chain import Chain

if TYPE_CHECKING:
    import stormpy

END = "(" + " | ".join(f'"{OUTCOMES[i]}"' for i in ENDS) + ")"


def storm_answers(
    chain: Chain, acyclic: bool, model: Model, steps: Sequence[int], times: Sequence[float]
) -> ChainAnswers:
    """Storm's answers. Raises ConfigError if stormpy is not installed."""
    ask = _Solver(chain, acyclic, model, "discrete")
    by_time = _Solver(chain, acyclic, model, "stochastic") if times else ask
    lost = OUTCOMES[LOST]
    return ChainAnswers(
        data_loss=ask(f'P=? [F "{lost}"]'),
        invariants={invariant.name: ask(f'P=? [F "{invariant.name}"]') for invariant in model.invariants},
        outcomes={OUTCOMES[i]: ask(f'P=? [F "{OUTCOMES[i]}"]') for i in ENDS}
        | {OUTCOMES[UNFINISHED]: ask(f"P=? [G !{END}]")},
        expected_steps=ask(f'R{{"steps"}}=? [F {END}]'),
        expected_time=ask(f'R{{"time"}}=? [F {END}]'),
        p_by_steps={n: ask(f'P=? [F<={n} "{lost}"]') for n in steps},
        p_by_time={t: by_time(f'P=? [F<={t!r} "{lost}"]') for t in times},
    )


def chain_in_storm(chain: Chain, model: Model, time: Time) -> "stormpy.models.SparseModel":
    """Returns the chain as Storm holds it. Raises ConfigError."""
    storm = _stormpy()
    options = storm.io.UmbImportOptions()
    options.build_state_valuations = False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.umb"
        write_umb(chain, model, path, time)
        return storm.build_model_from_umb(path, options=options)


def largest_difference(ours: ChainAnswers, storms: ChainAnswers) -> float:
    """Returns the largest relative difference between two answers to the same question."""
    pairs = zip(_numbers(ours), _numbers(storms), strict=True)
    return max(abs(a - b) / max(abs(a), abs(b)) for a, b in pairs if a != b) if ours != storms else 0.0


def _numbers(answers: ChainAnswers) -> list[float]:
    return [x for part in answers for x in (part.values() if isinstance(part, dict) else [part])]


class _Solver:
    """Storm with a chain: called with a property, it gives its value."""

    def __init__(self, chain: Chain, acyclic: bool, model: Model, time: Time) -> None:
        self.storm = _stormpy()
        self.model = chain_in_storm(chain, model, time)
        self.starts = np.flatnonzero(chain.initial)
        self.weights = chain.initial[self.starts]
        self.environment = self.storm.environments.default(self.model)
        kinds = self.storm.environments.EquationSolverType
        self.environment.solver().set_linear_equation_solver_type(kinds.TOPOLOGICAL if acyclic else kinds.EIGEN)

    def __call__(self, text: str) -> float:
        (formula,) = self.storm.parse_properties(text)
        found = self.storm.model_checking(self.model, formula, environment=self.environment)
        return math.fsum(w * found.get_value(int(s)) for s, w in zip(self.starts, self.weights, strict=True))


def _stormpy() -> Any:
    """The module stormpy, with its log, which it writes to stdout, turned off. Raises ConfigError."""
    try:
        import stormpy
        import stormpy.developer
        import stormpy.environments
        import stormpy.io
    except ImportError:
        raise ConfigError("Storm is not installed; pip install 'quorisk[exact]'") from None
    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    return stormpy
