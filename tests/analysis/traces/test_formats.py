"""Words, states and diagrams of traces: complete, true to the steps, and valid in their formats."""

import re
from collections import Counter
from functools import cache
from itertools import islice
from xml.etree import ElementTree as ET

import pytest

from quorisk.analysis.traces import formats, sequence, trace
from quorisk.analysis.traces.sequence import ARRIVED, LOST, UNDELIVERED, Arrow, Diagram, NoteBox, sequence_svg
from quorisk.kernels.model import MESSAGE_LOSS
from quorisk.kernels.ops import bits
from quorisk.kernels.protocols import registry
from quorisk.kernels.protocols.bookkeeper import MODEL as BOOKKEEPER
from quorisk.kernels.protocols.bookkeeper.describe import Entry, SpecState
from quorisk.kernels.protocols.raft import MODEL as RAFT
from quorisk.kernels.protocols.raft.layout import LEADER, entry_of
from quorisk.kernels.telling import Function, Message, Note, SpecSet, Told
from tests.analysis.traces.showcases import SHOWCASES, showcase
from tests.support import EACH_PROTOCOL, ROOT, params_of, random_walks

DATA = ROOT / "tests" / "data"
GALLERY = ROOT / "docs" / "gallery"
STEPS = 700
"""Most steps of the random runs of one configuration."""
FEW_STEPS = 200
"""The same of a protocol whose steps take long."""
SVG = "{http://www.w3.org/2000/svg}"


@cache
def steps_of(protocol, most=STEPS):
    """(params, state, action, instance, lost, next state) of random runs of all kinds."""
    model, cases = registry.load(protocol), registry.cases(protocol)
    found = []
    for given in cases.walks:
        params = params_of(model, **given)
        steps = islice(random_walks(model, params, walks=20, seed=5, rarely=cases.rarely), most)
        found += [(params, *step) for step in steps]
    return model, found


@cache
def told_steps_of(protocol):
    """The same steps, each with what is told of it."""
    model, steps = steps_of(protocol)
    teller = registry.teller(model)
    told = []
    for params, state, action, instance, lost, after in steps:
        words = teller.tell(state, params, action.name, instance, after)
        told.append((params, state, action, instance, lost, after, words))
    return model, told


@pytest.mark.parametrize("protocol", EACH_PROTOCOL)
def test_every_action_has_its_words_and_every_step_its_participants(protocol):
    model, steps = told_steps_of(protocol)
    teller = registry.teller(model)
    told_actions: Counter[str] = Counter()
    for params, _, action, *_, told in steps:
        told_actions[action.name] += 1
        arrows = (*told.received, *told.sent, *told.lost)
        named = {name for arrow in arrows for name in arrow[:2]} | {name for note in told.notes for name in note.over}
        assert told.words
        assert "None" not in told.words
        assert "{}" not in told.words or protocol == "compaction"
        assert named <= set(teller.participants(params))
        assert all(arrow.sender != arrow.receiver for arrow in arrows)
        assert arrows or told.notes or action.name in registry.cases(protocol).silent, action.name
    assert set(told_actions) == {action.name for action in model.actions}


def test_messages_told_are_those_that_the_model_sends_loses_and_delivers():
    model, steps = told_steps_of("bookkeeper")
    flying: set[Message] = set()
    for params, state, action, instance, lost, _, told in steps:
        if state == model.initial(params, 0):
            flying = set()
        sent = action.sends(state, params, instance) if action.lost_with == MESSAGE_LOSS else 0
        down = {f"b{b + 1}" for b in bits(state.b_down)}
        by_chance = [message for message in told.lost if message.receiver not in down]
        assert (len(told.sent), len(by_chance)) == ((sent & ~lost).bit_count(), (sent & lost).bit_count())
        assert not down & {message.receiver for message in told.sent}
        delivered = [message for message in told.received if "zk" not in message]
        if action.name.startswith("bookie_sends") or "receives" in action.name:
            assert len(delivered) == 1
            assert delivered[0] in flying
        else:
            assert not delivered
        flying = (flying | set(told.sent)) - set(delivered)


def test_what_a_ledger_does_is_told():
    """By the model's own fields: fencing, acknowledgements, the metadata store."""
    _, steps = told_steps_of("bookkeeper")
    seen: Counter[bool] = Counter()
    for _, state, *_, after, told in steps:
        fenced = {f"b{b + 1}" for b in bits(after.b_fenced & ~state.b_fenced)}
        assert {note.over[0] for note in told.notes if note.text == "fenced"} == fenced
        entries = [f"e{e}" for e in range(state.writer.lac + 1, after.writer.lac + 1)]
        said = [note for note in told.notes if note.text.startswith("acknowledges")]
        assert [note.text for note in said] == ([f"acknowledges {', '.join(entries)} to its caller"] if entries else [])
        assert all(note.over == (f"w{after.creator}",) for note in said)
        to_zk = [message for message in told.received if message.receiver == "zk"]
        assert len(to_zk) == (after.meta_version != state.meta_version)
        seen.update([*map(bool, (fenced, said, to_zk))])
    assert seen[True] > 100


@pytest.mark.parametrize("name", SHOWCASES)
def test_the_gallery_is_what_is_drawn_now(name):
    assert formats.picture(showcase(name)) == (GALLERY / f"{name}.svg").read_text()


@pytest.mark.parametrize(
    ("name", "form"), [("defect1", "sequencediagram"), ("defect2", "mermaid"), ("kip101", "words"), ("kip101", "tlc")]
)
def test_texts_are_as_they_were_read_and_found_good(name, form):
    found = showcase(name)
    assert formats.FORMATS[form](found, trace.replay_in_words(found)) == (DATA / f"{name}.{form}").read_text()


@pytest.mark.parametrize("name", SHOWCASES)
def test_mermaid_names_every_participant_and_leaves_no_character_of_its_own(name):
    found = showcase(name)
    first, heading, *lines = formats.mermaid(found, trace.replay_in_words(found)).splitlines()
    assert first == "sequenceDiagram"
    assert heading.startswith("    title ")
    declared = {line.split()[1] for line in lines if line.startswith("    participant ")}
    drawn = [line.strip() for line in lines if not line.startswith("    participant ")]
    for line in drawn:
        match = re.fullmatch(r"(?:(\w+)(->>|--x|--\))(\w+)|Note over (\w+)(?:,(\w+))?): (.+)", line)
        assert match, line
        assert {name for name in match.group(1, 3, 4, 5) if name} <= declared
        assert not re.search(r"[;<>]", re.sub(r"#\d+;|<br/>", "", match[6]))
    assert len(drawn) == len(formats.diagram(found, trace.replay_in_words(found)).rows)


def test_mermaid_text_is_escaped():
    assert formats._mermaid_text("a;b #1 <x>\nc") == "a#59;b #35;1 #60;x#62;<br/>c"


@pytest.mark.parametrize("name", ["defect1", "defect2"])
def test_lost_messages_are_drawn_as_lost_in_every_diagram(name):
    found = showcase(name)
    replayed = trace.replay_in_words(found)
    num_lost = sum(step.lost.bit_count() for step in found.path.steps)
    assert sum(len(told.lost) for told in replayed.told) == num_lost
    assert formats.mermaid(found, replayed).count("--x") == num_lost
    assert formats.sequencediagram(found, replayed).count("--x") == num_lost
    root = ET.fromstring(formats.svg(found, replayed))
    crosses = [path for path in root.iter(f"{SVG}path") if path.get("d", "").count("M") == 2]
    assert len(crosses) == num_lost
    dashed = [line for line in root.iter(f"{SVG}line") if line.get("stroke-dasharray")]
    late = [row for row in formats.diagram(found, replayed).rows if isinstance(row, Arrow) and row.fate == UNDELIVERED]
    assert len(dashed) == num_lost + len(late)
    if name == "defect2":
        assert num_lost == 2


def test_each_message_is_drawn_once_where_it_arrives_or_else_where_it_is_sent():
    """Of the README's first diagram: the entry reaches b2 only after the recovery client has read there."""
    found = showcase("defect1")
    rows = formats.diagram(found, trace.replay_in_words(found)).rows
    arrows = [row for row in rows if isinstance(row, Arrow)]
    adds = [row for row in arrows if row.sender == "w1" and row.label.startswith("e1")]
    assert sorted((row.receiver, row.fate) for row in adds) == [
        ("b1", UNDELIVERED),
        ("b2", ARRIVED),
        ("b3", ARRIVED),
    ]
    (reading,) = (row for row in arrows if row.label == "NoSuchEntry e1" and row.sender == "b2")
    (late,) = (row for row in adds if row.receiver == "b2")
    assert reading.step < late.step
    assert late.sent_step == adds[0].step
    assert isinstance(rows[-1], NoteBox)
    assert rows[-1].strong
    assert rows[-1].over == ("w1", "zk")


@pytest.mark.parametrize("run", range(12))
def test_every_step_of_any_run_has_its_row(run):
    """Also one that only sends, and of which all will be drawn where it is received."""
    again = trace.of_run(BOOKKEEPER, showcase("defect2").grid_point, 1, run)
    rows = formats.diagram(again, trace.replay_in_words(again)).rows
    assert list(dict.fromkeys(row.step for row in rows)) == list(range(1, len(again.path.steps) + 1))


def test_states_are_numbered_and_have_every_variable():
    found = showcase("defect1")
    replayed = trace.replay_in_words(found)
    text = formats.tlc(found, replayed)
    assert re.findall(r"^State (\d+): <", text, re.MULTILINE) == [str(n) for n in range(1, len(replayed.states) + 1)]
    assert text.count("\n/\\ ") == len(SpecState._fields) * len(replayed.states)
    assert "State 2: <ClientCreatesLedger>" in text
    last = text.split("State 18:")[1]
    assert "/\\ meta_status = STATUS_CLOSED" in last
    assert "/\\ b_fenced = <<TRUE, FALSE, TRUE>>" in last
    assert "lac |-> 1" in last
    [fence] = re.findall(r"^    <<.*FenceRequestMessage, bookie \|-> 1, cid \|-> 1.*, 1>>", last, re.MULTILINE)
    assert fence.count("type") == 1  # on its way, in the one line that it has


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "TRUE"),
        (0, "0"),
        ("Nil", "Nil"),
        ((), "<<>>"),
        ((1, (2,)), "<<1, <<2>>>>"),
        (SpecSet(("a", "b")), "{a, b}"),
        (Function(()), "<<>>"),
        (Function((("b1", 1), (2, SpecSet(())))), "(b1 :> 1 @@ 2 :> {})"),
        ({"id": 1, "data": False}, "[id |-> 1, data |-> FALSE]"),
        (Entry(1, None), "[id |-> 1, data |-> Nil]"),
        (frozenset({10, 2}), "{2, 10}"),
        ("", '""'),
    ],
)
def test_values_are_written_as_tla_writes_them(value, text):
    assert formats.tla(value) == text


DIAGRAM = Diagram(
    "A <title> & more",
    "a caption",
    ("a", "b", "c"),
    (
        Arrow(1, "a", "c", "x < y & 'z' that is a rather long label, longer than there is room for on a line"),
        Arrow(2, "c", "a", "back", ARRIVED, sent_step=1),
        Arrow(3, "a", "b", "gone", LOST),
        Arrow(3, "b", "c", "late", UNDELIVERED),
        NoteBox(4, ("c",), "a note at the right edge with many words in it"),
        NoteBox(4, ("a", "c"), "first\nsecond", strong=True),
    ),
)


def test_a_picture_is_well_formed_and_escaped():
    root = ET.fromstring(sequence_svg(DIAGRAM))
    said = " ".join(text.text or "" for text in root.iter(f"{SVG}text"))
    for expected in ("A <title> & more", "x < y & 'z' that is", "back (sent at 1)"):
        assert expected in said
    assert not [element.tag for element in root.iter() if element.tag.removeprefix(SVG) in ("script", "image", "a")]


def extents(root):
    """(left, right, top, bottom) of every text, and of every box but the paper."""
    texts, boxes = [], []
    for text in root.iter(f"{SVG}text"):
        size, x, y = float(text.get("font-size", "12")), float(text.get("x", "")), float(text.get("y", ""))
        width = sequence._width(text.text or "", size) * (1.12 if text.get("font-weight") else 1)
        left = {"start": x, "middle": x - width / 2, "end": x - width}[text.get("text-anchor", "start")]
        texts.append((left, left + width, y - 0.75 * size, y))
    for box in root.iter(f"{SVG}rect"):
        if box.get("width") != "100%":
            x, y, width, height = (float(box.get(name, "")) for name in ("x", "y", "width", "height"))
            boxes.append((x, x + width, y, y + height))
    return texts, boxes


@pytest.mark.parametrize("name", [None, *SHOWCASES])
def test_nothing_leaves_its_frame_or_overlaps_another(name):
    root = ET.fromstring((GALLERY / f"{name}.svg").read_text() if name else sequence_svg(DIAGRAM))
    _, _, width, height = map(float, root.get("viewBox", "").split())
    for shapes in extents(root):
        assert len(shapes) > 6
        for i, (left, right, top, bottom) in enumerate(shapes):
            assert 0 <= left <= right <= width
            assert 0 <= top <= bottom <= height
            for other in shapes[i + 1 :]:
                assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top


def test_numbers_stand_at_the_first_row_of_each_step():
    root = ET.fromstring(sequence_svg(DIAGRAM))
    numbers = [text.text for text in root.iter(f"{SVG}text") if text.get("text-anchor") == "end"]
    assert numbers == ["1", "2", "3", "4"]


def test_verdicts_say_what_is_broken():
    """In every state of random runs that breaks something: in words, and with the entries and bookies at hand."""
    seen: Counter[str] = Counter()
    for protocol in ("bookkeeper", "compaction", "kafka", "kraft"):
        model, steps = steps_of(protocol, FEW_STEPS) if protocol == "kraft" else steps_of(protocol)
        teller = registry.teller(model)
        for params, *_, after in steps:
            for invariant in model.invariants:
                if not invariant.holds(after, params):
                    assert len(teller.verdict(after, params, invariant.name)) > 20
                    seen[invariant.name] += 1
    assert {"StrongIsr", "WeakIsr", "CommittedRecordsSurvive", "CompactedLedgerLeak"} <= set(seen)
    assert {"CompactionHorizonCorrectness", "DuplicateNullKeyMessage"} <= set(seen)
    assert {"AckedRecordsSurvive", "NoCommittedRecordLostGlobally", "LeaderCompletenessProperty"} <= set(seen)


def test_verdicts_on_a_raft_group():
    """Each invariant is broken by hand in its first state: random runs hardly ever break one."""
    params = params_of(RAFT, servers=3, values=2)
    start = RAFT.initial(params, 0)
    acked = start._replace(requested=start.requested.put(0, 1), acked=start.acked.put(0, 1))
    leads = start.role.put(0, LEADER)
    one = start._replace(log=start.log.put(0, entry_of(1, 0)), length=start.length.put(0, 1))
    one = one._replace(commit_index=start.commit_index.put(0, 1))
    two = one._replace(log=one.log.put(1, entry_of(2, 1)), length=one.length.put(1, 1))
    logs = "n1: A (term 1), committed 1; n2: {}; n3: empty, committed 0."
    for name, state, said in [
        ("AckedValuesSurvive", acked, "A is acknowledged, and in no server's log."),
        (
            "LeaderHasAllAckedValues",
            acked._replace(role=leads),
            "A is acknowledged, and not in the log of n1, which leads now.",
        ),
        (
            "CommittedEntriesReachMajority",
            one._replace(role=leads),
            "What a leader has committed is not on a majority: " + logs.format("empty, committed 0"),
        ),
        (
            "NoLogDivergence",
            two._replace(commit_index=one.commit_index.put(1, 1)),
            "Logs differ where both are committed: " + logs.format("B (term 2), committed 1"),
        ),
    ]:
        [invariant] = [each for each in RAFT.invariants if each.name == name]
        assert invariant.holds(start, params)
        assert not invariant.holds(state, params)
        assert registry.teller(RAFT).verdict(state, params, name) == said


def test_verdicts_on_a_closed_ledger():
    """Of a ledger that closed well, and with what breaks the other invariants put in by hand."""
    _, steps = steps_of("bookkeeper")
    params, state = next((p, s) for p, *_, s in steps if s.meta_status == 3 and s.closed and s.meta_last_entry)
    teller = registry.teller(BOOKKEEPER)
    nothing_stored = state._replace(b_entries=0)
    for place, name, said in [
        (
            1,
            "AllAckedEntriesAreReadable",
            r"Acknowledged, but unreadable: e1 belongs on \{b.*\}, and none of these stores it",
        ),
        (
            2,
            "AllCommittedEntriesReachAckQuorum",
            r"Fewer than 2: e1 belongs on \{b\d, b\d, b\d\}, and none of these stores it",
        ),
    ]:
        assert BOOKKEEPER.invariants[place].holds(state, params)
        assert not BOOKKEEPER.invariants[place].holds(nothing_stored, params)
        assert re.match(said, teller.verdict(nothing_stored, params, name))
    disowned = state._replace(closed=0, writer_status=4)
    assert not BOOKKEEPER.invariants[0].holds(disowned, params)
    assert "clients say they did" in teller.verdict(disowned, params, "NoDivergenceBetweenClientAndMetaData")


def test_a_step_in_words_says_each_thing_once():
    words = "the cluster loses power; b1 and b2 are lost for good"
    notes = (Note(("b1", "b3"), words), *(Note((name,), "lost for good") for name in ("b1", "b2")))
    assert formats.step_sentence(Told(words, notes=notes)) == words
    assert formats.step_sentence(Told(words, notes=(*notes, Note(("b3",), "e1 gone")))) == f"{words}; b3: e1 gone"
    assert formats.step_sentence(Told("b1 is fenced", notes=(Note(("b2",), "fenced"),))) == "b1 is fenced; b2: fenced"
