"""Many runs at once, one in each lane of a SIMD register: effects are computed for all lanes, and kept where drawn."""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

from llvmlite import ir

from quorisk.kernels.engines.lanes.parts.draws import asks_beside, emit_if
from quorisk.kernels.engines.lanes.parts.lane_kernel import LaneKernel
from quorisk.kernels.engines.lanes.parts.rows import aligned, write_rows
from quorisk.kernels.engines.lanes.plan import NAME, Limits, lane_layout
from quorisk.kernels.engines.lanes.vector.effects import effects
from quorisk.kernels.model import HORIZON, Model
from quorisk.kernels.tracing.expressions import is_constant
from quorisk.kernels.tracing.machine import (
    DOUBLE,
    I64,
    any_lane,
    constant,
    lane_bits,
    lanes_of,
    only_bit,
    with_wide_registers,
)
from quorisk.kernels.tracing.trace import TracedModel, bit_leaf, losses_leaf, mask_leaf, word_leaf


class VectorKernel(LaneKernel):
    """See `LaneKernel`; all values of the runs go from step to step in registers."""

    def __init__(
        self, model: Model, traced: TracedModel, limits: Limits, lanes: int, narrowest: int, listed: bool
    ) -> None:
        layout = lane_layout(model, traced, limits, narrowest)
        super().__init__(model, traced, limits, lanes, narrowest, layout, step_bits=narrowest, listed=listed)

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
        row, ended = self._after()
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

    def _step(self) -> None:
        """Computes the states after the step, and the runs' steps, messages and faults."""
        builder, hot, kind = self.builder, self.choice.hot, self.choice.hot.type
        bit, drawn = only_bit(builder, hot), [self.choice.is_drawn(place) for place in range(len(self.traced.words))]
        beside = self._all_beside(drawn)

        def before(name: Any, width: int) -> Any:
            if name in beside or name == losses_leaf(0):
                return self._sized(beside[name] if name in beside else self._losses(), width)
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
        self.next = {("state", i): leaf for i, leaf in found.leaves.items()}
        sent = self._sized(found.num_sent, self.message_bits)
        self.next |= {"step": self.step, "messages": builder.add(self.now["messages"], sent)}
        self.next["met"] = builder.or_(self.now["met"], found.met)
        if self.draws.fates is not None:
            self.next["met"] = builder.or_(self.next["met"], self._is_lost(self._losses(), found.num_sent))
        self.redo = builder.or_(found.redo, builder.or_(self.choice.is_open, self.rejected))
        if "doomed" in self.now:
            self.redo = builder.or_(self.redo, self.now["doomed"])
            self.next["doomed"] = self.now["doomed"]

    def _all_beside(self, drawn: Sequence[Any]) -> dict[Any, Any]:
        """Emits the draws that only steps of some words make, by name: only where a lane draws such a word."""
        words = [(place, word) for place, word in enumerate(self.traced.words) if word.after is not None]
        asking: dict[Any, list[Any]] = {}
        for place, word in words:
            for name in asks_beside(self.model, word):
                asking.setdefault(name, []).append(drawn[place])
        none = constant(self._kind(64), 0)
        return {
            name: emit_if(
                self.builder,
                any_lane(self.builder, reduce(self.builder.or_, flags)),
                "beside",
                none,
                partial(self._beside, name, *self.source),
            )
            for name, flags in asking.items()
        }

    def _after(self) -> tuple[dict[Any, Any], Any]:
        """Computes masks and times after the step; returns the rows of runs that end here, and which do."""
        builder, next_, seen = self.builder, self.next, self.traced.now
        masks = self._masks(seen.masks)
        emitter = self._emitter(
            lambda name, width: self._sized(next_[name], width), [*masks, *seen.broken, seen.unbounded, seen.outcome]
        )
        next_ |= {("group", i): emitter.get(mask, self.mask_bits) for i, mask in enumerate(masks)}
        if self.limits.timed:
            next_["time"] = self._later()
        outcome = emitter.get(seen.outcome, self.number_bits)
        redo = builder.or_(self.redo, emitter.flag(seen.unbounded))
        none = here = self._number(0)
        for i, flag in enumerate(seen.broken):
            if not is_constant(flag, 0):
                here = builder.or_(here, builder.select(emitter.flag(flag), self._number(1 << i), none))
        return self._ends_early(*self._ends(outcome, here, redo))

    def _ends_early(self, row: dict[Any, Any], ended: Any) -> tuple[dict[Any, Any], Any]:
        """Does what `_ends` does, for runs that the horizon or their lifetime ends before the step."""
        builder, now, outcome = self.builder, self.now, row.pop("outcome")
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
