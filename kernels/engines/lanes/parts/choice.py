"""The choice of an instance in each lane: the weights of enabled instances, and in whose share the bits drawn lie."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from llvmlite import ir

from quorisk.kernels.engines.lanes.parts.draws import draw_bit, draw_rejected
from quorisk.kernels.engines.lanes.plan import Field, Limits, places
from quorisk.kernels.engines.points import ALWAYS
from quorisk.kernels.ops import popcount
from quorisk.kernels.tracing.machine import Value, constant, lanes_of, resized
from quorisk.kernels.tracing.trace import Word


class Choice:
    """Emits the choice where the builder stands, and leaves the builder in another block."""

    def __init__(
        self,
        builder: ir.IRBuilder,
        masks: Sequence[Any],
        groups: Sequence[int],
        fields: Sequence[Field],
        lifetime_weight: int,
        share_bits: int,
        live: Any,
        word: Any,
    ) -> None:
        """`masks` are the groups' masks of enabled instances, packed as `fields` say; `word` is what each lane draws.

        Weights are added up in `share_bits`. Lanes that are not `live` are not waited for.
        """
        self.builder, self.fields, self.live = builder, fields, live
        self._share = lanes_of(ir.IntType(share_bits), live.type.count)
        sums = self._sums(masks, groups)
        self.total = sums[-1]
        """The weight of all that is enabled, and of the end of the lifetime."""
        if lifetime_weight:
            self.total = builder.add(sums[-1], constant(self._share, lifetime_weight))
        lowest, unsure = self._places(word)
        mask, rest, weight = masks[0], lowest, constant(self._share, groups[0])
        further: list[Any] = []
        for i in range(1, len(groups)):
            further.append(builder.icmp_unsigned(">=", lowest, sums[i - 1]))
            mask = builder.select(further[-1], masks[i], mask)
            weight = builder.select(further[-1], constant(self._share, groups[i]), weight)
        for i, beyond in enumerate(further):
            rest = builder.select(beyond, builder.sub(lowest, sums[i]), rest)
        self.expired: Any = None
        """Whether the end of the lifetime is drawn; None if there is none."""
        if lifetime_weight:
            self.expired = builder.icmp_unsigned(">=", lowest, sums[-1])
            rest = builder.select(self.expired, constant(self._share, 0), rest)
        self.hot, rest = draw_bit(builder, live, mask, rest, weight)
        """The bit drawn, among the masks of its group."""
        self.is_open = builder.icmp_unsigned(">=", builder.add(rest, unsure), weight)
        """Whether the bits drawn leave it open which instance they lead to."""
        self._hot_in = [self._if_inside(i, further) for i in range(len(groups))]

    def is_drawn(self, place: int) -> Any:
        """Whether an instance of the word at that place is drawn."""
        builder, kind, among = self.builder, self.hot.type, dict[int, int]()
        for field in (field for field in self.fields if field.place == place):
            among[field.group] = among.get(field.group, 0) | field.bits
        bits = [builder.and_(self._hot_in[group], constant(kind, bits)) for group, bits in among.items()]
        return builder.icmp_unsigned("!=", reduce(builder.or_, bits), constant(kind, 0))

    def first_bit(self) -> Any:
        """The beginning, by lane, of the group of the bit drawn, if the groups' masks lie behind each other."""
        builder, kind = self.builder, self.hot.type
        first = constant(kind, 0)
        for group in range(1, len(self._hot_in)):
            inside = builder.icmp_unsigned("!=", self._hot_in[group], constant(kind, 0))
            first = builder.select(inside, constant(kind, group * kind.element.width), first)
        return first

    def is_rejected(self, words: Sequence[Word], limits: Limits, seed: Any, run: Any, step: Any) -> Any:
        """Whether the draw is not accepted."""
        builder, (*accepts, of_lifetime) = self.builder, limits.accepts
        here, lanes = [accepts[word.number] for word in words], self.live.type.count
        if all(each == ALWAYS for each in (*here, of_lifetime)):
            return constant(lanes_of(ir.IntType(1), lanes), 0)
        kind = lanes_of(ir.IntType(64), lanes)
        accept = constant(kind, ALWAYS)
        for place, each in enumerate(here):
            if each != ALWAYS:
                accept = builder.select(self.is_drawn(place), constant(kind, each), accept)
        if self.expired is not None:
            accept = builder.select(self.expired, constant(kind, of_lifetime), accept)
        return draw_rejected(builder, self.live, seed, run, step, accept)

    def _sums(self, masks: Sequence[Any], groups: Sequence[int]) -> list[Any]:
        """The weight of the enabled instances in each group and those before it."""
        builder, sums = self.builder, list[Any]()
        for mask, weight in zip(masks, groups, strict=True):
            part = resized(builder, popcount(Value(builder, mask)).value, self._share.element.width)
            if weight != 1:
                part = builder.mul(part, constant(self._share, weight))
            sums.append(builder.add(sums[-1], part) if sums else part)
        return sums

    def _places(self, word: Any) -> tuple[Any, Any]:
        """The first place below the total that the bits drawn lead to, and how far the last one is from it."""
        builder, width = self.builder, self._share.element.width
        drawn, total = Value(builder, word), Value(builder, resized(builder, self.total, 64))
        lowest, unsure = places(drawn, total, width)
        return resized(builder, lowest.value, width), resized(builder, unsure.value, width)

    def _if_inside(self, group: int, further: Sequence[Any]) -> Any:
        """The bit drawn where it is one of that group's, else 0."""
        builder = self.builder
        inside = [*further[group - 1 : group], *map(builder.not_, further[group : group + 1])]
        if not inside:
            return self.hot
        return builder.select(reduce(builder.and_, inside), self.hot, constant(self.hot.type, 0))
