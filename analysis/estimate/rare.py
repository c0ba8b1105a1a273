"""Losses too rare to be counted: the likeliest paths solved exactly, the others sampled (docs/rare-events.md).

With L, the probability of loss inside a head (`kernels.states.head`), F, that of leaving it, and q, that of loss from
where it is left, P = L + F q. Runs from the head's exits are ordinary runs, each of them lost with probability q, so an
interval for q makes one for P: [L + F q_low, L + F q_high]. Where the model knows how many faults a loss takes, what is
lost beyond the head is at most B (`kernels.states.margins`), B is in the place of F, and runs are hurried, so that they
are lost with probability q all the same (`kernels.engines.hurried`). Where B is small beside L nothing is sampled.
"""

import hashlib
import math
from collections.abc import Callable
from typing import NamedTuple

from quorisk.analysis.estimate.stopping import estimator_of_run, rule_of
from quorisk.analysis.experiment.config import RunSettings
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics.estimator import BOUNDS, Estimator
from quorisk.kernels import declared
from quorisk.kernels.engines.points import Point
from quorisk.kernels.engines.starts import FLOW_UNIT
from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import Model
from quorisk.kernels.states.exits import Exits
from quorisk.kernels.states.head import NEVER, STOPPED_BY_SIZE, Head, SolvedHead

MAX_UNSAMPLED = 0.02
"""Largest F/L or B/L at which nothing is sampled."""
PRECISION = 4e-10
"""Bound of the relative errors of L, F and the flows of exits, all together."""
FEWEST_TRANSITIONS, MOST_TRANSITIONS = 1 << 17, 1 << 27
PATIENT_TRANSITIONS, PATIENCE = 1 << 22, 8
"""Limits to which a head goes on where only a bound would come out: a number of transitions, which take some ten
seconds, and a multiple of the number that it should have. The smaller one counts."""
MOST_RUNS, RUNS_A_TRANSITION = 1 << 22, 4
"""Most runs from exits if an interval of some width is enough, and most by transition of the head: up to that they take
less time than the head that needs fewer."""
SOLVED_A_S = 200_000
"""Fewest transitions that a core solves in a second, and finds the exits of."""
LITTLE_KNOWN = 0.5
"""F above which `auto` counts if there is no loss in the head: such a head knows no more."""
NONE_LOST = 3.7
"""Multiple of 1/n that is the upper end of P(loss), at 95 %, if none of n runs is lost."""
STEPS_A_TRANSITION = 32
"""Steps of runs that take as long as one transition of a head; a head may take as long as all of the runs."""
SURE = 1.0 - 1e-10
"""Confidence of checks that no correct model is expected to fail."""
SMALL = 1 << 14
"""Transitions up to which a head grows on at next to no cost, though it is certain enough."""
GROWTH = 1.5
"""Factor by which a head grows before it is solved again."""
Solving = Callable[[int, int | None], None]
"""Function that is called with a head's transitions so far and the number that it may have, and with the number of its
states and None before it is solved."""
ASSUMPTION = "The head counts runs of any length; runs from its exits end after run.max_steps."
CUT_OFF = "{cut_off:,} of these {runs:,} runs did so; each adds {each:.2g} to the upper end, which counts it as lost."
EXACT = "exact"
CERTIFIED = "exact head, tail bounded"
SAMPLED = "exact head, sampled tail"
COUNTED = "counted, within the bounds of an exact head"


class HeadPart(NamedTuple):
    """The solved part of an answer: probabilities known without sampling, and the size of their head."""

    cost: int
    """The highest cost of a path in the head, in decades."""
    states: int
    transitions: int
    lost: float
    """L, the probability that a run loses data inside the head."""
    leaves: float
    """F, the probability that a run leaves the head."""
    exits: int
    """The states where runs leave the head, from which the sampled runs start; 0 if none were needed."""
    beyond: float
    """B, the probability that a run loses data after leaving the head, at most: F, or less where the model knows how
    many faults a loss takes. The runs from the exits are lost with probability q, and P(loss) = L + B q."""
    left_out: float
    """The part of B that is behind exits for which there was no room: upper bounds count all of it as loss."""
    runs: int
    """The runs that were made from the exits."""
    losses: int
    """The number of these runs that were lost."""
    stopped_by: str
    """The limit that ended the exact solution: `memory`, `size` (more would have taken too long), or empty if none did.
    """
    needed_runs: int | None
    """About how many runs from the exits an interval of ±10 % takes; None if that many were made, or none was lost."""


class LossPart(NamedTuple):
    """P = inside + leaves x (the share of the runs from the exits that are lost)."""

    inside: float
    leaves: float
    """B, the bound of losses beyond the head; F for an invariant that no run from the exits samples."""
    left_out: float
    """The part of `leaves` that no run starts with."""
    num_exits: int
    is_sampled: bool
    """Whether runs from the exits sample it."""

    def p(self, losses: int, runs: int) -> float:
        """Returns the estimate; the middle of the certain bounds if nothing was sampled."""
        return self.inside + self.leaves * (losses / runs if self.is_sampled else 0.5)

    def interval(self, estimator: Estimator, losses: int, runs: int, hidden: int) -> tuple[float, float]:
        """Returns the interval that follows from that of q, widened by all that L, F and the exits may be off."""
        q_low, q_high = estimator.interval(losses, runs, hidden) if self.is_sampled else (0.0, 1.0)
        sampled = max(0.0, self.leaves - self.left_out)
        low = self.inside + sampled * max(0.0, q_low - 2.0 * self.num_exits / FLOW_UNIT)
        high = self.inside + sampled * min(1.0, q_high + 2.0 * self.num_exits / FLOW_UNIT) + self.left_out
        return low * (1.0 - PRECISION), min(1.0, high * (1.0 + PRECISION))

    def counted(self, estimator: Estimator, losses: int, runs: int, hidden: int) -> tuple[float, float, float]:
        """Returns estimate and interval by runs from the beginning, within what is possible if nothing was sampled.

        What is possible is certain, so the interval holds as often as that of the count does.
        """
        least, most = self.interval(estimator, 0, 0, 0)  # of what is not sampled: certain
        if not self.leaves:
            return self.inside, least, most
        low, high = estimator.interval(losses, runs, hidden)
        low, high = max(low, least), min(high, most)
        if low > high:  # the count's interval is one of the few that miss
            low, high = least, most
        return min(max(losses / runs, low), high), low, high

    def agrees(self, losses: int, runs: int, hidden: int, tail: tuple[int, int, int] = (0, 0, 0)) -> bool:
        """Whether the head allows `losses` of `runs` runs from the beginning to be lost, and `hidden` more.

        `tail` has these three numbers of the runs from the exits. False is wrong once in ten thousand million times.
        """
        sure = Estimator(SURE, 1, False)
        low, high = sure.interval(losses, runs, hidden)
        known = self if tail[1] else self._replace(is_sampled=False)
        least, most = known.interval(sure, *tail)
        return low <= most and least <= high

    def hold_against(self, protocol: str, name: str, pilot: tuple[int, int, int], tail: tuple[int, int, int]) -> None:
        """Raises ModelError where the pilot's runs contradict the head and the runs from its exits. `pilot` and `tail`
        are the numbers of runs that broke `name`, that were made, and that may hide a breach."""
        if self.agrees(*pilot, tail):
            return
        what = "lost data" if name == DATA_LOSS else f"broke {name}"
        above = min(1.0, self.inside + self.leaves)
        solved = f"{self.inside:.3g}" if self.inside == above else f"{self.inside:.3g} to {above:.3g}"
        why = f"{pilot[0]:,} of {pilot[1]:,} runs {what}, and by the solved paths the probability is {solved}"
        raise ModelError(declared.unfit(protocol, "forget, alike or widths", why))

    def num_runs(self, estimator: Estimator, runs: int, enough: float) -> int:
        """Returns how many runs from the exits make the interval as narrow as `enough` if none of them is lost.

        At least `runs`, and just these if it takes more than MOST_RUNS. Where only a bound would come out, the width of
        a number is enough, and more than `patience` are too many.
        """
        more, most = runs, MOST_RUNS
        if not enough and not estimator.is_sequential:
            low, high = self.interval(estimator, 0, runs, 0)
            most, enough = patience(runs), (BOUNDS - 1.0) * low if Estimator.far_apart(low, high) else 0.0
        while enough and more <= most:
            low, high = self.interval(estimator, 0, more, 0)
            if high - low <= enough:
                return more
            more = math.ceil(1.01 * more * (high - low) / enough)  # its width is nearly one by the runs
        return runs

    @property
    def slack(self) -> float:
        """Bound of the error of F (q_v - q_b) as the difference of two configurations that share L, F and exits."""
        return self.left_out + self.leaves * (4.0 * self.num_exits / FLOW_UNIT + PRECISION)

    def is_precise(self, run: RunSettings, losses: int, runs: int, hidden: int, num_points: int = 1) -> bool:
        """Whether the interval is as narrow as an experiment asks for; never if it does not ask."""
        low, high = self.interval(estimator_of_run(run, num_points), losses, runs, hidden)
        half_width = (high - low) / 2.0
        rule = rule_of(run)
        return rule is not None and half_width <= min(rule.half_width, rule.relative * self.p(losses, runs))


def parts_by_invariant(model: Model, solved: SolvedHead, exits: Exits | None) -> dict[str, LossPart]:
    """Returns the part of each invariant, and of DATA_LOSS.

    If the breach of an invariant does not end a run, nothing after the head is sampled for it: an exit does not say
    whether it was broken before. Runs from the beginning do; see `Part.counted`.
    """
    found = {DATA_LOSS: _part(solved.lost, solved.beyond, exits)}
    for invariant in model.invariants:
        inside, leaves = solved.broken[invariant.name]
        given = (solved.beyond, exits) if invariant.data_loss else (leaves, None)
        found[invariant.name] = _part(inside, *given)
    return found


def _part(inside: float, leaves: float, exits: Exits | None) -> LossPart:
    if exits is None:
        return LossPart(inside, leaves, 0.0, 0, False)
    return LossPart(inside, leaves, exits.left_out, len(exits.flows), True)


def applies(point: Point, run: RunSettings) -> bool:
    """Whether a head can answer for a point: not with a fixed time, nor for steps after a lifetime."""
    return point.horizon == math.inf and not (run.at_any_time and point.lifetime < math.inf)


def solve_head(
    model: Model,
    point: Point,
    memory_bytes: int,
    most: int,
    progress: Solving | None = None,
    certain: float = MAX_UNSAMPLED,
    enough: float = 0.0,
    is_patient: bool = True,
    by_margin: bool = False,
) -> tuple[Head, SolvedHead] | None:
    """Returns the head that memory and `most` transitions allow, or the first whose B is at most `certain` of its L, or
    at most `enough`. B is F if not `by_margin`; see `Head`. `progress` is called now and then; see `Solving`.

    Where that would leave only a bound, and one above `enough`, it may have more if `is_patient`, up to
    `patience(most)`. None if not even the likeliest paths can be solved: runs move to and fro among too many states.
    """
    head, allowed, limits = Head(model, point, memory_bytes, by_margin), most, list[int]()
    best: SolvedHead | None = None
    growing = (lambda _, transitions: progress(transitions, max(most, transitions))) if progress else None
    while head.grow(allowed, growing) or head.is_full:
        limits.append(allowed)
        if best and head.transitions < GROWTH * best.transitions and head.next_cost < NEVER and not head.is_full:
            continue
        if progress:
            progress(head.num_states, None)
        solved = head.solve(wholly=False)
        if solved is None:
            break
        best = solved
        runs = max(most, min(MOST_RUNS, RUNS_A_TRANSITION * head.transitions)) if enough else most
        may_go_on = is_patient and solved.stopped_by == STOPPED_BY_SIZE and head.transitions < patience(most)
        if may_go_on and only_bounds(solved, most) and _none_lost(solved, runs) > enough:
            allowed = 2 * head.transitions
            continue
        is_small = head.transitions < SMALL and solved.beyond > PRECISION * solved.lost
        if head.is_full or (solved.beyond <= max(certain * solved.lost, enough) and not is_small):
            return _wholly(head)
    if best is None:
        return None
    if best.complete:
        return _wholly(head)
    head = Head(model, point, memory_bytes, by_margin)  # grown beyond what can be solved: once more, as far as it can
    for limit in limits:
        if head.transitions == best.transitions:
            break
        head.grow(limit, growing)
    if progress:
        progress(head.num_states, None)
    return _wholly(head)


def _wholly(head: Head) -> tuple[Head, SolvedHead] | None:
    """A head that can be solved, with the certain bounds for all invariants."""
    return (head, solved) if (solved := head.solve()) else None


def patience(most: int) -> int:
    """Returns the size up to which a head that should have `most` transitions may go on for more than a bound, and so
    may runs from its exits that should be `most`."""
    return max(most, min(PATIENT_TRANSITIONS, PATIENCE * most))


def only_bounds(solved: SolvedHead, most: int) -> bool:
    """Whether L and B leave only a bound, unless runs from the exits are lost: there are about as many of these as
    `most`, the transitions that take as long, or more (`patience`). Where it is LITTLE_KNOWN, going on is no use."""
    high = solved.lost + _none_lost(solved, patience(most))
    return solved.leaves <= LITTLE_KNOWN and Estimator.far_apart(solved.lost, high)


def upper(solved: SolvedHead, exits: Exits, most: int) -> float:
    """Returns the upper end that comes out if none of the runs from the exits is lost."""
    return solved.lost + exits.left_out + _none_lost(solved, patience(most))


def _none_lost(solved: SolvedHead, runs: int) -> float:
    """Upper end of P(loss) behind the exits if none of `runs` runs from there is lost."""
    return solved.beyond * min(1.0, NONE_LOST / runs)


def affordable(core_s: float) -> int:
    """Returns the `most` transitions of a head that a core solves, with all its patience, within `core_s` seconds."""
    transitions = SOLVED_A_S * core_s
    most = transitions if transitions >= PATIENT_TRANSITIONS else transitions / PATIENCE
    return max(SMALL, min(MOST_TRANSITIONS, 1 << int(math.log2(max(1.0, most)))))


def named(leaves: float, is_sampled: bool, estimator: Estimator) -> str:
    """Returns the name, in results, of the method by which any data loss was found."""
    if not is_sampled:
        return CERTIFIED if leaves else EXACT
    return f"{SAMPLED}: {estimator.method}"


def digest(solved: SolvedHead, exits: Exits | None) -> str:
    """Returns the SHA-256, in hex, of all that is certain about a head and of its exits: it identifies the head."""
    found = hashlib.sha256(repr((solved.cost, solved.states, solved.transitions, solved.lost, solved.leaves)).encode())
    found.update(repr(solved.broken).encode())
    if exits:
        for each in (exits.rows, *exits.layout, exits.flows):
            found.update(each.tobytes())
        found.update(repr((exits.places, exits.p)).encode())
    return found.hexdigest()


def head_part(solved: SolvedHead, exits: Exits | None, losses: int, runs: int, confidence: float) -> HeadPart:
    """Returns the part of results on a head from whose exits `losses` of `runs` runs were lost."""
    return HeadPart(
        cost=solved.cost,
        states=solved.states,
        transitions=solved.transitions,
        lost=solved.lost,
        leaves=solved.leaves,
        beyond=solved.beyond,
        exits=len(exits.flows) if exits else 0,
        left_out=exits.left_out if exits else 0.0,
        runs=runs,
        losses=losses,
        stopped_by=solved.stopped_by,
        needed_runs=_needed_runs(solved, losses, runs, confidence) if losses else None,
    )


def _needed_runs(solved: SolvedHead, losses: int, runs: int, confidence: float) -> int | None:
    """Runs for 10 % either side: q has variance q (1 - q) / n, so the half-width z B sqrt(q (1 - q) / n) is P / 10."""
    from scipy.special import ndtri

    q = losses / runs
    p = solved.lost + solved.beyond * q
    z = float(ndtri((1.0 + confidence) / 2.0))
    needed = math.ceil((10.0 * z * solved.beyond / p) ** 2 * q * (1.0 - q))
    return needed if needed > runs else None
