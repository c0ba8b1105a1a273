"""Many runs at once, one in each lane of a SIMD register: effects are computed for all lanes, and kept where drawn.

A lane whose run has ended gets the next one, so that none waits for the longest run.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from quorisk.kernels.engines.lanes.choice import Choice
from quorisk.kernels.engines.lanes.draws import draw, draw_choice, draw_later, losses, only_if
from quorisk.kernels.engines.lanes.effects import effects
from quorisk.kernels.engines.lanes.kernel import NAME, REDO, Limits, counted_steps, doom, lane, packed, plan, row_words
from quorisk.kernels.engines.lanes.rows import aligned, scratch_words, write_rows
from quorisk.kernels.model import HORIZON, LOST, UNFINISHED, Model, fault_kinds
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
    lane_bits,
    lanes_of,
    only_bit,
    resized,
    splat,
    with_wide_registers,
)
from quorisk.kernels.tracing.trace import LOSSES, TracedModel, bit_leaf, mask_leaf, word_leaf


class VectorKernel:
    """A kernel of `lanes` runs at a time, each in lanes of at least `narrowest` bits; see `kernel.NAME`."""

    def __init__(self, model: Model, traced: TracedModel, limits: Limits, lanes: int, narrowest: int) -> None:
        self.model, self.traced, self.limits, self.lanes, self.narrowest = model, traced, limits, lanes, narrowest
        self.plan = plan(model, traced, limits, narrowest)
        self.leaves, self.watched, self.exposed = self.plan.leaves, self.plan.watched, self.plan.exposed
        self.groups, self.fields, self.most_sent = self.plan.groups, self.plan.fields, self.plan.most_sent
        self.mask_bits, self.share_bits = self.plan.mask_bits, self.plan.share_bits
        kinds = max(len(model.invariants), len(fault_kinds(model)), self.most_sent)
        self.most_steps = counted_steps(traced, limits, narrowest, self.most_sent)
        self.number_bits = lane(max(self.most_steps.bit_length(), kinds) + 1, narrowest)
        self.message_bits = lane((self.most_steps * self.most_sent).bit_length() + 1, narrowest)
        self.widths = {i: demand.width(traced.state[i], narrowest) for i in self.leaves}
        self.module = ir.Module("lanes")
        kind = ir.FunctionType(ir.VoidType(), [I64, I64, I64, I64, POINTER, POINTER])
        self.function = ir.Function(self.module, kind, NAME)
        self.seed, self.loss, self.first_run, self.num_runs, self.scratch, self.rows = self.function.args
        self.scratch.add_attribute("noalias")
        self.rows.add_attribute("noalias")
        self.row_words = row_words(self.watched, self.exposed)
        self.scratch_words = scratch_words(self.row_words, lanes)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))

    def text(self) -> str:
        """The module's IR."""
        builder = self.builder
        loop, done = builder.append_basic_block("loop"), builder.append_basic_block("done")
        first = ir.Constant(self._kind(32), list(range(self.lanes)))
        before = self._fresh(self._chosen(first)) | {"run": first, "live": self._is_asked_for(first)}
        before |= {"following": constant(I64, self.lanes), "ended": constant(I64, 0)}
        scratch, entry = aligned(builder, self.scratch), builder.block
        builder.branch(loop)
        builder.position_at_end(loop)
        phis = {name: builder.phi(value.type) for name, value in before.items()}
        following, ended_before = phis["following"], phis["ended"]
        self.now = phis
        self._draw()
        self._step()
        row, ended = self._ends()
        write_rows(builder, scratch, self.rows, self._columns(row), self.now["run"], ended_before)
        live = self.now["live"]
        ended = builder.and_(ended, live)
        run, count = self._runs_after(ended, following)
        fresh = self._fresh(self._chosen(run, ended))
        after = self.next | {name: builder.select(ended, value, self.next[name]) for name, value in fresh.items()}
        after |= {"run": run, "live": builder.and_(live, self._is_asked_for(run))}
        after |= {"following": builder.add(following, count), "ended": lane_bits(builder, ended)}
        for name, phi in phis.items():
            phi.add_incoming(before[name], entry)
            phi.add_incoming(after[name], builder.block)
        builder.cbranch(any_lane(builder, builder.or_(after["live"], ended)), loop, done)
        builder.position_at_end(done)
        builder.ret_void()
        return with_wide_registers(str(self.module), NAME, self.narrowest * self.lanes)

    def _runs_after(self, ended: Any, following: Any) -> tuple[Any, Any]:
        """All lanes' runs, where those that ended got the ones from `following` on, and how many these are."""
        builder, word = self.builder, max(self.lanes, 32)
        bits = resized(builder, lane_bits(builder, ended), word)
        before = ir.Constant(self._kind(word), [(1 << lane) - 1 for lane in range(self.lanes)])
        nth = Value(builder, builder.and_(splat(builder, bits, self.lanes), before)).popcount().value
        run = builder.add(self._splat32(following), self._sized(nth, 32))
        return builder.select(ended, run, self.now["run"]), resized(builder, Value(builder, bits).popcount().value, 64)

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
        return only_if(self.builder, any_lane(self.builder, among), "choose", constant(self._kind(64), 0), choose)

    def _kind(self, width: int) -> Any:
        return lanes_of(ir.IntType(width), self.lanes)

    def _splat32(self, value: Any) -> Any:
        return splat(self.builder, self.builder.trunc(value, I32), self.lanes)

    def _sized(self, value: Any, width: int) -> Any:
        return resized(self.builder, value, width)

    def _absolute(self, run: Any) -> Any:
        return self.builder.add(splat(self.builder, self.first_run, self.lanes), self._sized(run, 64))

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
        """The random numbers of the step, and the instance that they choose."""
        builder, now = self.builder, self.now
        self.step = builder.add(now["step"], self._number(1))
        seed, run = splat(builder, self.seed, self.lanes), self._absolute(now["run"])
        step = self._sized(self.step, 64)
        loss = splat(builder, self.loss, self.lanes) if self.limits.loss else None
        self.draws = draw(builder, seed, run, step, loss)
        self.later_fates = draw_later(builder, seed, run, step, loss, self.most_sent)
        masks = [now["group", i] for i in range(len(self.groups))]
        weights = self.limits.lifetime_weight, self.share_bits
        self.choice = Choice(builder, masks, self.groups, self.fields, *weights, now["live"], self.draws.choose)
        self.rejected = self.choice.is_rejected(self.traced.words, self.limits, seed, run, step)

    def _step(self) -> None:
        """The states after the step, and what is to be known of them."""
        builder, hot, kind = self.builder, self.choice.hot, self.choice.hot.type
        bit, drawn = only_bit(builder, hot), [self.choice.is_drawn(place) for place in range(len(self.traced.words))]

        def before(name: Any, width: int) -> Any:
            if name == LOSSES:
                return self._sized(self._losses(), width)
            what, place = name
            if what == "state":
                return self._sized(self.now[name], width)
            if name == word_leaf(place):
                return drawn[place]
            shift = self.fields[place].lowest - self.fields[place].offset
            if name == bit_leaf(place):
                return self._sized(builder.add(bit, constant(kind, shift)), width)
            assert name == mask_leaf(place)
            wide = self._sized(hot, max(width, self.mask_bits))
            amount = constant(wide.type, abs(shift))
            return self._sized(builder.shl(wide, amount) if shift >= 0 else builder.lshr(wide, amount), width)

        state = {i: self.now["state", i] for i in self.leaves}
        found = effects(builder, self.traced, state, drawn, self.number_bits, partial(self._emitter, before))
        self.next: dict[Any, Any] = {("state", i): leaf for i, leaf in found.leaves.items()}
        self.next |= {"step": self.step, "messages": self._more_messages(found.num_sent)}
        self.next["met"] = builder.or_(self.now["met"], found.met)
        if self.draws.fates is not None:
            self.next["met"] = builder.or_(self.next["met"], self._is_lost(found.num_sent))
        self.redo = builder.or_(found.redo, builder.or_(self.choice.is_open, self.rejected))
        if "doomed" in self.now:
            self.redo = builder.or_(self.redo, self.now["doomed"])
            self.next["doomed"] = self.now["doomed"]

    def _more_messages(self, sent: Any) -> Any:
        return self.builder.add(self.now["messages"], self._sized(sent, self.message_bits))

    def _is_lost(self, sent: Any) -> Any:
        """1 if any of so many messages is lost, else 0."""
        builder, one = self.builder, self._number(1)
        among = builder.and_(self._sized(self._losses(), self.number_bits), builder.sub(builder.shl(one, sent), one))
        return builder.zext(builder.icmp_unsigned("!=", among, self._number(0)), one.type)

    def _losses(self) -> Any:
        """LOSSES, in 64 bits."""
        if self.draws.fates is None:
            return constant(self._kind(64), 0)
        return losses(self.builder, self.draws.fates, self.later_fates, self.model.max_sends)

    def _ends(self) -> tuple[dict[Any, Any], Any]:
        """The values of the rows of runs that end here, and which do."""
        builder, next_, seen = self.builder, self.next, self.traced.now
        masks = self._masks(seen.masks)
        emitter = self._emitter(
            lambda name, width: self._sized(next_[name], width), [*masks, *seen.broken, seen.unbounded, seen.outcome]
        )
        next_ |= {("group", i): emitter.get(mask, self.mask_bits) for i, mask in enumerate(masks)}
        enabled = next_["group", 0]
        for i in range(1, len(masks)):
            enabled = builder.or_(enabled, next_["group", i])
        dead = builder.icmp_unsigned("==", enabled, constant(enabled.type, 0))
        late = builder.icmp_unsigned(">=", self.step, self._number(self.most_steps))
        if self.limits.timed:
            next_["time"] = self._later()
        row, broken_here, lost = self._invariants(emitter)
        redo = builder.or_(builder.or_(self.redo, emitter.flag(seen.unbounded)), broken_here)
        if self.most_steps < self.limits.max_steps:
            redo = builder.or_(redo, late)
        outcome = builder.select(dead, emitter.get(seen.outcome, self.number_bits), self._number(UNFINISHED))
        outcome = builder.select(lost, self._number(LOST), outcome)
        outcome = builder.select(redo, self._number(REDO), outcome)
        ended = builder.or_(builder.or_(dead, late), builder.or_(redo, lost))
        row |= {name: next_[name] for name in ("step", "messages", "met", "time") if name in next_}
        return self._ends_early(row, outcome, ended)

    def _invariants(self, emitter: Emitter) -> tuple[dict[Any, Any], Any, Any]:
        """What rows tell of broken invariants; whether one breaks that was not expected to; whether data is lost."""
        builder, now, next_ = self.builder, self.now, self.next
        redo = lost = constant(self._kind(1), 0)
        broken = kept = now.get("broken", self._number(0))
        row: dict[Any, Any] = {}
        for i, (flag, invariant) in enumerate(zip(self.traced.now.broken, self.model.invariants, strict=True)):
            if is_constant(flag, 0):
                continue
            here, bit = emitter.flag(flag), self._number(1 << i)
            if invariant.data_loss:
                lost = builder.or_(lost, here)
                broken = builder.select(here, builder.or_(broken, bit), broken)
            elif i not in self.watched:
                redo = builder.or_(redo, here)
            else:
                known = builder.icmp_unsigned("!=", builder.and_(kept, bit), constant(bit.type, 0))
                newly = builder.and_(here, builder.not_(known))
                next_["first", i] = builder.select(newly, self.step, now["first", i])
                row["first", i] = next_["first", i]
                kept, broken = (builder.select(here, builder.or_(mask, bit), mask) for mask in (kept, broken))
            if i in self.exposed:
                self._expose(i, here)
        if "broken" in now:
            next_["broken"] = kept
        if self.exposed:
            row |= {name: next_[name] for name in ("exposing", *(("exposed", i) for i in self.exposed))}
        return row | {"broken": broken}, redo, lost

    def _expose(self, invariant: int, here: Any) -> None:
        """Takes the time at which an exposure begins off what it lasted, and adds that at which it ends."""
        builder, name, bit = self.builder, ("exposed", invariant), self._number(1 << invariant)
        exposing, before, time = self.next.get("exposing", self.now["exposing"]), self.now[name], self.next["time"]
        was = builder.icmp_unsigned("!=", builder.and_(exposing, bit), self._number(0))
        changed = builder.xor(was, here)
        after = builder.select(was, builder.fadd(before, time), builder.fsub(before, time))
        self.next[name] = builder.select(changed, after, before)
        self.next["exposing"] = builder.select(changed, builder.xor(exposing, bit), exposing)

    def _number(self, value: int) -> Any:
        return constant(self._kind(self.number_bits), value)

    def _ends_early(self, row: dict[Any, Any], outcome: Any, ended: Any) -> tuple[dict[Any, Any], Any]:
        """Does what `_ends` does, for runs that the horizon or their lifetime ends before the step."""
        builder, now = self.builder, self.now
        early: list[tuple[Any, dict[Any, Any]]] = []
        before = {name: now.get(name, self._number(0)) for name in row if name != "time"}
        if self.limits.lifetime_weight:
            expired = builder.and_(self.choice.expired, builder.not_(self.rejected))
            early.append((expired, before | ({"time": row["time"]} if self.limits.timed else {})))
        if self.limits.horizon != float("inf"):
            horizon = constant(lanes_of(DOUBLE, self.lanes), self.limits.horizon)
            early.append((builder.fcmp_ordered(">", row["time"], horizon), before | {"time": horizon}))
        for is_over, instead in early:
            flag = builder.and_(is_over, builder.not_(now["doomed"])) if "doomed" in now else is_over
            outcome = builder.select(flag, self._number(HORIZON), outcome)
            ended = builder.or_(ended, flag)
            row = {name: builder.select(flag, instead[name], value) for name, value in row.items()}
        return row | {"outcome": outcome}, ended

    def _later(self) -> Any:
        """The time after the wait for the step."""
        double = lanes_of(DOUBLE, self.lanes)
        wait, total = (self.builder.sitofp(value, double) for value in (self.draws.wait, self.choice.total))
        return self.builder.fadd(self.now["time"], self.builder.fdiv(wait, total))

    def _columns(self, row: dict[Any, Any]) -> list[Any]:
        columns = [row[name] for name in ("outcome", "broken", "met", "step", "messages")]
        columns.append(row.get("time", self._number(0)))
        return columns + [row["first", i] for i in self.watched] + [self._lasted(i, row) for i in self.exposed]

    def _lasted(self, invariant: int, row: dict[Any, Any]) -> Any:
        """For how long an exposure lasted of a run that ends with this row."""
        builder, before = self.builder, row["exposed", invariant]
        lasts = builder.and_(row["exposing"], self._number(1 << invariant))
        still = builder.icmp_unsigned("!=", lasts, self._number(0))
        return builder.select(still, builder.fadd(before, row["time"]), before)
