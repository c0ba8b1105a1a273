"""Traces: counterexamples are runs of the model that end at the breach, as short as they say, and runs come again."""

from typing import Any

import numpy as np
import pytest

from quorisk.analysis.estimate.estimate import only_point
from quorisk.analysis.experiment import config
from quorisk.analysis.traces import find, formats, minimise, trace
from quorisk.kernels import paths
from quorisk.kernels.engines import numba_engine, points
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.ops import bits
from quorisk.kernels.protocols.bookkeeper import MODEL as BOOKKEEPER
from quorisk.kernels.protocols.compaction import MODEL as COMPACTION
from quorisk.kernels.protocols.kafka import MODEL as KAFKA
from quorisk.kernels.states import store
from quorisk.kernels.states.shortest import _step, shortest
from tests.analysis.traces.showcases import CONFIGS, DEPTHS, NO_MEMORY, found_in, showcase
from tests.references import bookkeeper, compaction, kafka, kafka_properties
from tests.support import params_of, values_of


def levels_of_kafka(values):
    """The levels of a breadth-first search by the reference interpreter."""
    level = {kafka.initial(values)}
    seen = set(level)
    while level:
        yield level
        following = {after for s in level for act in kafka.actions(values).values() for after in act(s, values)}
        level = following - seen
        seen |= level


def test_shortest_traces_are_as_short_as_the_reference_interpreters_find():
    values = dict(showcase("kip101").grid_point.point.values)
    depths = (
        i for i, level in enumerate(levels_of_kafka(values), 1) if not all(map(kafka_properties.strong_isr, level))
    )
    assert next(depths) == DEPTHS["kip101"]
    constants = compaction.Constants(2, 3, 1, 1, RetainNullKey=True, MaxCrashTimes=1, ModelProducer=True)
    leaks = (
        depth
        for depth, level in enumerate(compaction.explore(constants), 1)
        if any("CompactedLedgerLeak" in compaction.broken_invariants(s, constants) for s in level)
    )
    assert next(leaks) == DEPTHS["leaked_ledger"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("switch", ["fence_unknown_ledger", "defer_recovery_ensemble_change", "recovery_lac_floor"])
def test_shortest_traces_of_ledgers(switch):
    sizes = (2, 2, 1, 1, 2, 1) if switch == "recovery_lac_floor" else (1, 2, 1, 1, 1, 1)
    sizes = (2, 2, 1, 1, 1, 1) if switch == "defer_recovery_ensemble_change" else sizes
    names = ("bookies", "clients", "write_quorum", "ack_quorum", "entries", "inflight")
    off: dict[str, Any] = {switch: False}
    params = params_of(BOOKKEEPER, **dict(zip(names, sizes, strict=True)), **off)
    expected = bookkeeper.explore(bookkeeper.Constants(*sizes, **off))["invariants"]
    for place, invariant in enumerate(BOOKKEEPER.invariants):
        found = shortest(BOOKKEEPER, params, 1 << 30, [place])
        depth = expected[invariant.name]["first_depth"]
        assert (len(found.path.steps) + 1 if found.path else None) == depth
        assert found.proved == (depth is None)
        if found.path:
            broken = [
                paths.broken(BOOKKEEPER, s, params) >> place & 1 for s in paths.replay(BOOKKEEPER, params, found.path)
            ]
            assert broken == [0] * (depth - 1) + [1]


def shortest_path(model, params, place):
    path = shortest(model, params, 1 << 30, [place]).path
    assert path
    return path


def test_a_shortest_trace_starts_in_the_right_initial_state():
    """Without a modelled producer every sequence of messages is one; here a run that leaks needs none in particular,
    one that duplicates a message needs one without a key."""
    params = params_of(COMPACTION, model_producer=False, messages=2, compactions=3, max_crashes=1)
    path = shortest_path(COMPACTION, params, 2)
    assert params.sequences == 16
    states = paths.replay(COMPACTION, params, path)
    assert states[0] == COMPACTION.initial(params, path.choice)
    assert COMPACTION.invariants[2].holds(states[-2], params)
    assert not COMPACTION.invariants[2].holds(states[-1], params)


def test_a_shortest_trace_loses_no_message_needlessly():
    params = params_of(BOOKKEEPER, fence_recovery_reads=False)
    path = shortest_path(BOOKKEEPER, params, 0)
    fewer = minimise.losing_less(BOOKKEEPER, params, path, [0])
    lost = [sum(step.lost.bit_count() for step in each.steps) for each in (path, fewer)]
    assert lost[1] < lost[0]
    assert lost[1] == 0  # every message may as well be late
    assert [step[:2] for step in fewer.steps] == [step[:2] for step in path.steps]


def breaks_without_impossible_steps(model, params, path, place):
    """Whether the enabled ones of these steps break the invariant, before other data loss would end the run."""
    state = model.initial(params, path.choice)
    for step in path.steps:
        if step.instance in [i for a, i in paths.instances(model, state, params) if a == step.action]:
            action = model.actions[step.action]
            sent = action.sends(state, params, step.instance)
            state = action.apply(state, params, step.instance, step.lost & sent)
        if not model.invariants[place].holds(state, params):
            return True
        if any(i.data_loss and not i.holds(state, params) for i in model.invariants):
            return False
    return False


@pytest.mark.parametrize(
    ("file", "overrides", "invariant"),
    [
        ("defect1.toml", (), "NoDivergenceBetweenClientAndMetaData"),
        ("defect2.toml", (), "OnlyValidFragments"),
        ("kip101.toml", ("max_leader_epoch=3", "truncation=high_watermark"), "CommittedRecordsSurvive"),
        ("leaked_ledger.toml", ("model.messages=6", "model.compactions=5", "max_crashes=9"), "CompactedLedgerLeak"),
    ],
)
def test_no_step_of_a_minimised_trace_can_be_left_out_and_no_lost_message_arrive(file, overrides, invariant):
    """Of the longest run among many that breaks the invariant."""
    experiment = config.load(CONFIGS / file, overrides)
    model, point, seed = experiment.model, only_point(experiment).point, experiment.run.seed
    params, place = model.make_params(point.values), [i.name for i in model.invariants].index(invariant)
    records = numba_engine.record(model, points.pack(model, [point]), Job(0, 0, 1 << 14), seed)
    steps = np.where(records[:, RECORD.index("broken_mask")] >> place & 1, records[:, RECORD.index("steps")], -1)
    long = rerun(model, point, seed, int(steps.argmax())).path
    path = minimise.minimised(model, params, long, [place])
    assert len(path.steps) < len(long.steps)
    assert breaks_without_impossible_steps(model, params, path, place)
    broken = [paths.broken(model, state, params) >> place & 1 for state in paths.replay(model, params, path)]
    assert broken == [0] * len(path.steps) + [1]
    for i, step in enumerate(path.steps):
        shorter = path._replace(steps=path.steps[:i] + path.steps[i + 1 :])
        assert not breaks_without_impossible_steps(model, params, shorter, place), f"step {i + 1} is not needed"
        for bit in bits(step.lost):
            arrives = step._replace(lost=step.lost & ~(1 << bit))
            candidate = path._replace(steps=(*path.steps[:i], arrives, *path.steps[i + 1 :]))
            assert not breaks_without_impossible_steps(model, params, candidate, place), f"loss in {i + 1} not needed"


def test_a_minimised_trace_does_not_go_on_behind_data_loss():
    """As no run does: with the horizon published first, data is lost on every way to a leaked ledger."""
    params = params_of(COMPACTION, publish_context_before_horizon=False)
    path = shortest_path(COMPACTION, params, 0)
    with pytest.raises(ValueError, match="breaks none"):
        minimise.minimised(COMPACTION, params, path, [0])
    shorter = minimise.minimised(COMPACTION, params, path, [0, 1])  # data loss is wanted as well
    assert paths.broken(COMPACTION, paths.replay(COMPACTION, params, shorter)[-1], params) == 0b010


def test_the_search_goes_on_behind_data_loss_and_random_runs_do_not():
    """With the horizon published first every compaction loses data, long before a ledger can leak."""
    overrides = ("publish_context_before_horizon=false", "run.runs=50000")
    found = found_in("leaked_ledger.toml", overrides, ["CompactedLedgerLeak"])
    lines = formats.step_lines(found.trace, trace.replay_in_words(found.trace)).splitlines()
    assert lines[0] == "CompactedLedgerLeak breaks in 12 steps"
    assert "     ! CompactionHorizonCorrectness is broken: data loss, where a random run ends" in lines
    assert lines[-2] == "     ! CompactedLedgerLeak is broken"  # before what is said of it
    nothing = found_in("leaked_ledger.toml", overrides, ["CompactedLedgerLeak"], NO_MEMORY)
    assert (nothing.trace, nothing.proved) == (None, False)


def test_what_no_random_run_of_the_point_could_do_is_said():
    overrides = ("rates.controller_elect_leader=0", "rates.become_leader=0")
    found = found_in("kip101.toml", overrides, ["StrongIsr"]).trace
    assert "Takes become_leader, controller_elect_leader, whose rate is 0 here." in formats.origin(found)
    experiment = config.load(CONFIGS / "defect2.toml", ["message_loss=0"])
    lossy = showcase("defect2")._replace(grid_point=only_point(experiment))
    assert "message_loss is 0 here" in formats.origin(lossy)
    assert "0 here" not in formats.origin(showcase("defect2"))


def test_replay_names_the_step_that_is_not_possible():
    params = params_of(KAFKA)
    write = [action.name for action in KAFKA.actions].index("leader_write")
    with pytest.raises(paths.PathError, match="step 1: leader_write, instance 0: not enabled"):
        paths.replay(KAFKA, params, paths.Path(0, (paths.Step(write, 0, 0),)))


def test_wanted_invariants():
    assert find.wanted_invariants(BOOKKEEPER, "data loss") == [
        "NoDivergenceBetweenClientAndMetaData",
        "AllAckedEntriesAreReadable",
        "AckedEntriesSurvive",
    ]
    with pytest.raises(ConfigError):
        find.wanted_invariants(BOOKKEEPER, "StrongIsr")


def test_a_search_that_fills_its_memory_proves_nothing():
    params = params_of(COMPACTION, **values_of(COMPACTION, messages=3, keys=2))
    assert shortest(COMPACTION, params, 1 << 30, [1]).proved
    for memory in (1 << 21, 1 << 22):
        found = shortest(COMPACTION, params, memory, [1])
        assert (found.path, found.proved) == (None, False)
        assert found.distinct_states * (8 + store.TABLE_BYTES + 8) < memory


def test_which_step_of_many_lost_messages_the_search_took():
    """Every subset of the messages of one step leads to a state of its own, and back to that subset."""
    params = params_of(BOOKKEEPER, bookies=3, write_quorum=3)
    start = BOOKKEEPER.initial(params, 0)
    created = paths.after(BOOKKEEPER, start, params, paths.Step(4, 0, 0))
    assert sorted(paths.subsets(paths.sends(BOOKKEEPER, created, params, paths.Step(5, 0, 0)))) == list(range(8))
    for lost in range(8):
        step = paths.Step(5, 0, lost)
        assert _step(BOOKKEEPER, params, created, paths.after(BOOKKEEPER, created, params, step)) == step
