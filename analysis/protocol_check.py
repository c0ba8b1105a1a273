"""Checks of a protocol against its contract: `quorisk check-protocol`, for packages that no test here knows."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from quorisk.analysis.estimate.rare import SURE
from quorisk.analysis.exact import answers
from quorisk.analysis.experiment.config import Experiment, build_experiment
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.kernels import declared
from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.engines.tally import named_tally
from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import Model, with_defaults
from quorisk.kernels.protocols import registry
from quorisk.kernels.protocols.cases import Cases
from quorisk.kernels.states import absorption, lumped
from quorisk.kernels.states.chain import ChainError
from quorisk.kernels.states.chain import build_chain as chain_of
from quorisk.kernels.states.head import Head
from quorisk.say.numbers import counted

WALKS, STEPS = 40, 4000
"""Most walks, and most steps in all, of each configuration of `cases.walks`."""
REPLAYED, COUNTED = 50, 20_000
"""Numbers of runs that are repeated in plain Python, and that are compared with exact answers."""
LONGEST = 1 << 12
"""Steps after which such a run is cut off: runs that never end would take all the time, and tell no more."""
MEMORY = 1 << 28
_LIMITS = ("rates", "message_loss", "horizon", "max_steps")
"""Keys that `cases.variants` may set besides parameters and the model's other probabilities."""


class Checked(NamedTuple):
    """A promise that holds."""

    name: str
    found: str
    """Summary of what was checked."""


def check_protocol(name: str) -> Iterator[Checked]:
    """Yields each promise that a protocol keeps. Raises ModelError or ConfigError at the first that it does not."""
    model, cases = registry.load(name), registry.cases(name)
    declared.check_model(model)
    yield Checked("declarations", f"{counted(len(model.actions), 'action')}, no contradiction")
    yield Checked("sentences", _sentences(model))
    yield Checked("cases", _cases(model, cases))
    yield Checked("steps", _steps(model, cases))
    points = [each.points[0].point for each in _experiments(model, cases)]
    yield Checked("compiled code", _replayed(model, points))
    yield Checked("exact answers", _exact(model, points))
    yield Checked("forget and alike", _lumped(model, points))
    yield Checked("margin", _margin(model, points))


def _wrong(model: Model, why: str) -> ModelError:
    return ModelError(f"protocol = {model.name!r}: {why}")


def _sentences(model: Model) -> str:
    for action in model.actions:
        if not (action.counts[:1].isupper() and action.counts.endswith(".")):
            raise _wrong(model, f"action {action.name}: counts = {action.counts!r}: a sentence, what its rate counts")
    for limit in model.limits or ("",):
        if not limit.endswith("."):
            raise _wrong(model, f"limits: {limit!r}: sentences about what the model leaves out, one at least")
    return f"of {counted(len(model.actions), 'action')} and {counted(len(model.limits), 'limit')}"


def _cases(model: Model, cases: Cases) -> str:
    needed = {p.name for p in model.parameters if p.default_value is None and not p.follows}
    if lacking := sorted(needed - cases.small.keys()):
        raise _wrong(model, f"cases: small lacks {', '.join(lacking)}, which have no default")
    if not cases.variants or not cases.walks:
        raise _wrong(model, "cases: variants and walks have a configuration at least")
    known = {p.name for p in model.parameters} | {*_LIMITS, *(each.name for each in model.probabilities)}
    for values in (cases.small, *cases.variants, *cases.walks):
        if unknown := sorted(values.keys() - known):
            raise _wrong(model, f"cases: {unknown[0]}: no parameter, and none of {', '.join(_LIMITS)}")
        given = _values(model, cases, values)
        for condition in model.conditions:
            if not condition.holds(given):
                raise _wrong(model, f"cases: {dict(values)}: {condition.key} is not {condition.allowed}")
    return f"{counted(len(cases.variants), 'variant')} and {counted(len(cases.walks), 'configuration')} to walk"


def _values(model: Model, cases: Cases, values: Mapping[str, Any]) -> dict[str, Any]:
    names = {p.name for p in model.parameters}
    return with_defaults(model, {**cases.small, **{key: value for key, value in values.items() if key in names}})


def _steps(model: Model, cases: Cases) -> str:
    """Walks in plain Python, with every step put into words; every action has to come up."""
    teller, taken = registry.teller(model), Counter[int]()
    for values in cases.walks:
        params = model.make_params(_values(model, cases, values))
        declared.evaluated(model, "participants", params, teller.participants, params)
        for walk in islice(declared.walks(model, params, WALKS, 1, cases.rarely), STEPS):
            taken[walk.action] += 1
            name = model.actions[walk.action].name
            tell = partial(teller.tell, walk.state, params, name, walk.instance, walk.after)
            declared.evaluated(model, f"the story of {name}", walk.state, tell)
            declared.evaluated(model, "the story's variables", walk.after, teller.variables, walk.after, params)
            for invariant in model.invariants:
                if not invariant.holds(walk.after, params):
                    verdict = partial(teller.verdict, walk.after, params, invariant.name)
                    declared.evaluated(model, f"the verdict of {invariant.name}", walk.after, verdict)
    never = [action.name for i, action in enumerate(model.actions) if not taken[i] and not action.needs]
    if never:
        raise _wrong(model, f"cases: no walk comes to {', '.join(never)}; walks need larger configurations")
    return f"{counted(taken.total(), 'step')} in plain Python, each told"


def _experiments(model: Model, cases: Cases) -> Iterator[Experiment]:
    """The small configuration and its variants."""
    tables = {p.name: p.table for p in model.parameters}
    for values in ({}, *cases.variants):
        document: dict[str, Any] = {"protocol": model.name, "model": {}, "variant": {}, "faults": {}, "run": {}}
        for key, value in {**cases.small, **values}.items():
            table = {"rates": "", "horizon": "run", "max_steps": "run"}.get(key, tables.get(key, "faults"))
            document |= {table: document[table] | {key: value}} if table else {key: value}
        yield build_experiment(document, f"cases of {model.name}")


def _replayed(model: Model, points: list[Point]) -> str:
    """Runs of compiled code once more in plain Python."""
    for point in map(_cut_short, points):
        rows = numba_engine.record(model, pack(model, [point]), Job(0, 0, REPLAYED), seed=1)
        for run, row in enumerate(rows.tolist()):
            again = rerun(model, point, 1, run).record()
            if tuple(row) != again:
                raise _wrong(model, f"run {run} of {dict(point.values)}: compiled {row}, in plain Python {[*again]}")
    return f"{counted(REPLAYED * len(points), 'run')} of {counted(len(points), 'configuration')}, as in plain Python"


def _exact(model: Model, points: list[Point]) -> str:
    """Whole chains against heads of states that stand for others, and against counted runs."""
    num, sure = 0, Estimator(SURE)
    for point in _unbounded(points):
        try:
            chain = chain_of(model, point, MEMORY)
        except ChainError:
            continue
        parts = absorption.components(chain)
        if parts.largest > absorption.MAX_COMPONENT:
            continue
        truth = answers.solve_chain(chain, parts, model, (), ())
        packed = pack(model, [_cut_short(point)])
        tally = named_tally(model, numba_engine.simulate(model, packed, [Job(0, 0, COUNTED)], seed=2)[0])
        for name, p in {DATA_LOSS: truth.outcomes["lost"], **truth.invariants}.items():
            losses = {DATA_LOSS: tally.outcomes["lost"], **tally.broken}[name]
            low, high = sure.interval(losses, COUNTED, tally.outcomes["unfinished"])
            if not low <= p <= high:
                why = f"{name}: exactly {p:.6g}, and {losses:,} of {COUNTED:,} runs, of {dict(point.values)}"
                raise _wrong(model, why)
        num += 1
        _same(model, point, truth.outcomes["lost"])
    return f"of {counted(num, 'configuration')}: as counted, and as solved with `forget` and `alike`"


def _same(model: Model, point: Point, truth: float) -> None:
    head = Head(model, point, MEMORY)
    while head.grow(1 << 22):
        pass
    solved = head.solve()
    if solved and solved.complete and abs(solved.lost - truth) > 1e-9 * truth:
        why = f"P(loss) is {truth:.6g}, and {solved.lost:.6g} by states that stand for others, of {dict(point.values)}"
        raise _wrong(model, f"forget or alike: {why}")


def _lumped(model: Model, points: list[Point]) -> str:
    if model.forget is None and model.alike is None:
        return "neither is declared"
    num = sum(lumped.check_stand_ins(model, point) for point in _unbounded(points))
    return f"{counted(num, 'state')} and those that stand for them, whose steps are alike"


def _margin(model: Model, points: list[Point]) -> str:
    num = sum(declared.check_margin(model, model.make_params(point.values)) for point in points)
    return f"{counted(num, 'step')} and the faults that any loss takes" if num else "none is declared"


def _unbounded(points: list[Point]) -> list[Point]:
    """Points whose runs end by themselves."""
    return [point._replace(horizon=float("inf"), max_steps=1 << 20) for point in points]


def _cut_short(point: Point) -> Point:
    return point._replace(max_steps=min(point.max_steps, LONGEST))
