"""A trace as people and other programs read it: words, TLC's states, sequence diagrams.

A diagram shows a message where it is received, as the diagrams in the README of the BookKeeper specification do; one
that is lost, or not received before the trace ends, where it is sent.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from quorisk.analysis.traces.sequence import ARRIVED, LOST, UNDELIVERED, Arrow, Diagram, NoteBox, sequence_svg
from quorisk.analysis.traces.trace import Replayed, Trace, params_of, replay_in_words
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import MESSAGE_LOSS
from quorisk.kernels.protocols import registry
from quorisk.kernels.rule import loss_names
from quorisk.kernels.telling import Function, Message, SpecSet, Told
from quorisk.say.numbers import counted

_LATE_STEPS = 5
"""Steps after which a message that arrives says when it was sent."""
_TLC_WIDTH = 100


def diagram(trace: Trace, replayed: Replayed) -> Diagram:
    """Returns the sequence diagram of a trace; participants to whom nothing happens are left out."""
    rows = list(_rows(trace, replayed))
    everybody = registry.teller(trace.model).participants(params_of(trace))
    named = {name for row in rows for name in ((row.sender, row.receiver) if isinstance(row, Arrow) else row.over)}
    present = tuple(name for name in everybody if name in named)
    if trace.invariant:
        last = len(trace.path.steps)
        rows.append(NoteBox(last, (present[0], present[-1]), replayed.verdict, strong=True))
    return Diagram(title(trace), f"{sizes_and_settings(trace)}\n{origin(trace)}", present, tuple(rows))


def picture(trace: Trace) -> str:
    """Returns the trace as a sequence diagram, SVG."""
    return sequence_svg(diagram(trace, replay_in_words(trace)))


def _rows(trace: Trace, replayed: Replayed) -> Iterator[Arrow | NoteBox]:
    """Rows of each step: arriving messages, changes, and lost messages; if there are none, sent messages."""
    arrivals = {message: number for number, told in enumerate(replayed.told, 1) for message in told.received}
    sent: dict[Message, int] = {}
    for number, told in enumerate(replayed.told, 1):
        since = {each: sent[each] for each in told.received if number - sent.get(each, number) > _LATE_STEPS}
        rows: list[Arrow | NoteBox] = [Arrow(number, *m, ARRIVED, since.get(m)) for m in told.received]
        rows += [NoteBox(number, note.over, note.text) for note in told.notes]
        rows += [Arrow(number, *message, LOST) for message in told.lost]
        rows += [Arrow(number, *m, UNDELIVERED) for m in told.sent if arrivals.get(m, 0) <= number]
        yield from rows or _sending(number, told)
        sent |= dict.fromkeys(told.sent, number)


def _sending(number: int, told: Told) -> Iterator[NoteBox]:
    """The row of a step that only sends messages, whose arrivals come later."""
    labels = list(dict.fromkeys(message.label for message in told.sent))
    if labels:
        receivers = ", ".join(message.receiver for message in told.sent)
        yield NoteBox(number, (told.sent[0].sender,), f"sends {', '.join(labels)} to {receivers}")


def title(trace: Trace) -> str:
    """Returns the title of a trace."""
    if trace.kind == "run":
        return f"Run {trace.seed}:{trace.run}: {trace.ended}"
    return f"{trace.invariant} breaks in {counted(len(trace.path.steps), 'step')}"


def origin(trace: Trace) -> str:
    """Returns sentences on how the trace was found, and on steps that the rates do not allow."""
    said = {
        "shortest": "No run breaks it in fewer steps.",
        "minimised": f"Random run {trace.seed}:{trace.run}, minimised: no step can be left out.",
        "run": "As the engine ran it.",
        "likeliest": "No other path to a loss is likelier.",
    }
    return " ".join([said[trace.kind], *_beyond_the_rates(trace)])


def _beyond_the_rates(trace: Trace) -> Iterator[str]:
    """Sentences on steps that a search may take and a random run of this point cannot."""
    point, taken = trace.grid_point.point, {trace.model.actions[step.action].name for step in trace.path.steps}
    off = sorted(name for name in taken if point.rates.get(name, 1.0) == 0)
    if off:
        yield f"Takes {', '.join(off)}, whose rate is 0 here."
    lossy = {trace.model.actions[step.action].lost_with for step in trace.path.steps if step.lost}
    for name in (name for name in loss_names(trace.model) if name in lossy and point.p_lost(name) == 0):
        yield f"Loses {'messages' if name == MESSAGE_LOSS else 'what it loses'}, while {name} is 0 here."


def sizes_and_settings(trace: Trace) -> str:
    """Returns a model's sizes, and the settings that differ from their defaults."""
    values = trace.grid_point.point.values
    sizes = [
        f"{p.name} {values[p.name]}"
        for p in trace.model.parameters
        if p.table == "model" and p.allowed and values[p.name] != p.default_among(values)
    ]
    changed = [
        f"{p.name} {values[p.name] if p.allowed else ('off', 'on')[values[p.name]]}"
        for p in trace.model.parameters
        if p.table != "model" and values[p.name] != p.default_value
    ]
    return f"{trace.model.name}: {', '.join(sizes)}" + (f"; {', '.join(changed)}" if changed else "")


def step_lines(trace: Trace, replayed: Replayed) -> str:
    """Returns a line for each step: the event, and its changes."""
    end = {i.name: ": data loss, where a random run ends" if i.data_loss else "" for i in trace.model.invariants}
    lines = [title(trace), sizes_and_settings(trace), origin(trace), ""]
    for number, told in enumerate(replayed.told, 1):
        lines.append(f"{number:>3}  {step_sentence(told)}")
        lines += [f"     ! {name} is broken{end[name]}" for name in replayed.newly_broken[number]]
    return "\n".join([*lines, *filter(None, [replayed.verdict])]) + "\n"


def step_sentence(told: Told) -> str:
    """Returns a step in words: what happened, and each note that says more than that."""
    lost = [f"lost on the way: {m.label} to {m.receiver}" for m in told.lost]
    said = told.words
    more = [n for n in told.notes if n.text != said and not (said.endswith(n.text) and n.over[0] in said)]
    notes = []
    for over, of_them in groupby(more, lambda note: note.over):
        texts = "; ".join(note.text for note in of_them)
        notes.append(f"{over[0]}: {texts}" if len(over) == 1 else texts)
    return "; ".join(" ".join(part.split()) for part in (said, *lost, *notes))


def tlc(trace: Trace, replayed: Replayed) -> str:
    """TLC's error trace: numbered states with every variable of the specification."""
    teller, params = registry.teller(trace.model), params_of(trace)
    head = f"Error: Invariant {trace.invariant} is violated.\n" if trace.invariant else ""
    parts = [f"{head}The behavior up to this point is:" if head else f"{title(trace)}:"]
    taken = (trace.model.actions[step.action].name.split("_") for step in trace.path.steps)
    names = ["Initial predicate", *("".join(map(str.capitalize, words)) for words in taken)]
    for number, (name, state) in enumerate(zip(names, replayed.states, strict=True), 1):
        lines = [_assigned(variable, value) for variable, value in _fields(teller.variables(state, params)).items()]
        parts.append("\n".join([f"State {number}: <{name}>", *lines]))
    return "\n\n".join(parts) + "\n"


def _assigned(variable: str, value: Any) -> str:
    """A conjunct of a state; a set, sequence or function too long for a line has one for each element."""
    line = f"/\\ {variable} = {tla(value)}"
    if len(line) <= _TLC_WIDTH or not isinstance(value, frozenset | tuple) or not value:
        return line
    opening, elements, between, closing = _parts(value)
    return f"/\\ {variable} = {opening}" + f"{between.rstrip()}\n    ".join(elements) + closing


def _fields(record: Any) -> Mapping[str, Any]:
    """Fields of a record: those of a named tuple, or the mapping itself."""
    return record if isinstance(record, Mapping) else record._asdict()


def tla(value: Any) -> str:
    """Returns a value as TLA+ writes it; None is Nil."""
    if isinstance(value, frozenset | tuple | dict):
        opening, elements, between, closing = _parts(value)
        return opening + between.join(elements) + closing
    if isinstance(value, bool):
        return str(value).upper()
    return "Nil" if value is None else str(value) or '""'


def _parts(value: Any) -> tuple[str, list[str], str, str]:
    """Parts of a value in TLA+: (opening, elements, between, closing)."""
    if isinstance(value, Function) and value.items:
        return "(", [f"{tla(key)} :> {tla(of)}" for key, of in value.items], " @@ ", ")"
    if isinstance(value, frozenset):
        return "{", sorted(map(tla, value), key=lambda text: (len(text), text)), ", ", "}"
    if isinstance(value, SpecSet):
        return "{", [*map(tla, value.elements)], ", ", "}"
    if isinstance(value, dict) or (hasattr(value, "_fields") and not isinstance(value, Function)):
        return "[", [f"{key} |-> {tla(of)}" for key, of in _fields(value).items()], ", ", "]"
    return "<<", [] if isinstance(value, Function) else [*map(tla, value)], ", ", ">>"


def mermaid(trace: Trace, replayed: Replayed) -> str:
    """Mermaid's sequenceDiagram."""
    arrows = {ARRIVED: "->>", LOST: "--x", UNDELIVERED: "--)"}
    lines = _lines(diagram(trace, replayed), arrows, "Note", _mermaid_text)
    return "sequenceDiagram\n" + "".join(f"    {line}\n" for line in lines)


def _mermaid_text(text: str) -> str:
    """A text with the characters that Mermaid would interpret as character codes."""
    return re.sub(r"[#;<>]", lambda match: f"#{ord(match[0])};", text).replace("\n", "<br/>")


def sequencediagram(trace: Trace, replayed: Replayed) -> str:
    """Source for sequencediagram.org, as in the README of the BookKeeper specification."""
    arrows = {ARRIVED: "->", LOST: "--x", UNDELIVERED: "-->>"}
    lines = _lines(diagram(trace, replayed), arrows, "note", lambda text: text.replace("\n", "\\n"))
    return "".join(f"{line}\n" for line in lines)


def _lines(drawn: Diagram, arrows: Mapping[str, str], note: str, written: Callable[[str], str]) -> Iterator[str]:
    """A diagram in a language that calls boxes `note`; `written` is how it writes a text."""
    yield f"title {written(drawn.title)}"
    yield from (f"participant {name}" for name in drawn.participants)
    for row in drawn.rows:
        if isinstance(row, Arrow):
            yield f"{row.sender}{arrows[row.fate]}{row.receiver}: {written(_label(row))}"
        else:
            yield f"{note} over {','.join(row.over)}: {written(row.text)}"


def _label(arrow: Arrow) -> str:
    """The label of an arrow, with a word on late messages, as these formats do not number the steps."""
    late = {ARRIVED: " (sent long before)" if arrow.sent_step else "", UNDELIVERED: " (not received)", LOST: ""}
    return arrow.label + late[arrow.fate]


def svg(trace: Trace, replayed: Replayed) -> str:
    """Returns the sequence diagram as SVG."""
    return sequence_svg(diagram(trace, replayed))


FORMATS: Mapping[str, Callable[[Trace, Replayed], str]] = {
    "words": step_lines,
    "tlc": tlc,
    "mermaid": mermaid,
    "sequencediagram": sequencediagram,
    "svg": svg,
}
BY_SUFFIX = {".svg": "svg", ".mmd": "mermaid", ".json": "json"}
"""Formats by the suffix of a file's name."""
_NO_TEXT = (".gif", ".htm", ".html", ".jpeg", ".jpg", ".pdf", ".png", ".webp")


def chosen_format(form: str | None, out: Path | None) -> str:
    """Returns the format by its name, or by a file's ending: one of FORMATS, or json. Raises ConfigError."""
    suffix = out.suffix.lower() if out else ""
    by_suffix = BY_SUFFIX.get(suffix)
    if suffix in _NO_TEXT or not (form or suffix in (*BY_SUFFIX, ".txt", "")):
        raise ConfigError(f" {out}: {', '.join(BY_SUFFIX)}, or .txt for text; a browser shows .svg", "out")
    if form and by_suffix and form != by_suffix:
        raise ConfigError(f" {out}: ends in {suffix}, which is {by_suffix}, not {form}", "out")
    return form or by_suffix or "words"
