"""The memory of a run of the scalar kernel: its state and what is known of it, but for what registers hold."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from quorisk.kernels.tracing.machine import DOUBLE, I1, I64, constant

AHEAD = 8
"""Steps for which the random numbers are drawn at a time."""


class Scratch:
    """Emits loads and stores of words of 64 bits. The leaves of the state come first, by their places."""

    def __init__(
        self,
        builder: ir.IRBuilder,
        pointer: Any,
        num_leaves: int,
        num_groups: int,
        num_invariants: int,
        exposures: Sequence[int],
    ) -> None:
        """`exposures` are the places of those whose times are told."""
        self.builder, self.pointer, self.exposures = builder, pointer, exposures
        self.masks = num_leaves
        self.broken = self.masks + num_groups
        self.met = self.broken + 1
        self.exposing = self.met + 1
        self.first_steps = self.exposing + 1
        self.exposed = self.first_steps + num_invariants
        self.draws = self.exposed + num_invariants
        self.num_words = self.draws + 3 * AHEAD

    def place(self, word: Any) -> Any:
        """The address of a word."""
        return self.builder.gep(self.pointer, [word], source_etype=I64)

    def load(self, word: int, kind: Any = I64) -> Any:
        """A word, as an integer if nothing else is said."""
        return self.builder.load(self.place(constant(I64, word)), typ=kind)

    def store(self, word: int, value: Any) -> None:
        """Stores an integer or a floating-point number."""
        self.builder.store(value, self.place(constant(I64, word)))

    def clear(self) -> None:
        """What is known of a run before its first step: nothing is broken, and nothing was met."""
        for word in (self.broken, self.met, self.exposing, *(self.exposed + place for place in self.exposures)):
            self.store(word, constant(I64, 0))

    def is_exposed(self, invariant: int) -> Any:
        """Whether that exposure lasts, as far as it was looked at."""
        return self.builder.trunc(self.builder.lshr(self.load(self.exposing), constant(I64, invariant)), I1)

    def expose(self, invariant: int, is_broken: Any, time: Any) -> None:
        """Takes the time at which an exposure begins off what it lasted, and adds that at which it ends."""
        builder, word = self.builder, self.exposed + invariant
        was, before = self.is_exposed(invariant), self.load(word, DOUBLE)
        after = builder.select(was, builder.fadd(before, time), builder.fsub(before, time))
        changed = builder.xor(was, is_broken)
        self.store(word, builder.select(changed, after, before))
        bit = builder.shl(builder.zext(changed, I64), constant(I64, invariant))
        self.store(self.exposing, builder.xor(self.load(self.exposing), bit))

    def lasted(self, invariant: int, end: Any) -> Any:
        """The bits of the time for which an exposure lasted in a run that ends then."""
        builder, before = self.builder, self.load(self.exposed + invariant, DOUBLE)
        lasted = builder.select(self.is_exposed(invariant), builder.fadd(before, end), before)
        return builder.bitcast(lasted, I64)
