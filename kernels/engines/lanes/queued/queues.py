"""Runs wait in the queue of the word that they draw, until as many wait as there are lanes."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from quorisk.kernels.engines.lanes.parts.rows import LINE_WORDS
from quorisk.kernels.engines.lanes.queued.records import LINE, RUNS, turned
from quorisk.kernels.tracing.machine import I8, I16, I32, I64, constant, lanes_of, splat

POOL = 512
"""Runs under way at a time: their records stay in the processor's cache."""


class Queues:
    """Emits moves of runs between their records, the queues, and a block: the records of the runs that take a step.

    A run is identified by the place of its record, in bytes. A block has a vector for each dword of the records.
    """

    def __init__(self, builder: ir.IRBuilder, num_lines: int, num_queues: int) -> None:
        self.builder, self.num_lines, self.num_queues = builder, num_lines, num_queues
        self.capacity = POOL + RUNS
        self._record_bytes = 8 * LINE_WORDS * num_lines
        self._nobody = POOL * self._record_bytes
        self._kind = lanes_of(I32, RUNS)
        self.num_words = 0
        self._records = self._room((POOL + 1) * num_lines * LINE // 2)
        self._block = self._room(num_lines * LINE * RUNS // 2)
        self._ends = self._room(num_queues)
        self._waiting = self._room(num_queues * self.capacity // 2)
        self._runs, self._bits = self._room(RUNS // 2), self._room(RUNS // 2)
        self.memory: Any = None
        """Address of all these, at the beginning of a line of the processor's cache."""

    def _room(self, words: int) -> int:
        start = self.num_words
        self.num_words += -(-words // LINE_WORDS) * LINE_WORDS
        return start

    def at(self, word: int, index: Any = None, kind: Any = I64) -> Any:
        """Address of a word, or of number `index` of the values of a kind that begin there."""
        place = self.builder.gep(self.memory, [constant(I64, word)], source_etype=I64)
        return place if index is None else self.builder.gep(place, [index], source_etype=kind)

    def start(self, queue: int) -> None:
        """Puts all runs into that queue. Leaves the builder in another block."""
        builder, function = self.builder, self.builder.function
        for i in range(self.num_queues):
            end = i * self.capacity + (POOL if i == queue else 0)
            builder.store(constant(I64, end), self.at(self._ends, constant(I64, i)))
        loop, after, before = function.append_basic_block("fill"), function.append_basic_block("filled"), builder.block
        builder.branch(loop)
        builder.position_at_end(loop)
        i = builder.phi(I64)
        place = builder.trunc(builder.mul(i, constant(I64, self._record_bytes)), I32)
        entry = builder.add(i, constant(I64, queue * self.capacity))
        builder.store(place, self.at(self._waiting, entry, I32))
        following = builder.add(i, constant(I64, 1))
        i.add_incoming(constant(I64, 0), before)
        i.add_incoming(following, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, constant(I64, POOL)), loop, after)
        builder.position_at_end(after)

    def num_waiting(self, queue: Any) -> Any:
        """Returns the number of runs that wait in a queue."""
        first = self.builder.mul(queue, constant(I64, self.capacity))
        return self.builder.sub(self.builder.load(self.at(self._ends, queue), typ=I64), first)

    def take(self, queue: Any, num: Any) -> Any:
        """Loads the block with the last `num` runs of a queue; returns in which lanes they are.

        Other lanes have the record of no run, whose content is undefined.
        """
        builder = self.builder
        place = self.at(self._ends, queue)
        first = builder.sub(builder.load(place, typ=I64), num)
        builder.store(first, place)
        runs = builder.load(self.at(self._waiting, first, I32), typ=self._kind, align=4)
        lanes = ir.Constant(self._kind, list(range(RUNS)))
        there = builder.icmp_unsigned("<", lanes, splat(builder, builder.trunc(num, I32), RUNS))
        runs = builder.select(there, runs, constant(self._kind, self._nobody))
        builder.store(runs, self.at(self._runs), align=64)
        for line in range(self.num_lines):
            rows = [builder.load(self._record(self._run(i), line), typ=self._kind, align=64) for i in range(RUNS)]
            for i, column in enumerate(turned(builder, rows)):
                self.set_dword(LINE * line + i, column)
        return there

    def dword(self, number: int) -> Any:
        """Returns a dword of the block."""
        return self.builder.load(self.at(self._block + number * RUNS // 2), typ=self._kind, align=64)

    def set_dword(self, number: int, value: Any) -> None:
        """Changes a dword of the block."""
        self.builder.store(value, self.at(self._block + number * RUNS // 2), align=64)

    def put_back(self, dwords: Sequence[Any], bits: Any, owners: Sequence[int]) -> None:
        """Stores these records for the runs of the block, and puts each run into the queue of the bit that it drew."""
        builder = self.builder
        for line in range(self.num_lines):
            for i, row in enumerate(turned(builder, dwords[LINE * line : LINE * (line + 1)])):
                builder.store(row, self._record(self._run(i), line), align=64)
        builder.store(bits, self.at(self._bits), align=64)
        table = ir.GlobalVariable(builder.module, ir.ArrayType(I16, len(owners)), "queues")
        table.global_constant, table.initializer = True, ir.Constant(table.value_type, list(owners))
        for i in range(RUNS):
            bit = builder.zext(builder.load(self.at(self._bits, constant(I64, i), I32), typ=I32), I64)
            queue = builder.zext(builder.load(builder.gep(table, [constant(I64, 0), bit]), typ=I16), I64)
            end = builder.load(self.at(self._ends, queue), typ=I64)
            builder.store(builder.trunc(self._run(i), I32), self.at(self._waiting, end, I32))
            builder.store(builder.add(end, constant(I64, 1)), self.at(self._ends, queue))

    def clear(self, queue: int) -> None:
        """Empties a queue."""
        end = constant(I64, queue * self.capacity)
        self.builder.store(end, self.at(self._ends, constant(I64, queue)))

    def _run(self, lane: int) -> Any:
        return self.builder.zext(self.builder.load(self.at(self._runs, constant(I64, lane), I32), typ=I32), I64)

    def _record(self, run: Any, line: int) -> Any:
        return self.at(self._records + LINE_WORDS * line, run, I8)
