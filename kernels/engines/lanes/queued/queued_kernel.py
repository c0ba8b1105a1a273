"""Runs that draw the same word take the step side by side: its effect alone, and only the guards that it may change.

Where lanes of registers compute every action's effect and guards for every run, this moves runs between steps instead,
so it is the better the larger a model is.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from quorisk.kernels.engines.lanes.parts.affected import Affected, affected_by, effect_of
from quorisk.kernels.engines.lanes.parts.draws import asks_beside
from quorisk.kernels.engines.lanes.parts.lane_kernel import LaneKernel
from quorisk.kernels.engines.lanes.parts.rows import aligned, write_rows
from quorisk.kernels.engines.lanes.plan import NAME, Limits, lane_layout, places_of_bits
from quorisk.kernels.engines.lanes.queued.queues import Queues
from quorisk.kernels.engines.lanes.queued.records import DWORD, LINE, RUNS, Layout
from quorisk.kernels.model import HORIZON, Model
from quorisk.kernels.tracing.expressions import is_constant, known_bits
from quorisk.kernels.tracing.folding import make
from quorisk.kernels.tracing.machine import (
    DOUBLE,
    I64,
    constant,
    frozen,
    lane_bits,
    lanes_of,
    only_bit,
    with_wide_registers,
)
from quorisk.kernels.tracing.trace import TracedModel, Word, bit_leaf, losses_leaf, mask_leaf

_STEP_BITS = 16
_LOSSES = losses_leaf(0)
_BESIDE = _NO_RUN, _OPEN, _OVER, _START = range(4)
"""Draws of runs beside words: none, as there is no run; one that is left to the generic engine; the end of their
lifetime, or the horizon; and none yet, before they begin."""


class QueuedKernel(LaneKernel):
    """See `LaneKernel`; the values of runs lie in `records`, and runs go from queue to queue."""

    def __init__(self, model: Model, traced: TracedModel, limits: Limits) -> None:
        sizes = lane_layout(model, traced, limits, DWORD, in_pieces=True)
        super().__init__(model, traced, limits, RUNS, DWORD, sizes, _STEP_BITS)
        self.words = [place for place, word in enumerate(traced.words) if word.after is not None]
        self.layout = Layout(self._values())
        self.queues = Queues(self.builder, self.layout.num_lines, len(self.words) + len(_BESIDE))
        self.scratch_words += self.queues.num_words

    def _values(self) -> dict[Any, int]:
        """The values of a record, and which bits each may have."""
        values: dict[Any, int] = {("state", i): self.traced.state[i].may for i in self.leaves}
        for field in self.fields:
            _, mask = known_bits(self.traced.words[field.place].mask)
            group = "group", field.group
            values[group] = values.get(group, 0) | mask >> field.lowest << field.offset & field.bits
        steps, messages = self.most_steps, self.most_steps * max(1, self.most_sent)
        values |= {"run": (1 << 32) - 1, "step": _bits(steps), "messages": _bits(messages)}
        values |= {"met": _bits(max(1, *(word.fault for word in self.traced.words)))}
        if self.watched:
            values["broken"] = sum(1 << i for i in self.watched)
            values |= {("first", i): _bits(steps) for i in self.watched}
        if self.exposed:
            values["exposing"] = sum(1 << i for i in self.exposed)
            values |= {("exposed", i): (1 << 64) - 1 for i in self.exposed}
        if self.limits.timed:
            values["time"] = (1 << 64) - 1
        if self.limits.losses[0] and self.most_sent:
            values[_LOSSES] = (1 << self.most_sent) - 1
        return values | {"drawn": _bits(DWORD * len(self.groups) + _START)}

    def text(self) -> str:
        """The module's IR."""
        builder = self.builder
        self.queues.memory = aligned(builder, self.scratch)
        self.variables = {name: builder.alloca(kind, name=name) for name, kind in self._kinds().items()}
        for name, place in self.variables.items():
            builder.store(constant(place.allocated_type, RUNS if name == "least" else 0), place)
        self.queues.start(self._queue_of(_START))
        step, done = self._go_round()
        builder.position_at_end(step)
        self.there = self.queues.take(self._get("queue"), self._get("num"))
        nowhere, tail = builder.append_basic_block("nowhere"), builder.append_basic_block("tail")
        ir.IRBuilder(nowhere).unreachable()
        switch = builder.switch(self._get("queue"), nowhere)
        for queue in range(self.queues.num_queues):
            if queue == self._queue_of(_NO_RUN):
                continue
            case = builder.append_basic_block(f"queue{queue}")
            switch.add_case(constant(I64, queue), case)
            builder.position_at_end(case)
            self._case(queue)
            builder.branch(tail)
        builder.position_at_end(tail)
        self._tail()
        builder.branch(self.look)
        builder.position_at_end(done)
        builder.ret_void()
        return with_wide_registers(str(self.module), NAME, DWORD * RUNS)

    def _kinds(self) -> dict[str, Any]:
        """The variables that go from block to block; LLVM keeps them in registers."""
        number, flag = self._kind(self.number_bits), self._kind(1)
        going_round = dict.fromkeys(("queue", "num", "least", "found", "following", "to_write"), I64)
        of_step = dict.fromkeys(("taken", "sent", "met", "here", "elsewhere"), number)
        return going_round | of_step | dict.fromkeys(("redo", "over", "begins"), flag)

    def _get(self, name: str) -> Any:
        place = self.variables[name]
        return self.builder.load(place, typ=place.allocated_type)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            place = self.variables[name]
            kind = place.allocated_type
            self.builder.store(constant(kind, value) if isinstance(value, int) else value, place)

    def _queue_of(self, special: int) -> int:
        return len(self.words) + special

    def _go_round(self) -> tuple[Any, Any]:
        """Goes round the queues; returns the blocks of code for a step with runs of `queue`, and for the end.

        A step uses all lanes. Once a round finds no queue with enough runs, as few are left, half as many suffice.
        """
        builder, block = self.builder, self.function.append_basic_block
        self.look, step, further, around, last, done = map(block, ("look", "step", "further", "around", "last", "done"))
        all_lanes, one = constant(I64, RUNS), constant(I64, 1)
        builder.branch(self.look)
        builder.position_at_end(self.look)
        waiting = self.queues.num_waiting(self._get("queue"))
        self._set(num=builder.select(builder.icmp_unsigned("<", waiting, all_lanes), waiting, all_lanes))
        few = builder.icmp_unsigned("<", waiting, self._get("least"))
        self._set(found=builder.select(few, self._get("found"), one))
        builder.cbranch(few, further, step)
        builder.position_at_end(further)
        queue = builder.add(self._get("queue"), one)
        was_last = builder.icmp_unsigned("==", queue, constant(I64, self.queues.num_queues))
        self._set(queue=builder.select(was_last, constant(I64, 0), queue))
        builder.cbranch(was_last, around, self.look)
        builder.position_at_end(around)
        found = builder.icmp_unsigned("!=", self._get("found"), constant(I64, 0))
        least = builder.select(found, all_lanes, builder.lshr(self._get("least"), one))
        self._set(least=least, found=0)
        builder.cbranch(builder.icmp_unsigned("==", least, constant(I64, 0)), last, self.look)
        builder.position_at_end(last)  # a step of no run writes the last rows
        more = builder.icmp_unsigned("!=", self._get("to_write"), constant(I64, 0))
        self._set(queue=self._queue_of(_START), num=0, least=1)
        builder.cbranch(more, step, done)
        return step, done

    def _case(self, queue: int) -> None:
        """Emits the step of the runs of a queue."""
        self._set(taken=0, sent=0, met=0, here=0, elsewhere=-1, redo=0, over=0, begins=0)
        self.dwords: dict[int, Any] = {}
        if queue < len(self.words):
            self._take(self.words[queue], self.traced.words[self.words[queue]])
        else:
            name = {_OPEN: "redo", _OVER: "over", _START: "begins"}[queue - len(self.words)]
            self._set(**{name: -1})

    def _value(self, name: Any) -> Any:
        """A value of the block's records."""
        return self.layout.get(self.builder, name, self._dword)

    def _dword(self, number: int) -> Any:
        if number not in self.dwords:
            self.dwords[number] = self.queues.dword(number)
        return self.dwords[number]

    def _take(self, place: int, word: Word) -> None:
        """Takes an instance of a word, in each lane its own."""
        builder, cache = self.builder, dict[Any, Any]()
        if names := asks_beside(self.model, word):
            step = builder.add(self._sized(self._value("step"), 64), constant(self._kind(64), 1))
            cache |= {name: self._beside(name, self._absolute(self._value("run")), step) for name in names}

        def before(name: Any, width: int) -> Any:
            if name not in cache:
                if name == bit_leaf(place):
                    cache[name] = self._bit(place)
                elif name == mask_leaf(place):
                    bit = self._sized(before(bit_leaf(place), DWORD), 64)
                    # of lanes without a run, the bit may be any number
                    cache[name] = frozen(builder, builder.shl(constant(bit.type, 1), bit))
                else:
                    cache[name] = self._value(name) if name in self.layout.pieces else constant(self._kind(64), 0)
            return self._sized(cache[name], width)

        effect, num_sent = effect_of(self.traced, word), make("popcount", word.sent)
        emitter = self._emitter(before, [*effect.outputs(), num_sent])
        after = {("state", i): emitter.get(leaf, self.widths[i]) for i, leaf in effect.leaves.items()}
        sent, met = emitter.get(num_sent, self.number_bits), self._number(word.fault)
        if _LOSSES in self.layout.pieces and not is_constant(num_sent, 0):
            met = builder.or_(met, self._is_lost(before(_LOSSES, self.number_bits), sent))

        def now(name: Any, width: int) -> Any:
            return self._sized(after[name], width) if name in after else before(name, width)

        masks, unbounded = self._look_again(affected_by(self.traced, self.fields, effect), now)
        after |= masks
        self._set(taken=1, sent=sent, met=met, redo=builder.or_(emitter.flag(effect.redo), unbounded))
        kept = self.layout.taken(list(self.layout.pieces))
        changed = self.layout.taken(list(after))
        for number, new in self.layout.packed(builder, after).items():
            others = constant(new.type, kept[number] & ~changed[number])
            self.queues.set_dword(number, builder.or_(new, builder.and_(self._dword(number), others)))

    def _bit(self, place: int) -> Any:
        """The place of the bit drawn in the mask of a word."""
        builder, drawn, bit = self.builder, self._value("drawn"), None
        for field in (field for field in self.fields if field.place == place):
            first = DWORD * field.group + field.offset
            here = builder.add(drawn, constant(drawn.type, field.lowest - first))
            further = builder.icmp_unsigned(">=", drawn, constant(drawn.type, first))
            bit = here if bit is None else builder.select(further, here, bit)
        return bit

    def _look_again(self, affected: Affected, now: Callable[[Any, int], Any]) -> tuple[dict[Any, Any], Any]:
        """The masks that are affected, and whether one is out of bounds; notes which invariants are broken."""
        builder, found = self.builder, dict[Any, Any]()
        emitter = self._emitter(now, affected.outputs())
        for group, mask in affected.masks.items():
            value = emitter.get(mask, self.mask_bits)
            if kept := affected.kept[group]:
                before = now(("group", group), self.mask_bits)
                value = builder.or_(value, builder.and_(before, constant(value.type, kept)))
            found["group", group] = value
        here, none = self._number(0), self._number(0)
        for i, flag in affected.broken.items():
            here = builder.or_(here, builder.select(emitter.flag(flag), self._number(1 << i), none))
        self._set(here=here, elsewhere=~sum(1 << i for i in affected.broken))
        return found, emitter.flag(affected.unbounded)

    def _tail(self) -> None:
        """Ends runs, begins others in their places, and draws what each does next."""
        builder = self.builder
        self.dwords = {}
        row, ended = self._after()
        finished = builder.and_(ended, builder.not_(self._get("begins")))
        behind = self.queues.at(self.queues.num_words)
        write_rows(builder, behind, self.rows, self._columns(row), self.now["run"], self._get("to_write"))
        self._set(to_write=lane_bits(builder, finished))
        run, count = self._runs_after(ended, self._get("following"))
        self._set(following=builder.add(self._get("following"), count))
        fresh = self._fresh(self._chosen(run, ended))
        doomed = fresh.pop("doomed", None)
        states = {name: fresh.pop(name) for name in list(fresh) if name[0] == "state"}
        self.now = {name: builder.select(ended, value, self.next[name]) for name, value in fresh.items()}
        self.now |= {"run": run, "live": builder.and_(self.there, self._is_asked_for(run))}
        self._draw()
        self.now["drawn"] = self._drawn(doomed and builder.and_(ended, doomed))
        if _LOSSES in self.layout.pieces:
            self.now[_LOSSES] = self._losses()
        places = places_of_bits(self.fields, len(self.groups), DWORD)
        owners = [self.words.index(place) if place in self.words else self._queue_of(_OPEN) for place in places]
        owners += [self._queue_of(special) for special in _BESIDE]
        self.queues.put_back(self._dwords(ended, states), self.now["drawn"], owners)
        self.queues.clear(self._queue_of(_NO_RUN))

    def _after(self) -> tuple[dict[Any, Any], Any]:
        """Computes the values after the step; returns the rows of runs that end with it, and which do."""
        builder, outcome = self.builder, self.traced.now.outcome
        names = [name for name in self.layout.pieces if name[0] != "state" and name not in ("drawn", _LOSSES)]
        self.now = {name: self._known(name) for name in names}
        self.next = dict(self.now)
        self.next["step"] = builder.add(self.now["step"], self._get("taken"))
        self.next["messages"] = builder.add(self.now["messages"], self._sized(self._get("sent"), self.message_bits))
        self.next["met"] = builder.or_(self.now["met"], self._get("met"))
        here = self._get("here")
        if self.exposed:
            here = builder.or_(here, builder.and_(self.now["exposing"], self._get("elsewhere")))

        emitter = self._emitter(lambda name, width: self._sized(self._value(name), width), [outcome])
        row, ended = self._ends(emitter.get(outcome, self.number_bits), here, self._get("redo"))
        over = self._get("over")
        row["outcome"] = builder.select(over, self._number(HORIZON), row["outcome"])
        ended = builder.or_(ended, builder.or_(over, self._get("begins")))
        return row, builder.and_(ended, self.there)

    def _known(self, name: Any) -> Any:
        """A value of the block's records, as `now` has it."""
        if name == "time" or name[0] == "exposed":
            return self.builder.bitcast(self._value(name), lanes_of(DOUBLE, RUNS))
        widths = {"run": DWORD, "group": self.mask_bits, "messages": self.message_bits}
        what = name if isinstance(name, str) else name[0]
        return self._sized(self._value(name), widths.get(what, self.number_bits))

    def _drawn(self, doomed: Any) -> Any:
        """Returns each run's draw, a bit of the masks or one of _BESIDE; writes the time after the wait to `now`."""
        builder, choice, limits = self.builder, self.choice, self.limits
        beside = DWORD * len(self.groups)

        def special(kind: int) -> Any:
            return constant(self._kind(DWORD), beside + kind)

        drawn = builder.add(only_bit(builder, choice.hot), choice.first_bit())
        drawn = builder.select(builder.or_(choice.is_open, self.rejected), special(_OPEN), drawn)
        if limits.lifetime_weight:
            expired = builder.and_(choice.expired, builder.not_(self.rejected))
            drawn = builder.select(expired, special(_OVER), drawn)
        if limits.timed:
            time = self._later()
            if limits.horizon != float("inf"):
                horizon = constant(time.type, limits.horizon)
                beyond = builder.fcmp_ordered(">", time, horizon)
                drawn, time = builder.select(beyond, special(_OVER), drawn), builder.select(beyond, horizon, time)
            self.now["time"] = time
        if doomed is not None:
            drawn = builder.select(doomed, special(_OPEN), drawn)
        return builder.select(self.now["live"], drawn, special(_NO_RUN))

    def _dwords(self, ended: Any, fresh: dict[Any, Any]) -> list[Any]:
        """The records of the runs: `now`, and the states of the block, or if ended `fresh` ones."""
        builder, layout, known = self.builder, self.layout, dict[Any, Any]()
        for name in layout.pieces:
            if name[0] != "state":
                value = self.now[name]
                known[name] = builder.bitcast(value, self._kind(64)) if value.type.element == DOUBLE else value
        others, states, of_states = (
            layout.packed(builder, known),
            layout.packed(builder, fresh),
            layout.taken(list(fresh)),
        )
        dwords = []
        for number in range(LINE * layout.num_lines):
            value = others.get(number, constant(self._kind(DWORD), 0))
            if number in states:
                before = builder.and_(self.queues.dword(number), constant(value.type, of_states[number]))
                value = builder.or_(value, builder.select(ended, states[number], before))
            dwords.append(value)
        return dwords


def _bits(most: int) -> int:
    """The bits that numbers up to this one may have."""
    return (1 << most.bit_length()) - 1
