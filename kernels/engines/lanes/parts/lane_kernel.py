"""Common parts of kernels of a run in each lane: new runs, random numbers, the end of a run, and its row.

A lane whose run has ended gets the next one, so that none waits for the longest run.
"""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

from llvmlite import ir

from quorisk.kernels.engines.lanes.parts.choice import Choice
from quorisk.kernels.engines.lanes.parts.draws import draw, draw_beside, draw_choice, emit_if, loss_at
from quorisk.kernels.engines.lanes.parts.rows import scratch_words
from quorisk.kernels.engines.lanes.plan import NAME, REDO, Lanes, Limits, counted_steps, doom, lane, packed, row_words
from quorisk.kernels.engines.step import RUNNING, Run, ending, lasted, noted
from quorisk.kernels.model import Model, data_loss_mask, exposures, fault_kinds
from quorisk.kernels.ops import popcount, where
from quorisk.kernels.tracing import demand
from quorisk.kernels.tracing.emit import Emitter
from quorisk.kernels.tracing.expressions import is_constant
from quorisk.kernels.tracing.machine import (
    DOUBLE,
    I32,
    I64,
    POINTER,
    Value,
    any_lane,
    constant,
    intrinsic,
    lane_bits,
    lanes_of,
    resized,
    splat,
)
from quorisk.kernels.tracing.trace import TracedModel


class LaneKernel:
    """A kernel of `lanes` runs at a time, each in lanes of at least `narrowest` bits; see `plan.NAME`.

    `now` has the values of the runs before a step, by name, and `next` those after it: ("state", i) is a leaf of the
    state, ("group", i) a mask of enabled instances, ("first", i) the first step at which an invariant broke,
    ("exposed", i) how long an exposure lasted.
    """

    def __init__(
        self,
        model: Model,
        traced: TracedModel,
        limits: Limits,
        lanes: int,
        narrowest: int,
        layout: Lanes,
        step_bits: int,
        listed: bool = False,
    ) -> None:
        """Steps are counted in `step_bits` bits if hardly any run takes more. If the kernel is `listed`, its argument
        `first_run` is the address of a list of its runs' numbers."""
        self.model, self.traced, self.limits, self.lanes, self.narrowest = model, traced, limits, lanes, narrowest
        self.listed = listed
        self.leaves, self.watched, self.exposed = layout.leaves, layout.watched, layout.exposed
        self.groups, self.fields, self.most_sent = layout.groups, layout.fields, layout.most_sent
        self.mask_bits, self.share_bits = layout.mask_bits, layout.share_bits
        kinds = max(len(model.invariants), len(fault_kinds(model)), self.most_sent)
        self.most_steps = counted_steps(traced, limits, step_bits, self.most_sent)
        self.number_bits = lane(max(self.most_steps.bit_length(), kinds) + 1, narrowest)
        self.message_bits = lane((self.most_steps * self.most_sent).bit_length() + 1, narrowest)
        self.widths = {i: demand.width(traced.state[i], narrowest) for i in self.leaves}
        self.module = ir.Module("lanes")
        kind = ir.FunctionType(ir.VoidType(), [I64, POINTER, I64, I64, POINTER, POINTER])
        self.function = ir.Function(self.module, kind, NAME)
        self.seed, self.losses, self.first_run, self.num_runs, self.scratch, self.rows = self.function.args
        for pointer in (self.losses, self.scratch, self.rows):
            pointer.add_attribute("noalias")
        self.row_words = row_words(self.watched, self.exposed)
        self.scratch_words = scratch_words(self.row_words, lanes)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.loss = loss_at(self.builder, self.losses, 0)
        self.now: dict[Any, Any] = {}
        self.next: dict[Any, Any] = {}

    def _runs_after(self, ended: Any, following: Any) -> tuple[Any, Any]:
        """All lanes' runs, where those that ended got the ones from `following` on, and how many these are."""
        builder, word = self.builder, max(self.lanes, 32)
        bits = resized(builder, lane_bits(builder, ended), word)
        before = ir.Constant(self._kind(word), [(1 << lane) - 1 for lane in range(self.lanes)])
        nth = popcount(Value(builder, builder.and_(splat(builder, bits, self.lanes), before))).value
        run = builder.add(self._splat32(following), self._sized(nth, 32))
        return builder.select(ended, run, self.now["run"]), resized(builder, popcount(Value(builder, bits)).value, 64)

    def _is_asked_for(self, run: Any) -> Any:
        return self.builder.icmp_unsigned("<", run, self._splat32(self.num_runs))

    def _chosen(self, run: Any, among: Any = None) -> Any:
        """The number of the runs' initial state, where they are new."""
        if self.traced.num_choices == 1:
            return constant(self._kind(64), 0)
        seed, absolute, num = splat(self.builder, self.seed, self.lanes), self._absolute(run), self.traced.num_choices
        choose = partial(draw_choice, self.builder, seed, absolute, num)
        if among is None:
            return choose()
        return emit_if(self.builder, any_lane(self.builder, among), "choose", constant(self._kind(64), 0), choose)

    def _kind(self, width: int) -> Any:
        return lanes_of(ir.IntType(width), self.lanes)

    def _splat32(self, value: Any) -> Any:
        return splat(self.builder, self.builder.trunc(value, I32), self.lanes)

    def _sized(self, value: Any, width: int) -> Any:
        return resized(self.builder, value, width)

    def _absolute(self, run: Any) -> Any:
        """The runs' own numbers; arbitrary ones for runs beyond the last."""
        builder, first, place = self.builder, splat(self.builder, self.first_run, self.lanes), self._sized(run, 64)
        if not self.listed:
            return builder.add(first, place)
        at = builder.add(first, builder.shl(place, constant(place.type, 3)))
        there = builder.inttoptr(at, lanes_of(POINTER, self.lanes))
        given = [there, constant(I32, 8), self._is_asked_for(run), constant(place.type, 0)]
        return intrinsic(builder, "llvm.masked.gather", place.type, given, place.type, f"v{self.lanes}p0")

    def _emitter(self, leaf: Any, outputs: Sequence[Any]) -> Emitter:
        return Emitter(self.builder, self.lanes, self.narrowest, leaf, outputs, False)

    def _masks(self, masks: Sequence[Any]) -> list[Any]:
        everywhere = range(len(self.traced.words))
        return [packed(masks, self.fields, group, everywhere) for group in range(len(self.groups))]

    def _fresh(self, choice: Any) -> dict[Any, Any]:
        """Runs before their first step: `choice` are the numbers of their initial states."""
        first = self.traced.at_first
        masks = self._masks(first.masks)
        doomed = doom(first)
        outputs = [*self.traced.initial, *masks, doomed]
        emitter = self._emitter(lambda name, width: self._sized(choice, width), outputs)
        zero = self._number(0)
        values: dict[Any, Any] = {
            ("state", i): emitter.get(self.traced.initial[i], self.widths[i]) for i in self.leaves
        }
        values |= {("group", i): emitter.get(mask, self.mask_bits) for i, mask in enumerate(masks)}
        values |= {"step": zero, "messages": constant(self._kind(self.message_bits), 0), "met": zero}
        if not is_constant(doomed, 0):
            values["doomed"] = emitter.flag(doomed)
        if self.limits.timed:
            values["time"] = constant(lanes_of(DOUBLE, self.lanes), 0.0)
        if self.watched:
            values["broken"] = zero
            values |= {("first", i): zero for i in self.watched}
        if self.exposed:
            no_time = constant(lanes_of(DOUBLE, self.lanes), 0.0)
            values |= {"exposing": zero} | {("exposed", i): no_time for i in self.exposed}
        return values

    def _draw(self) -> None:
        """The random numbers of the step after `now`, and the instance that they choose."""
        builder, now = self.builder, self.now
        self.step = builder.add(now["step"], self._number(1))
        seed, run = splat(builder, self.seed, self.lanes), self._absolute(now["run"])
        step = self._sized(self.step, 64)
        loss = splat(builder, self.loss, self.lanes) if self.limits.losses[0] else None
        self.source = run, step
        self.draws = draw(builder, seed, run, step, loss, self.most_sent, self.model.max_sends)
        masks = [now["group", i] for i in range(len(self.groups))]
        weights = self.limits.lifetime_weight, self.share_bits
        self.choice = Choice(builder, masks, self.groups, self.fields, *weights, now["live"], self.draws.choose)
        self.rejected = self.choice.is_rejected(self.traced.words, self.limits, seed, run, step)

    def _beside(self, name: Any, run: Any, step: Any) -> Any:
        """Emits the draw that `asks_beside` names, in 64 bits; `run` has the runs' own numbers, `step` their steps'."""
        seed = splat(self.builder, self.seed, self.lanes)
        return draw_beside(self.builder, name, seed, run, step, self.losses, self.model.max_sends)

    def _is_lost(self, fates: Any, sent: Any) -> Any:
        """1 if any of `sent` messages is lost, else 0; `fates` are those of messages."""
        builder, one = self.builder, self._number(1)
        among = builder.and_(self._sized(fates, self.number_bits), builder.sub(builder.shl(one, sent), one))
        return builder.zext(builder.icmp_unsigned("!=", among, self._number(0)), one.type)

    def _losses(self) -> Any:
        """The fates of messages, in 64 bits."""
        return constant(self._kind(64), 0) if self.draws.fates is None else self.draws.fates

    def _ends(self, outcome: Any, here: Any, redo: Any) -> tuple[dict[Any, Any], Any]:
        """The rows of runs that end with this step, by name, and which do.

        `outcome` is that of runs of which nothing is enabled in `next`, `here` the mask of invariants broken there, and
        `redo` says which runs the generic engine is to repeat.
        """
        next_, value = self.next, partial(Value, self.builder)
        run, is_lost = noted(self.model, self._run(self.now | next_), value(here))
        kept: dict[Any, Any] = {("first", i): first for i, first in enumerate(run.first_steps)}
        kept |= {("exposed", i): each for i, each in zip(exposures(self.model), run.exposed, strict=True)}
        kept |= {"broken": run.broken_mask, "exposing": run.exposing}
        next_ |= {name: kept[name].value for name in kept if name in self.now}
        unexpected = value(here) & ~(sum(1 << i for i in self.watched) | data_loss_mask(self.model))
        is_open, late = value(redo) | (unexpected != 0), value(next_["step"]) >= self.most_steps
        if self.most_steps < self.limits.max_steps:
            is_open = is_open | late
        dead = value(reduce(self.builder.or_, (next_["group", i] for i in range(len(self.groups))))) == 0
        ends = ending(value(self._number(RUNNING)), late, dead, value(outcome), is_lost)
        ends = where(is_open, REDO, ends)
        names = "met", "step", "messages", "time", "exposing", *kept
        row = {name: next_[name] for name in names if name in next_}
        return row | {"broken": run.broken_mask.value, "outcome": ends.value}, (ends != RUNNING).value

    def _run(self, values: dict[Any, Any]) -> Run:
        """The values of runs that `step.noted` and `step.lasted` use; None for those that are not kept."""
        value = partial(Value, self.builder)

        def get(name: Any) -> Any:
            return value(values[name]) if name in values else None

        masks = [value(values.get(name, self._number(0))) for name in ("broken", "exposing")]
        firsts = tuple(get(("first", i)) for i in range(len(self.model.invariants)))
        exposed = tuple(get(("exposed", i)) for i in exposures(self.model))
        steps, time = get("step"), get("time")
        return Run(None, None, None, None, masks[0], None, masks[1], firsts, steps, None, None, time, exposed)

    def _number(self, value: int) -> Any:
        return constant(self._kind(self.number_bits), value)

    def _later(self) -> Any:
        """The time after the wait for the step."""
        double = lanes_of(DOUBLE, self.lanes)
        wait, total = (self.builder.sitofp(value, double) for value in (self.draws.wait, self.choice.total))
        return self.builder.fadd(self.now["time"], self.builder.fdiv(wait, total))

    def _columns(self, row: dict[Any, Any]) -> list[Any]:
        columns = [row[name] for name in ("outcome", "broken", "met", "step", "messages")]
        columns.append(row.get("time", self._number(0)))
        exposed = [each.value for each in lasted(self.model, self._run(row)) if each is not None]
        return columns + [row["first", i] for i in self.watched] + exposed
