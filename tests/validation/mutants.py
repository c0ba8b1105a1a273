"""Mistakes put into a copy of Quorisk, one at a time, and whether the short tests notice them. None may pass.

Each mutant changes one line of a rule, an engine, a statistic or a file, and is held against the test files about it,
in the short form that a change must pass.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.validation.page import ROOT, Check

PROTOCOLS, ENGINES, STATES = "kernels/protocols", "kernels/engines", "kernels/states"
STATISTICS, EXPERIMENT = "analysis/statistics", "analysis/experiment"


class Mutant(NamedTuple):
    """A mistake, and the arguments of pytest that should find it."""

    file: str
    right: str
    """The code as it is, which the file has once."""
    wrong: str
    tests: str


MUTANTS = (
    Mutant(f"{PROTOCOLS}/kafka/replication.py", "alone = (leader == failed) & (state.quorum_isr == failed)",
           "alone = leader == failed", f"tests/{PROTOCOLS}/test_kafka.py"),
    Mutant(f"{PROTOCOLS}/kafka/replication.py", "return where(end == 0, EVERY_ROW,",
           "return where(end == 1, EVERY_ROW,",
           f"tests/{PROTOCOLS}/test_kafka.py"),
    Mutant(f"{PROTOCOLS}/compaction/actions.py", "max_compacted_ledger_id(state) < params.compactions",
           "max_compacted_ledger_id(state) <= params.compactions", f"tests/{PROTOCOLS}/test_compaction.py"),
    Mutant(f"{PROTOCOLS}/compaction/actions.py", "compaction_horizon=state.read_position,", "compaction_horizon=0,",
           f"tests/{PROTOCOLS}/test_compaction.py"),
    Mutant(f"{PROTOCOLS}/raft/election.py", "voted_for=state.voted_for.put(i, i + 1)",
           "voted_for=state.voted_for.put(i, 0)", f"tests/{PROTOCOLS}/test_raft.py"),
    Mutant(f"{PROTOCOLS}/raft/election.py", "return may & ((panicked >> i) & 1 == 0)", "return may",
           f"tests/{PROTOCOLS}/test_raft.py"),
    Mutant(f"{PROTOCOLS}/bookkeeper/recovery.py", "where(said, where(known > floor, known, floor), 0)",
           "where(said, known, 0)", f"tests/{PROTOCOLS}/test_bookkeeper.py"),
    Mutant(f"{PROTOCOLS}/bookkeeper/recovery.py", "fenced=state.fenced | where(said, 1 << instance, 0)",
           "fenced=state.fenced | (1 << instance)", f"tests/{PROTOCOLS}/test_bookkeeper.py"),
    Mutant(f"{PROTOCOLS}/bookkeeper/invariants.py", "closers != 1) | beyond", "closers != 1)",
           f"tests/{PROTOCOLS}/test_bookkeeper.py"),
    Mutant(f"{PROTOCOLS}/kraft/watermark.py", "everybody & (offset < leo)", "everybody & (offset <= leo)",
           f"tests/{PROTOCOLS}/test_kraft.py"),
    Mutant(f"{PROTOCOLS}/kraft/controller.py", "(state.con.isr & replicas & ~isr)", "(state.con.isr & ~isr)",
           f"tests/{PROTOCOLS}/test_kraft.py"),
    Mutant(f"{PROTOCOLS}/kraft/controller.py", "where((params.kip966 != 0) | (rest != 0), rest, state.con.isr)",
           "where(rest != 0, rest, state.con.isr)", f"tests/{PROTOCOLS}/test_kraft.py"),
    Mutant(f"{PROTOCOLS}/kraft/normal_form.py", "~requests & (state.running * EVERY_ROW)", "~requests",
           f"tests/{PROTOCOLS}/test_kraft_operations.py"),
    Mutant(f"{PROTOCOLS}/kraft/normal_form.py", "one = when(is_full, alike_but_for_a_flush, state, fetches, 1)",
           "one = 0", "tests/analysis/experiment/test_starters.py"),
    Mutant(f"{PROTOCOLS}/kafka/normal_form.py", "merged |= when(is_full, alike_but_for_a_flush, state)",
           "merged |= 0", f"tests/{PROTOCOLS}/test_continuous_writes.py"),
    Mutant("kernels/rule.py", "pick * popcount(row) >> PICK_BITS, action.shared",
           "pick * (popcount(row) - 1) >> PICK_BITS, action.shared", "tests/kernels/test_rule.py"),
    Mutant("kernels/rule.py", "here = (nth >= 0) & (nth < popcount(mask))",
           "here = nth < popcount(mask)",
           "tests/kernels/test_rule.py"),
    Mutant(f"{ENGINES}/philox.py", "(k1 + _WEYL_1) & _LOW", "(k1 + _WEYL_0) & _LOW", f"tests/{ENGINES}/test_philox.py"),
    Mutant(f"{ENGINES}/philox.py", "third & _REST < rest) << 2", "second & _REST < rest) << 2",
           f"tests/{ENGINES}/test_philox.py"),
    Mutant(f"{ENGINES}/points.py", "round(weight / math.ceil(weight) * ALWAYS)", "ALWAYS",
           f"tests/{ENGINES}/test_numba_engine.py"),
    Mutant(f"{ENGINES}/tally.py", "tally[LOSS_TIME_HIGH] += high", "tally[LOSS_TIME_HIGH] += low",
           f"tests/{ENGINES}/test_numba_engine.py"),
    Mutant(f"{ENGINES}/tally.py", "tally[STEPS_SQUARED] += steps * steps", "tally[STEPS_SQUARED] += steps",
           f"tests/{ENGINES}/test_numba_engine.py"),
    Mutant(f"{ENGINES}/step.py", "where(is_lost, LOST, where(dead, outcome, where(at_limit, UNFINISHED, otherwise)))",
           "where(dead, outcome, where(is_lost, LOST, where(at_limit, UNFINISHED, otherwise)))",
           f"tests/{STATES} tests/analysis/exact"),
    Mutant(f"{ENGINES}/step.py", "where(lasts, exposed + time, exposed - time)",
           "where(lasts, exposed + time, exposed)", f"tests/{ENGINES}"),
    Mutant(f"{ENGINES}/hurried.py", "behind = more + as_int64(action == fault)", "behind = more",
           f"tests/{ENGINES}/test_hurried.py"),
    Mutant(f"{STATES}/odds.py", "(1.0 - p) ** (n - k)", "(1.0 - p) ** n", f"tests/{STATES}/test_head.py"),
    Mutant(f"{STATES}/absorption.py", "result[part[i]] * inside[i, k]", "result[part[i]] * inside[k, i]",
           "tests/analysis/exact/test_chains.py tests/analysis/exact/test_kafka.py"),
    Mutant(f"{STATES}/exits.py", "np.where(due > 0, due, NEVER)", "np.where(due > 0, due + 1, NEVER)",
           f"tests/{STATES}/test_head.py"),
    Mutant(f"{STATES}/store.py", "for i in range(len(row)):\n                if row[i] != other[i]",
           "for i in range(len(row) - 1):\n                if row[i] != other[i]", f"tests/{STATES}/test_search.py"),
    Mutant(f"{STATES}/laid_out.py", "writer.constant(int(layout.fixed[i])))", "writer.constant(0))",
           f"tests/{STATES}/test_laid_out.py"),
    Mutant(f"{STATES}/laid_out.py", '("shr", 64 - turn, mask & low)', '("shr", 63 - turn, mask & low)',
           f"tests/{STATES}/test_laid_out.py"),
    Mutant(f"{STATES}/expand.py", "odds.fates[number, members, popcount(subset)]",
           "odds.fates[number, members, members]", "tests/analysis/exact"),
    Mutant(f"{STATES}/expand.py", "low[place] <= cost[at] <=", "low[place] < cost[at] <=",
           f"tests/{STATES}/test_head.py"),
    Mutant(f"{STATES}/expand.py", "total[i] += odds.rates[-1]", "total[i] += 0.0", "tests/analysis/exact"),
    Mutant(f"{STATES}/expand.py", "rows = programs.forgotten(rows) if", "rows = rows if", f"tests/{STATES}"),
    Mutant(f"{STATES}/programs.py", "if known_bits(new)[1] & ~most:", "if False:",
           f"tests/{STATES} tests/kernels/test_declared.py"),
    Mutant("kernels/cluster/groups.py", "if rack < 0 or count == 0", "if count == 0",
           "tests/kernels/cluster/test_history.py tests/kernels/cluster/test_strata.py"),
    Mutant("kernels/cluster/ticks.py", "xlog1py(nodes - np.asarray(lost), -p)", "xlog1py(nodes, -p)",
           "tests/kernels/cluster/test_events.py tests/kernels/cluster/test_strata.py"),
    Mutant("kernels/cluster/racks.py", "left += [] if a_rack or down == 1 else [down - 1]", "left += []",
           "tests/kernels/cluster/test_racks.py tests/analysis/cluster"),
    Mutant("analysis/rates/causes.py", "found[allowed] -= found[allowed ^ bit]",
           "found[allowed] += found[allowed ^ bit]",
           "tests/analysis/rates/test_causes.py"),
    Mutant("analysis/rates/metrics.py", '("end", ~is_well[:-1], part)', '("end", ~is_well[:-1], 1.0)',
           "tests/analysis/rates/test_metrics.py"),
    Mutant("analysis/rates/rolls.py", "roll[-1].end_s <= stop.start_s <= roll", "stop.start_s <= roll",
           "tests/analysis/rates/test_stalls.py"),
    Mutant(f"{STATISTICS}/intervals.py", "losses, runs - losses + 1, tail)", "losses, runs - losses, tail)",
           "tests/analysis/test_calibrate.py tests/analysis/statistics"),
    Mutant(f"{STATISTICS}/sequential.py", "reach = -math.log1p(-confidence) -",
           "reach = -math.log1p(-confidence) / 2 -",
           "tests/analysis/statistics"),
    Mutant(f"{STATISTICS}/paired.py", "(len(p_values) - rank) * p_values", "(len(p_values) - rank - 1) * p_values",
           "tests/analysis/compare"),
    Mutant(f"{STATISTICS}/yearly.py", "known or SHARED,",
           "known or INDEPENDENT,", f"tests/{STATISTICS}/test_yearly.py"),
    Mutant("analysis/decision/judging.py", "if high <= target:", "if low <= target:",
           "tests/analysis/decision/test_verdict.py"),
    Mutant("analysis/results/sealed.py", "if footer < _SEAL_BYTES or seal", "if footer < _SEAL_BYTES and seal",
           "tests/test_validate.py tests/sparkjobs/test_files.py tests/analysis/results"),
    Mutant("analysis/results/schema.py", "if start < end:", "if start < end - 1:", "tests/analysis/results"),
    Mutant("sparkjobs/files.py", "os.unlink(part, dir_fd=folder)", "os.stat(part, dir_fd=folder)",
           "tests/sparkjobs/test_files.py"),
    Mutant(f"{EXPERIMENT}/identity.py", "sort_keys=True", "sort_keys=False", f"tests/{EXPERIMENT}/test_config.py"),
    Mutant(f"{EXPERIMENT}/units.py", "(100 if match[2] else 1) / time_s", "(10 if match[2] else 1) / time_s",
           f"tests/{EXPERIMENT}/test_units.py"),
    Mutant(f"{EXPERIMENT}/where.py", "right += self.offset", "right -= self.offset", f"tests/{EXPERIMENT}"),
    Mutant(f"{EXPERIMENT}/grid.py", "if there != everywhere:",
           "if not there:", f"tests/{EXPERIMENT}/test_scenarios.py"),
)  # fmt: skip


def failing(mutant: Mutant, tree: Path) -> str:
    """Returns the first test that fails on a mutant in a copy of the repository and passes without; empty if none does.
    The copy is left as it was."""
    file, own = tree / mutant.file, {"PYTHONPATH": str(tree), "QUORISK_CACHE_DIR": str(tree / "cache")}
    before = file.read_text("utf-8")
    assert before.count(mutant.right) == 1, f"{mutant.file} does not have this once: {mutant.right}"
    file.write_text(before.replace(mutant.right, mutant.wrong), "utf-8")
    command = [sys.executable, "-m", "pytest", "--short", "--hypothesis-profile", "few", "-x", "-q"]

    def run(*tests: str) -> tuple[bool, str]:
        ran = subprocess.run(
            [*command, *tests], cwd=tree, env=os.environ | own, capture_output=True, check=False, text=True
        )
        return ran.returncode == 0, ran.stdout

    passed, said = run(*mutant.tests.split())
    file.write_text(before, "utf-8")
    found = re.search(r"^(?:FAILED|ERROR) ([^\s[]+)", said, re.MULTILINE)
    assert passed is (found is None), said
    assert found is None or run(found[1])[0], f"{found[1]} fails without the mistake, too"
    return found[1] if found else ""


def mutants(count: int, seed: int) -> Check:
    """Tries `count` mutants, from number `seed` on."""
    rows = []
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "quorisk"
        files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in files.splitlines():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
        for mutant in MUTANTS[seed - 1 : seed - 1 + count]:
            caught = failing(mutant, tree)
            file, _, test = caught.partition("::")
            rows.append((mutant.file, f"`{' '.join(mutant.right.split())}`", file, test or "**missed**"))
            print(*rows[-1], sep=" | ", flush=True)
    num_caught = sum(bool(row[2]) for row in rows)
    return Check(
        "Mistakes that the short tests catch",
        "Each row is a mistake put into a copy of the repository, at the code named, and the first of the short tests "
        f"about it that failed. There are {len(MUTANTS)} such mistakes in `tests/validation/mutants.py`; "
        "`--count N --seed S` tries N of them, from number S on. Two were missed at first, and have tests since (a "
        "wiped bookie's answer to a fencing read, which was missed again when its case left the short tests; a "
        "reassigned replica that would stay eligible).",
        ("file", "code that was changed", "test file", "test"),
        rows,
        f"{num_caught} of {len(rows)} mistakes are caught.",
        num_caught == len(rows),
    )
