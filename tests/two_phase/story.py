"""Two-phase commit in words: participants are p1, p2, ..."""

from quorisk.kernels.telling import Message, Note, Told
from tests.two_phase import MODEL, MOST

WORDS = ("is working", "is prepared", "has committed", "has aborted")
UNPACKED = {action.name: action.enabled.unpacked for action in MODEL.actions}  # type: ignore[attr-defined]


def name(p):
    return f"p{p + 1}"


def participants(params):
    return tuple(map(name, range(params.participants)))


def tell(state, params, action, instance, after):
    p, *others = UNPACKED[action](instance)
    sent = tuple(Message(name(p), name(q), "I am prepared") for q in others)
    lost = sent and state == after
    note = () if sent else (Note((name(p),), WORDS[after.status[p]]),)
    words = f"{name(p)}: {action}"
    return Told(words, lost=sent, notes=note) if lost else Told(words, received=sent, notes=note)


def verdict(state, params, invariant):
    return "; ".join(f"{name(p)} {WORDS[state.status[p]]}" for p in range(params.participants)) + "."


def variables(state, params):
    return {
        "status": tuple(WORDS[state.status[p]] for p in range(params.participants)),
        "forced": tuple(bool(state.forced[p]) for p in range(params.participants)),
        "knows": tuple(tuple(bool(state.knows[p, q]) for q in range(MOST)) for p in range(params.participants)),
        "crashes": state.crashes[0],
    }
