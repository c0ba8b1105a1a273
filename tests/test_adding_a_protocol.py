"""docs/adding-a-protocol.md as somebody would follow it: the package that it builds, installed, runs in every verb."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from quorisk.analysis.experiment import config
from quorisk.kernels.protocols import registry
from tests.support import ROOT, SMALL_FILE

PAGE = (ROOT / "docs" / "adding-a-protocol.md").read_text()
FILES = dict(re.findall(r"^`(\S+\.py)`:\n\n```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
TABLES = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^    quorisk (.*)", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder in which the page's package is installed as pip would, and its experiment file."""
    folder = tmp_path_factory.mktemp("site")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    project, experiment = TABLES
    (folder / "primary_backup.toml").write_text(experiment)
    about = tomllib.loads(project)["project"]
    metadata = folder / "primary_backup-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: {about['name']}\nVersion: {about['version']}\n")
    ((group, points),) = about["entry-points"].items()
    lines = "".join(f"{name} = {place}\n" for name, place in points.items())
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{lines}")
    return folder


def in_folder(folder: Path, *command: str, path: Path | None = None) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (path or folder, ROOT)))}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


SEVERAL = """
import json, sys
from quorisk.command.main import main
for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as ended:
        assert not ended.code, (arguments, ended.code)
    print("\\n" + json.dumps(arguments))
"""


@pytest.mark.exhaustive
def test_every_command_of_the_page_works(installed):
    """One after another in a process; `estimate` follows once more in its own, as from a shell."""
    asked = list[list[str]]()
    for command in COMMANDS:
        arguments = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", command)]
        few = ("--set", "run.runs=5000") if arguments[0] in ("estimate", "compare", "run") else ()
        asked.append([*arguments, *few])
    said = in_folder(installed, sys.executable, "-c", SEVERAL, json.dumps(asked))
    for arguments in asked:
        shown, end, said = said.partition("\n" + json.dumps(arguments) + "\n")
        assert shown.strip(), arguments
        assert end, arguments
    assert (installed / "results" / "primary_backup" / "report.html").is_file()
    alone = ("-m", "quorisk", "estimate", "every_key.toml", "--set", "run.runs=5000")
    assert in_folder(installed, sys.executable, *alone)
    verbs = {"check-protocol", "init", "estimate", "exact", "compare", "trace", "run"}
    assert {command.split()[0] for command in COMMANDS} == verbs


ANSWERS = """
import json, quorisk
for acks in (3, 1):
    changed = {"acks": acks, "run.runs": 200_000}
    verbs = {"exact": quorisk.exact, "estimate": quorisk.estimate, "explore": quorisk.explore}
    print(json.dumps({name: verb("primary_backup.toml", changed).as_json() for name, verb in verbs.items()}))
"""


@pytest.mark.exhaustive
def test_what_the_page_builds_loses_data_as_it_should(installed):
    """Acknowledged by all replicas nothing is lost; by one alone it is; the estimate agrees with the exact answer."""
    answers = in_folder(installed, sys.executable, "-c", ANSWERS).splitlines()
    for line, loses in zip(answers, (False, True), strict=True):
        found = json.loads(line)
        exact, guess = found["exact"]["data_loss"], found["estimate"]["data_loss"]
        assert exact["proved_zero"] is not loses
        assert guess["low"] <= exact["p"] <= guess["high"]
        assert bool(found["explore"]["invariants"]["AckedRecordSurvives"]["breaking_states"]) is loses


@pytest.mark.exhaustive
def test_the_tests_of_the_page_find_the_protocol_and_pass(installed):
    commands = re.findall(r"^    python -m pytest (\S+) -k primary_backup", PAGE, re.MULTILINE)
    assert len(commands) == 3
    options = ("-q", "-n0", "-p", "no:cacheprovider", "--rootdir", str(ROOT), "-k", "primary_backup")
    said = in_folder(installed, sys.executable, "-m", "pytest", *options, *(str(ROOT / file) for file in commands))
    passed = re.search(r"(\d+) passed", said)
    assert passed
    assert int(passed[1]) >= 7


def test_its_package_travels_to_executors(installed, tmp_path):
    """The archive alone, unpacked where the package is not installed, finds the protocol under the same hash."""
    pack = f"""
import sys
from pathlib import Path
from quorisk.sparkjobs.archive import package_archive
print(package_archive(Path({str(tmp_path)!r})))
"""
    asked = """
from quorisk.kernels.compiled import code_folder
from quorisk.kernels.protocols import registry
import quorisk
model = registry.load("primary_backup")
print(sys.modules["primary_backup"].__file__, quorisk.__file__, code_folder("primary_backup"))
"""
    archive, *here = in_folder(installed, sys.executable, "-c", pack + asked).split()
    away = tmp_path / "executor"
    zipfile.ZipFile(archive).extractall(away)
    away_from_here = (
        f"import sys; sys.path[:] = [{str(away)!r}, *(p for p in sys.path if p not in ('', {str(ROOT)!r}))]"
    )
    there = in_folder(away, sys.executable, "-c", away_from_here + asked, path=away).split()
    assert there[2] == here[2]
    assert all(file.startswith(str(away)) for file in there[:2])
    assert here[0].startswith(str(installed))


FOLDERS = """
from quorisk.kernels.compiled import bind, code_folder
from quorisk.kernels.engines.lanes import build
for protocol in ("primary_backup", "bookkeeper", ""):
    kept = bind(lambda: 0, "nothing", kept_for=protocol)
    print(code_folder(protocol), build.folder(protocol), kept.py_func.__code__.co_filename)
"""


def test_a_change_of_the_package_changes_where_its_machine_code_is_kept_and_that_of_nothing_else(installed):
    before = in_folder(installed, sys.executable, "-c", FOLDERS).splitlines()
    file = installed / "primary_backup" / "story.py"
    text = file.read_text()
    file.write_text(text + "\n")
    own, *others = in_folder(installed, sys.executable, "-c", FOLDERS).splitlines()
    file.write_text(text)
    assert others == before[1:]
    assert not {*own.split()} & {*before[0].split()}


@pytest.fixture
def found(monkeypatch):
    """Has this process find what is installed in a folder, as a new one would."""

    def found(folder: Path) -> None:
        monkeypatch.syspath_prepend(folder)
        registry.foreign.cache_clear()

    yield found
    monkeypatch.undo()
    registry.foreign.cache_clear()


def install(folder: Path, name: str, files: Mapping[str, str]) -> Path:
    """Puts a package with a protocol of its name into a folder, as pip would; returns the path of a file about it."""
    for file, text in files.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / file).write_text(text)
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[quorisk.protocols]\n{name} = {name}\n")
    experiment = folder / f"{name}.toml"
    experiment.write_text(f'protocol = "{name}"\n')
    return experiment


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            "widths=State(up=8, primary=8, stored=8, copies=2, acked=1)",
            "widths: copies = 2: write, instance 0, makes it ",
        ),
        ("max_sends=1", "max_sends = 1: write, instance 0, sends 0b"),
        ("outcome=lambda state, params: 3", "outcome: 3 of "),
        (
            'invariants=(Invariant("AckedRecordSurvives", acked_record_survives, data_loss=False),)',
            "invariants: none has data_loss=True",
        ),
    ],
)
def test_what_a_package_declares_wrongly_is_refused_before_anything_runs(refused, found, tmp_path, changed, said):
    key = changed.partition("=")[0]
    name, start = f"with_wrong_{key}", f"    {key}="
    files = {Path(path).name: text.replace("primary_backup", name) for path, text in FILES.items()}
    lines = files["__init__.py"].splitlines()
    files["__init__.py"] = "\n".join(f"    {changed}," if line.startswith(start) else line for line in lines)
    experiment = install(tmp_path, name, files)
    experiment.write_text(TABLES[1].replace("primary_backup", name))
    found(tmp_path)
    assert refused("exact", str(experiment)).startswith(f"protocol = {name!r}: {said}")


def test_the_source_is_part_of_what_a_result_is(found, installed, written):
    """After an edited guard old runs and new ones are not those of one point; words change nothing."""
    found(installed)
    files = installed / "primary_backup.toml", written("compaction.toml", SMALL_FILE)

    def identities() -> list[str]:
        registry.source.cache_clear()
        return [config.load(file).points[0].point_id for file in files]

    before, edited = identities(), []
    for name in ("story.py", "__init__.py"):
        file = installed / "primary_backup" / name
        text = file.read_text()
        file.write_text(text + "\n")
        edited.append(identities())
        file.write_text(text)
    assert edited[0] == before
    assert edited[1][0] != before[0]
    assert edited[1][1] == before[1]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "ModuleNotFoundError: No module named 'NAME'"),
        ("x = 1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(5)", "SystemExit: 5"),
        (
            "from quorisk.kernels.model import Model\nMODEL = Model(limitz=())",
            "TypeError: Model.__new__() got",
        ),
        ("MODEL = (", "SyntaxError: '(' was never closed (__init__.py, line 1)"),
    ],
)
def test_a_protocol_that_cannot_be_imported_is_a_line(quorisk, found, tmp_path, text, why):
    name = f"broken_{why.partition(':')[0]}"
    experiment = install(tmp_path, name, {"__init__.py": text} if text else {})
    found(tmp_path)
    code, out, err = quorisk("explore", str(experiment))
    said = f"error: {experiment}: protocol = {name!r}: {name} cannot be used: {why.replace('NAME', name)}"
    assert (code, out, err[: len(said)], err.count("\n")) == (2, "", said, 1)
