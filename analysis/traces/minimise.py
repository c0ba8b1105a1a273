"""Delta debugging: a run that breaks an invariant becomes one that does so in fewer steps.

Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input" (2002). Leaving out a step may take
away what later ones need; these are left out as well. The result is always a run of the model.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from quorisk.kernels import paths
from quorisk.kernels.model import Model
from quorisk.kernels.ops import bits
from quorisk.kernels.paths import Path, Step
from quorisk.say.numbers import counted

Cut = Callable[[Path], Path | None]


def minimised(
    model: Model, params: Any, path: Path, wanted: Sequence[int], tell: Callable[[str], None] | None = None
) -> Path:
    """Returns a path to a breach of one of these invariants (places in the model's) without superfluous steps.

    Nor can any of its lost messages arrive. `path` has to break one of them, and as a run does it ends at data loss.
    """

    def cut(candidate: Path, slides: bool = False) -> Path | None:
        return _until_broken(model, params, candidate, wanted, slides)

    best, before = cut(path), None
    if best is None:
        raise ValueError("the path breaks none of these invariants")
    while best != before:
        before = best
        if tell:
            tell(f"{counted(len(best.steps), 'step')}, leaving out what can be")
        best = _with_fewer_steps(partial(cut, slides=True), _with_fewer_steps(cut, best))
        for variations in (_losing_less, lambda p: _with_lower_instances(model, params, p)):
            best = _improved(cut, variations, best)
    return best


def losing_less(model: Model, params: Any, path: Path, wanted: Sequence[int]) -> Path:
    """Returns the path with no more messages lost than it takes to break one of these invariants with its last step."""

    def same_steps(candidate: Path) -> Path | None:
        try:
            last = paths.replay(model, params, candidate)[-1]
        except paths.PathError:
            return None
        return candidate if paths.broken(model, last, params) & _mask(wanted) else None

    return _improved(same_steps, _losing_less, path)


def _mask(places: Sequence[int]) -> int:
    return sum(1 << place for place in places)


def _fitting(model: Model, params: Any, state: Any, step: Step, slides: bool) -> Step | None:
    """The step if it is enabled, or if it `slides` its action's next lower instance: where a message is not sent, those
    after it in a bag move down."""
    if paths.is_enabled(model, state, params, step):
        return step
    lower = [i for a, i in paths.instances(model, state, params) if a == step.action and i < step.instance]
    return step._replace(instance=lower[-1]) if slides and lower else None


def _until_broken(model: Model, params: Any, path: Path, wanted: Sequence[int], slides: bool = False) -> Path | None:
    """The path without steps that are not enabled (see `_fitting`), up to its first state that breaks a wanted
    invariant; None if there is none, or if other data loss would end the run before."""
    data_loss = _mask([i for i, invariant in enumerate(model.invariants) if invariant.data_loss])
    state, steps = model.initial(params, path.choice), list[Step]()
    rest = iter(path.steps)
    while not (broken := paths.broken(model, state, params)) & (_mask(wanted) | data_loss):
        step = next((fit for step in rest if (fit := _fitting(model, params, state, step, slides))), None)
        if step is None:
            return None
        steps.append(step._replace(lost=step.lost & paths.sends(model, state, params, step)))
        state = paths.after(model, state, params, steps[-1])
    return Path(path.choice, tuple(steps)) if broken & _mask(wanted) else None


def _rank(path: Path) -> tuple[int, int, list[int]]:
    """The lower the better: fewer steps, fewer messages lost, lower instances. There is no endless way down."""
    lost = sum(step.lost.bit_count() for step in path.steps)
    return len(path.steps), lost, [step.instance for step in path.steps]


def _with_fewer_steps(cut: Cut, path: Path) -> Path:
    """Leaves out blocks of steps, at last single ones, as long as what remains breaks an invariant."""
    size = max(1, len(path.steps) // 2)
    while size:
        start = 0
        while start < len(path.steps):
            shorter = cut(path._replace(steps=path.steps[:start] + path.steps[start + size :]))
            if shorter is not None and _rank(shorter) < _rank(path):
                path = shorter
            else:
                start += size
        size //= 2
    return path


def _improved(cut: Cut, variations: Callable[[Path], Iterator[Path]], path: Path) -> Path:
    """The first variation that still breaks an invariant and is better, and so on from there."""
    while True:
        found = (better for varied in variations(path) if (better := cut(varied)) and _rank(better) < _rank(path))
        following = next(found, None)
        if following is None:
            return path
        path = following


def _with_step(path: Path, place: int, step: Step) -> Path:
    return path._replace(steps=(*path.steps[:place], step, *path.steps[place + 1 :]))


def _losing_less(path: Path) -> Iterator[Path]:
    """The path with one message less lost."""
    for place, step in enumerate(path.steps):
        for bit in bits(step.lost):
            yield _with_step(path, place, step._replace(lost=step.lost & ~(1 << bit)))


def _with_lower_instances(model: Model, params: Any, path: Path) -> Iterator[Path]:
    """The path with one step by a lower instance of its action: the first client creates the ledger, no other."""
    states = paths.replay(model, params, path)
    for place, (state, step) in enumerate(zip(states, path.steps, strict=False)):
        for action, instance in paths.instances(model, state, params):
            if action == step.action and instance < step.instance:
                yield _with_step(path, place, step._replace(instance=instance))
