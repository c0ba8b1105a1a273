"""One run after another: a branch to the action that was drawn, its effect, and only the guards that it may change.

Where lanes would compute every action's effect, this computes one, so it is the better the larger a model is.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from quorisk.kernels.engines.lanes.parts.affected import Affected, affected_by, effect_of
from quorisk.kernels.engines.lanes.parts.draws import (
    asks_beside,
    draw,
    draw_accepted,
    draw_beside,
    draw_choice,
    draw_later,
    draw_nth_bit,
    loss_at,
    losses,
)
from quorisk.kernels.engines.lanes.scalar.scratch import AHEAD, Scratch
from quorisk.kernels.engines.points import ALWAYS
from quorisk.kernels.engines.specialized.plan import NAME, REDO, Limits, pack_masks, packed, places_of_bits, row_words
from quorisk.kernels.model import HORIZON, LOST, UNFINISHED, Model, exposures
from quorisk.kernels.tracing.emit import Emitter
from quorisk.kernels.tracing.expressions import Node, bits, is_constant
from quorisk.kernels.tracing.machine import DOUBLE, I1, I16, I64, POINTER, Value, constant, splat
from quorisk.kernels.tracing.trace import TracedModel, Word, bit_leaf, losses_leaf, mask_leaf

_BLOCKS = ("entry", "next_run", "start", "head", "go_on", "refill", "pick", "tail", "special", "breaks", "end", "done")


class ScalarKernel:
    """A kernel of a run at a time; see `plan.NAME`."""

    def __init__(self, model: Model, traced: TracedModel, limits: Limits, has_pdep: bool) -> None:
        self.model, self.traced, self.limits, self.has_pdep = model, traced, limits, has_pdep
        self.groups, self.fields = pack_masks(traced.words, 64)
        self.exposed = [i for i in exposures(model) if limits.timed and not is_constant(traced.now.broken[i], 0)]
        invariants = zip(traced.now.broken, model.invariants, strict=True)
        self.watched = [
            i for i, (flag, each) in enumerate(invariants) if not is_constant(flag, 0) and not each.data_loss
        ]
        self.row_words = row_words(self.watched, self.exposed)
        self.leaves = [i for i, leaf in enumerate(traced.state) if isinstance(leaf, Node)]
        self.module = ir.Module("scalar")
        kind = ir.FunctionType(ir.VoidType(), [I64, POINTER, I64, I64, POINTER, POINTER])
        self.function = ir.Function(self.module, kind, NAME)
        self.seed, self.losses, self.first_run, self.num_runs, scratch, self.rows = self.function.args
        for pointer in (self.losses, scratch, self.rows):
            pointer.add_attribute("noalias")
        self.block = {name: self.function.append_basic_block(name) for name in _BLOCKS}
        self.builder = ir.IRBuilder(self.block["entry"])
        self.loss = loss_at(self.builder, self.losses, 0)
        sizes = len(traced.state), len(self.groups), len(model.invariants)
        self.memory = Scratch(self.builder, scratch, *sizes, self.exposed)
        self.scratch_words = self.memory.num_words

    def text(self) -> str:
        """The module's IR."""
        builder, block = self.builder, self.block
        builder.branch(block["next_run"])
        builder.position_at_end(block["next_run"])
        self.run = builder.phi(I64)
        self.run.add_incoming(_int(0), block["entry"])
        builder.cbranch(builder.icmp_unsigned("<", self.run, self.num_runs), block["start"], block["done"])
        self.ends: list[tuple[Any, Any, Any, Any, Any]] = []
        self.specials: list[tuple[Any, Any, Any, Any, Any]] = []
        self.heads: list[tuple[Any, Any, Any, Any]] = []
        self.tails: list[tuple[Any, Any, Any, Any]] = []
        self._start()
        self._head()
        self._refill()
        self._pick()
        self._tail()
        self._special()
        self._end()
        builder.position_at_end(block["done"])
        builder.ret_void()
        self._connect()
        return str(self.module)

    def _start(self) -> None:
        """A run before its first step."""
        builder, first = self.builder, self.traced.at_first
        builder.position_at_end(self.block["start"])
        self.absolute = builder.add(self.first_run, self.run)
        choice = _int(0)
        if self.traced.num_choices > 1:
            choice = draw_choice(builder, self.seed, self.absolute, self.traced.num_choices)
        everywhere = range(len(self.traced.words))
        masks = [packed(first.masks, self.fields, group, everywhere) for group in range(len(self.groups))]
        emitter = self._emitter(
            lambda name, width: choice, [*self.traced.initial, *masks, first.unbounded, *first.broken]
        )
        for i in self.leaves:
            self.memory.store(i, emitter.get(self.traced.initial[i], 64))
        for group, mask in enumerate(masks):
            self.memory.store(self.memory.masks + group, emitter.get(mask, 64))
        self.memory.clear()
        redo, broken = emitter.flag(first.unbounded), constant(I1, 0)
        for flag in first.broken:
            broken = builder.or_(broken, emitter.flag(flag))
        zero, no_time = _int(0), ir.Constant(DOUBLE, 0.0)
        self.heads.append((builder.block, zero, zero, no_time))
        self.specials.append((builder.block, redo, zero, zero, no_time))
        builder.cbranch(builder.or_(redo, broken), self.block["special"], self.block["head"])

    def _head(self) -> None:
        """Whether anything is enabled, and the run goes on."""
        builder = self.builder
        builder.position_at_end(self.block["head"])
        self.step, self.messages, self.time = builder.phi(I64), builder.phi(I64), builder.phi(DOUBLE)
        self.masks = [self.memory.load(self.memory.masks + group) for group in range(len(self.groups))]
        self.sums: list[Any] = []
        for mask, group in zip(self.masks, self.groups, strict=True):
            share = Value(builder, mask).popcount().value
            if group.weight != 1:
                share = builder.mul(share, _int(group.weight))
            self.sums.append(builder.add(self.sums[-1], share) if self.sums else share)
        enabled = self.sums[-1]
        self.total = builder.add(enabled, _int(self.limits.lifetime_weight))
        over = builder.append_basic_block("over")
        builder.cbranch(builder.icmp_unsigned("==", enabled, _int(0)), over, self.block["go_on"])
        builder.position_at_end(over)
        emitter = self._emitter(self._from_memory, [self.traced.now.outcome])
        self.ends.append((builder.block, emitter.get(self.traced.now.outcome, 64), self.step, self.messages, self.time))
        builder.branch(self.block["end"])
        builder.position_at_end(self.block["go_on"])
        late = builder.icmp_unsigned(">=", self.step, _int(self.limits.max_steps))
        self._leave("late", late, UNFINISHED, self.time)
        self.ahead = builder.and_(self.step, _int(AHEAD - 1))
        builder.cbranch(builder.icmp_unsigned("==", self.ahead, _int(0)), self.block["refill"], self.block["pick"])

    def _refill(self) -> None:
        """The random numbers of the next steps, all at once."""
        builder = self.builder
        builder.position_at_end(self.block["refill"])
        seed, run = splat(builder, self.seed, AHEAD), splat(builder, self.absolute, AHEAD)
        following = ir.Constant(seed.type, list(range(1, AHEAD + 1)))
        step = builder.add(splat(builder, self.step, AHEAD), following)
        draws = draw(builder, seed, run, step, splat(builder, self.loss, AHEAD) if self.limits.losses[0] else None)
        for i, numbers in enumerate(draws):
            if numbers is not None and (self.limits.timed or numbers is not draws.wait):
                builder.store(numbers, self.memory.place(_int(self.memory.draws + i * AHEAD)), align=8)
        builder.branch(self.block["pick"])

    def _drawn(self, which: int) -> Any:
        place = self.builder.add(self.ahead, _int(self.memory.draws + which * AHEAD))
        return self.builder.load(self.memory.place(place), typ=I64)

    def _pick(self) -> None:
        """The instance that is drawn, and on to its action."""
        builder = self.builder
        builder.position_at_end(self.block["pick"])
        self.later = self._later() if self.limits.timed else self.time
        chosen, highest = self._places()
        if self.limits.lifetime_weight:
            self._end_of_life(chosen)
        mask, nth, base, weight = self.masks[0], chosen, _int(0), _int(self.groups[0].weight)
        for i in range(1, len(self.groups)):
            further = builder.icmp_unsigned(">=", chosen, self.sums[i - 1])
            mask = builder.select(further, self.masks[i], mask)
            nth = builder.select(further, builder.sub(chosen, self.sums[i - 1]), nth)
            base = builder.select(further, _int(64 * i), base)
            weight = builder.select(further, _int(self.groups[i].weight), weight)
        uncertain = builder.add(builder.sub(highest, chosen), nth)
        if any(group.weight != 1 for group in self.groups):
            nth = builder.udiv(nth, weight)
        # the draw leaves it open which instance it leads to
        is_open = builder.icmp_unsigned(">=", uncertain, builder.mul(builder.add(nth, _int(1)), weight))
        self._leave("open", is_open, REDO, self.later)
        self.bit, self.hot = draw_nth_bit(builder, mask, nth, self.has_pdep)
        self.fates = self._drawn(2) if self.limits.losses[0] else None
        action = builder.load(builder.gep(self._table(), [_int(0), builder.add(base, self.bit)]), typ=I16)
        nowhere = builder.append_basic_block("nowhere")
        ir.IRBuilder(nowhere).unreachable()
        switch = builder.switch(action, nowhere)
        for place in range(len(self.traced.words)):
            case = builder.append_basic_block(f"word{place}")
            switch.add_case(ir.Constant(I16, place), case)
            builder.position_at_end(case)
            self._case(place)

    def _places(self) -> tuple[Any, Any]:
        """The first and the last place below the total that the 32 bits drawn lead to."""
        builder = self.builder
        wide = ir.IntType(128 if max(group.weight for group in self.groups) > 1 else 64)
        total = builder.zext(self.total, wide) if wide.width > 64 else self.total
        word = builder.zext(self._drawn(0), wide) if wide.width > 64 else self._drawn(0)
        first = builder.mul(word, total)
        last = builder.add(first, builder.sub(total, ir.Constant(wide, 1)))
        shifted = [builder.lshr(value, ir.Constant(wide, 32)) for value in (first, last)]
        lowest, highest = (builder.trunc(value, I64) if wide.width > 64 else value for value in shifted)
        return lowest, highest

    def _end_of_life(self, chosen: Any) -> None:
        """Whether what is drawn is no instance, but the end of the lifetime."""
        builder = self.builder
        over, alive = builder.append_basic_block("expired"), builder.append_basic_block("expired_not")
        builder.cbranch(builder.icmp_unsigned(">=", chosen, self.sums[-1]), over, alive)
        builder.position_at_end(over)
        outcome = _int(HORIZON)
        if self.limits.accepts[-1] != ALWAYS:
            outcome = builder.select(self._accepted(self.limits.accepts[-1]), outcome, _int(REDO))
        self.ends.append((builder.block, outcome, self.step, self.messages, self.later))
        builder.branch(self.block["end"])
        builder.position_at_end(alive)

    def _accepted(self, accept: int) -> Any:
        """Whether what is drawn is accepted."""
        step = self.builder.add(self.step, _int(1))
        return draw_accepted(self.builder, self.seed, self.absolute, step, _int(accept))

    def _leave(self, name: str, flag: Any, outcome: int, time: Any) -> None:
        """Ends the run here, before its next step, if the flag is set."""
        leaving, staying = (self.builder.append_basic_block(name + suffix) for suffix in ("", "_not"))
        self.builder.cbranch(flag, leaving, staying)
        self.ends.append((leaving, _int(outcome), self.step, self.messages, time))
        ir.IRBuilder(leaving).branch(self.block["end"])
        self.builder.position_at_end(staying)

    def _later(self) -> Any:
        """The time after the wait for the step, if it is within the horizon."""
        builder = self.builder
        waited = builder.fdiv(builder.sitofp(self._drawn(1), DOUBLE), builder.sitofp(self.total, DOUBLE))
        later = builder.fadd(self.time, waited)
        if self.limits.horizon != float("inf"):
            horizon = ir.Constant(DOUBLE, self.limits.horizon)
            self._leave("beyond", builder.fcmp_ordered(">", later, horizon), HORIZON, horizon)
        return later

    def _table(self) -> Any:
        """The place of the word that each bit of the packed masks belongs to."""
        owners = places_of_bits(self.fields, len(self.groups), 64)
        table = ir.GlobalVariable(self.module, ir.ArrayType(I16, len(owners)), "owners")
        table.global_constant, table.initializer = True, ir.Constant(table.value_type, owners)
        return table

    def _case(self, place: int) -> None:
        """The effect of an instance of one word, and what it changes."""
        builder, traced, word, field = self.builder, self.traced, self.traced.words[place], self.fields[place]
        if word.after is None:
            self.tails.append((builder.block, _int(0), constant(I1, 1), constant(I1, 0)))
            builder.branch(self.block["tail"])
            return
        if (accept := self.limits.accepts[word.number]) != ALWAYS:
            self._leave(f"rejected{place}", builder.not_(self._accepted(accept)), REDO, self.later)
        shift = field.lowest - field.offset
        cache, beside = dict[Any, Any](), asks_beside(self.model, word)

        def before(name: Any, width: int) -> Any:
            if name not in cache:
                if name in beside:
                    cache[name] = self._beside(name)
                elif name == losses_leaf(0):
                    cache[name] = self._losses(word)
                elif name == bit_leaf(place):
                    cache[name] = builder.add(self.bit, _int(shift))
                elif name == mask_leaf(place):
                    cache[name] = (builder.shl if shift >= 0 else builder.lshr)(self.hot, _int(abs(shift)))
                else:
                    cache[name] = self._from_memory(name, width)
            return cache[name]

        effect = effect_of(traced, word)
        emitter = self._emitter(before, [*effect.outputs(), word.sent])
        after = {("state", i): emitter.get(leaf, 64) for i, leaf in effect.leaves.items()}
        sent = Value(builder, emitter.get(word.sent, 64)).popcount().value if not is_constant(word.sent, 0) else _int(0)
        redo = emitter.flag(effect.redo)
        self._meet(word, sent, before)
        for (_, i), leaf in after.items():
            self.memory.store(i, leaf)

        def now(name: Any, width: int) -> Any:
            return after[name] if name in after else before(name, width)

        unbounded, broken = self._look_again(affected_by(traced, self.fields, effect), now)
        self.tails.append((builder.block, sent, builder.or_(redo, unbounded), broken))
        builder.branch(self.block["tail"])

    def _meet(self, word: Word, sent: Any, before: Callable[[Any, int], Any]) -> None:
        """Notes the kinds of faults that the run meets in this step."""
        builder, met = self.builder, _int(word.fault)
        if self.limits.losses[0] and not is_constant(word.sent, 0):
            places = builder.sub(builder.shl(_int(1), sent), _int(1))
            lost = builder.icmp_unsigned("!=", builder.and_(before(losses_leaf(0), 64), places), _int(0))
            met = builder.or_(met, builder.zext(lost, I64))
        if not isinstance(met, ir.Constant) or met.constant:
            self.memory.store(self.memory.met, builder.or_(self.memory.load(self.memory.met), met))

    def _look_again(self, affected: Affected, now: Callable[[Any, int], Any]) -> tuple[Any, Any]:
        """Stores the masks that are affected. Whether one is out of bounds; whether to look at invariants."""
        builder = self.builder
        emitter = self._emitter(now, affected.outputs())
        for group, mask in affected.masks.items():
            value = emitter.get(mask, 64)
            if kept := affected.kept[group]:
                value = builder.or_(builder.and_(self.masks[group], _int(kept)), value)
            self.memory.store(self.memory.masks + group, value)
        looked_at = constant(I1, 0)
        for i, flag in affected.broken.items():
            here = emitter.flag(flag)
            if i in self.exposed:  # one that ends is of interest, too, and one that lasts is not
                here = builder.xor(here, self.memory.is_exposed(i))
            looked_at = builder.or_(looked_at, here)
        return emitter.flag(affected.unbounded), looked_at

    def _losses(self, word: Word) -> Any:
        """Which of the messages sent in this step are lost."""
        builder, limits = self.builder, self.limits
        if not limits.losses[0]:
            return _int(0)
        most_sent = bits(word.sent)[1].bit_count()
        step = builder.add(self.step, _int(1))
        later = draw_later(builder, self.seed, self.absolute, step, self.loss, most_sent)
        return losses(builder, self.fates, later, self.model.max_sends)

    def _beside(self, name: Any) -> Any:
        """What `draws.asks_beside` names."""
        step = self.builder.add(self.step, _int(1))
        given = self.seed, self.absolute, step, self.losses, self.model.max_sends
        return draw_beside(self.builder, name, *given)

    def _tail(self) -> None:
        """What all actions have in common."""
        builder = self.builder
        builder.position_at_end(self.block["tail"])
        self.sent, self.redo, self.broken = builder.phi(I64), builder.phi(I1), builder.phi(I1)
        step, messages = builder.add(self.step, _int(1)), builder.add(self.messages, self.sent)
        self.heads.append((builder.block, step, messages, self.later))
        self.specials.append((builder.block, self.redo, step, messages, self.later))
        builder.cbranch(builder.or_(self.redo, self.broken), self.block["special"], self.block["head"])

    def _special(self) -> None:
        """A run that left the bounds, or breaks an invariant."""
        builder = self.builder
        builder.position_at_end(self.block["special"])
        self.special = [builder.phi(kind) for kind in (I1, I64, I64, DOUBLE)]
        redo, step, messages, time = self.special
        self.ends.append((builder.block, _int(REDO), step, messages, time))
        builder.cbranch(redo, self.block["end"], self.block["breaks"])
        builder.position_at_end(self.block["breaks"])
        emitter = self._emitter(self._from_memory, self.traced.now.broken)
        before = self.memory.load(self.memory.broken)
        broken, lost = before, constant(I1, 0)
        for i, (flag, invariant) in enumerate(zip(self.traced.now.broken, self.model.invariants, strict=True)):
            if is_constant(flag, 0):
                continue
            is_broken = emitter.flag(flag)
            was = builder.trunc(builder.lshr(before, _int(i)), I1)
            newly = builder.and_(is_broken, builder.not_(was))
            first = self.memory.first_steps + i
            self.memory.store(first, builder.select(newly, step, self.memory.load(first)))
            broken = builder.or_(broken, builder.shl(builder.zext(newly, I64), _int(i)))
            if invariant.data_loss:
                lost = builder.or_(lost, newly)
            if i in self.exposed:
                self.memory.expose(i, is_broken, time)
        self.memory.store(self.memory.broken, broken)
        self.heads.append((builder.block, step, messages, time))
        self.ends.append((builder.block, _int(LOST), step, messages, time))
        builder.cbranch(lost, self.block["end"], self.block["head"])

    def _end(self) -> None:
        """The run's row."""
        builder = self.builder
        builder.position_at_end(self.block["end"])
        self.end = [builder.phi(kind) for kind in (I64, I64, I64, DOUBLE)]
        outcome, step, messages, time = self.end
        row = builder.mul(self.run, _int(self.row_words))
        masks = self.memory.load(self.memory.broken), self.memory.load(self.memory.met)
        values = [outcome, *masks, step, messages, builder.bitcast(time, I64)]
        values += [self.memory.load(self.memory.first_steps + i) for i in self.watched]
        values += [self.memory.lasted(i, time) for i in self.exposed]
        for i, value in enumerate(values):
            builder.store(value, builder.gep(self.rows, [builder.add(row, _int(i))], source_etype=I64))
        self.run.add_incoming(builder.add(self.run, _int(1)), builder.block)
        builder.branch(self.block["next_run"])

    def _connect(self) -> None:
        """The values that come into the blocks reached from several."""
        for phis, arrivals in (
            ((self.step, self.messages, self.time), self.heads),
            (self.special, self.specials),
            (self.end, self.ends),
            ((self.sent, self.redo, self.broken), self.tails),
        ):
            for block, *values in arrivals:
                for phi, value in zip(phis, values, strict=True):
                    phi.add_incoming(value, block)

    def _emitter(self, leaf: Any, outputs: Sequence[Any]) -> Emitter:
        return Emitter(self.builder, 1, 64, leaf, outputs, self.has_pdep)

    def _from_memory(self, name: Any, width: int) -> Any:
        return self.memory.load(name[1])


def _int(value: int) -> ir.Constant:
    return constant(I64, value)
