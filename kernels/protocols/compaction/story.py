"""The story of a compacted topic, in words.

Messages are m1, m2, ..., ledgers L1, L2, ...; the broker, in which the compactor runs, keeps horizon and context in
memory, and reads them back from the cursor after a crash.
"""

from collections.abc import Iterable
from typing import Any

from quorisk.kernels import telling
from quorisk.kernels.protocols.compaction.describe import NULL_KEY, NULL_VALUE, Message, SpecState, spec_state
from quorisk.kernels.protocols.compaction.layout import State, max_compacted_ledger_id
from quorisk.kernels.telling import Note, Told, members, words_beside

PRODUCER, TOPIC, BROKER, LEDGERS, CURSOR = "producer", "topic", "broker", "ledgers", "cursor"


WORDS = words_beside(__file__)["steps"]
"""A sentence by action, and the label of a message or a note over the broker, with fields in braces."""


def participants(params: Any) -> tuple[str, ...]:
    """The producer, the broker's tasks, and the broker."""
    return PRODUCER, TOPIC, BROKER, LEDGERS, CURSOR


def tell(state: State, params: Any, action: str, instance: int, after: State) -> Told:
    """The step from `state` to `after` that this action made."""
    before, then, words = spec_state(state, params), spec_state(after, params), WORDS[action]
    old, now = _existing(before), _existing(then)
    newest = max_compacted_ledger_id(after)
    content = then.compactedLedgers[newest - 1] if newest else None
    fields = {
        "message": _spelled(then.messages[-1]) if then.messages else "",
        "read": _or_none("m", then.phaseOneResult.readPosition if then.phaseOneResult else 0),
        "newest": _or_none("L", newest),
        "content": _ids(content or ()),
        "context": _or_none("L", then.compactedTopicContext),
        "horizon": _or_none("m", then.compactionHorizon),
        "rest": _after(then.compactionHorizon),
        "deleted": ", ".join(ledger for ledger in old if ledger not in now) or "nothing",
    }
    notes = [Note((BROKER,), words["note"].format(**fields))] if "note" in words else []
    if old != now:
        notes.append(Note((LEDGERS,), f"there are {members(now)}"))
    arrows = list[telling.Message]()
    if "label" in words:
        arrows.append(telling.Message(words["sender"], words["receiver"], words["label"].format(**fields)))
    return Told(words["sentence"].format(**fields), received=tuple(arrows), notes=tuple(notes))


def verdict(state: State, params: Any, invariant: str) -> str:
    """Returns a sentence on how a state breaks an invariant."""
    spec = spec_state(state, params)
    context, horizon = spec.compactedTopicContext, spec.compactionHorizon
    if invariant == "CompactedLedgerLeak":
        return f"Three ledgers exist, {members(_existing(spec))}: only the last but one is ever deleted."
    read = (spec.compactedLedgers[context - 1] if context else None) or ()
    if invariant == "DuplicateNullKeyMessage":
        twice = [m for m in read if m.key == NULL_KEY and m.id > horizon]
        return f"Readers get {_ids(twice)} twice: from ledger L{context}, and from the topic {_after(horizon)}."
    missing = [
        m
        for m in spec.messages[:horizon]
        if (m.key != NULL_KEY or params.retain_null_key) and not any(n.key == m.key and n.id >= m.id for n in read)
    ]
    held = f"ledger L{context} holds {_ids(read)}" if context else "there is no compacted ledger"
    return f"Readers lose {_ids(missing)}: the horizon is m{horizon}, and {held}."


variables = spec_state
"""The spec's variables, without its consumer's, which changes nothing else."""


def _existing(spec: SpecState) -> list[str]:
    return [f"L{i}" for i, ledger in enumerate(spec.compactedLedgers, 1) if ledger is not None]


def _or_none(letter: str, number: int) -> str:
    return f"{letter}{number}" if number else "none"


def _after(horizon: int) -> str:
    return f"after m{horizon}" if horizon else "from its start"


def _ids(messages: Iterable[Message]) -> str:
    return members(f"m{m.id}" for m in messages)


def _spelled(message: Message) -> str:
    key = f"key {message.key}" if message.key != NULL_KEY else "no key"
    return f"m{message.id} ({key}, {f'value {message.value}' if message.value != NULL_VALUE else 'no value'})"
