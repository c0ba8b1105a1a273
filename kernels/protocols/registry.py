"""The protocols that an experiment file may name. None of them is listed anywhere: each is a package that is found.

Quorisk's own are the packages in this folder. Others are packages of installed distributions that name them as entry
points of the group `quorisk.protocols`. A protocol's package has its `MODEL`, its words in the module `story`, and in
the module `cases` what to try it on. It may have modules `promises`, `few_copies` and `unflushed`, and a file
`settings.toml` (see docs/adding-a-protocol.md).
"""

import hashlib
import reprlib
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from quorisk.kernels import declared
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model
from quorisk.kernels.protocols.cases import Cases
from quorisk.kernels.protocols.cluster_settings import Setting, Unflushed
from quorisk.kernels.protocols.evidence import KINDS, Evidence
from quorisk.kernels.protocols.promises import FewCopies, Promises
from quorisk.kernels.telling import Teller

TOLD = ("story", "cases", "promises", "few_copies", "unflushed")
"""Modules of a protocol's package that describe it, and that no run depends on."""
GROUP = "quorisk.protocols"
"""Entry points of this group are packages of protocols, by the protocols' names."""


@cache
def own() -> dict[str, str]:
    """The packages of Quorisk's own protocols, by the protocols' names."""
    here = Path(__file__).parent
    return {found.name: f"{__package__}.{found.name}" for found in iter_modules([str(here)]) if found.ispkg}


@cache
def foreign() -> dict[str, str]:
    """The packages of protocols that other installed distributions have, by the protocols' names; those that have the
    name of one of Quorisk's own are left out."""
    return {found.name: found.value for found in sorted(entry_points(group=GROUP)) if found.name not in own()}


def names() -> list[str]:
    """The names of all protocols, Quorisk's own first."""
    return [*own(), *foreign()]


def load(name: object) -> Model:
    """The model of a protocol; imports that protocol alone.

    Raises ConfigError if there is no such protocol, or if another distribution has it and it cannot be imported, and
    ModelError if that contradicts itself.
    """
    if not isinstance(name, str) or (name not in own() and name not in foreign()):
        raise ConfigError(f"protocol = {reprlib.repr(name)}: one of {', '.join(names())}")
    model = _part(name, "MODEL")
    if not isinstance(model, Model) or model.name != name:
        raise ConfigError(f"protocol = {name!r}: MODEL in {_package(name)} is not a model of that name")
    if name in foreign():
        declared.check_model(model)
    return model


def teller(model: Model) -> Teller:
    """The module that puts a model's steps into words. Raises ConfigError as `load`."""
    return _part(model.name, None, "story")


def cases(name: str) -> Cases:
    """Returns configurations to try a protocol on. Raises ConfigError as `load`."""
    return _part(name, "CASES", "cases")


def settings(name: str) -> tuple[Setting, ...]:
    """Returns a cluster's settings and their keys; empty if the protocol has none. Raises ConfigError as `load`."""
    return _of_file(name, lambda told: tuple(Setting(**each) for each in told.get("settings", ())))


def promises(name: str) -> Promises | None:
    """Returns a protocol's `promise`; None if it promises nothing. Raises ConfigError as `load`."""
    return _part(name, "promise", "promises") if _has(name, "promises") else None


def few_copies(name: str) -> Callable[[Mapping[str, Any]], dict[int, FewCopies]] | None:
    """Returns a function of the values of all keys: the times of acknowledged entries at fewer copies than in the end,
    by number of copies. None if the protocol does not say. Raises ConfigError as `load`."""
    return _part(name, "few_copies", "few_copies") if _has(name, "few_copies") else None


@cache
def unflushed_for(name: str) -> Callable[[Mapping[str, Any]], float] | None:
    """Returns a function of the values of all keys: the mean time for which an acknowledged entry is lost if all nodes
    lose power. None if the protocol does not say. Raises ConfigError as `load`."""
    if _has(name, "unflushed"):
        return _part(name, "unflushed_for", "unflushed")
    return _of_file(name, lambda told: Unflushed(**told["unflushed"]) if "unflushed" in told else None)


@cache
def of_cluster(name: str) -> Mapping[str, str]:
    """Returns the keys of a file that follow from its [cluster], and their sources (`analysis.experiment.follows`);
    empty if the protocol does not say. Raises ConfigError as `load`."""
    return _of_file(name, lambda told: told.get("follows", {}))


def evidence(name: str) -> Evidence:
    """Returns the key that each kind of data tells; empty if the protocol has none. Raises ConfigError as `load`."""
    return _of_file(name, lambda told: {KINDS[kind]: key for kind, key in told.get("evidence", {}).items()})


def foreign_roots() -> list[Path]:
    """The folders of the top-level packages that have the protocols of other distributions; sorted, each once.

    What is compiled depends on all files in them, and all of them travel to Spark's executors.
    """
    specs = [find_spec(package.partition(".")[0]) for package in foreign().values()]
    return sorted({Path(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()})


@cache
def source(name: str) -> str:
    """Returns the fingerprint of the sources of a protocol of another distribution: 16 hex digits of a hash of all
    Python files of its top-level package but those that no run depends on (TOLD), by their paths in it; empty for one
    of Quorisk's own, which have their `Model.version`."""
    if name in own():
        return ""
    digest, package = hashlib.sha256(), _package(name)
    told = {f"{package.replace('.', '/')}/{module}.py" for module in TOLD}
    spec = find_spec(package.partition(".")[0])
    for folder in sorted(map(Path, (spec.submodule_search_locations or ()) if spec else ())):
        for path in sorted(folder.rglob("*.py")):
            place = f"{folder.name}/{path.relative_to(folder).as_posix()}"
            if place not in told:
                digest.update(place.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _package(name: str) -> str:
    return own().get(name) or foreign()[name]


def _has(name: str, module: str) -> bool:
    return find_spec(f"{_package(name)}.{module}") is not None


def _of_file(name: str, read: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Returns what `read` takes from `settings.toml` in a protocol's package, from an empty one where there is none.
    Raises ConfigError if that file is malformed."""
    file = Path(_part(name, "__file__")).with_name("settings.toml")
    try:
        return read(tomllib.loads(file.read_text("utf-8")) if file.exists() else {})
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"protocol = {name!r}: {file}: {error}") from error


def _part(name: str, attribute: str | None, module: str = "") -> Any:
    """Returns a module of a protocol's package, or an attribute of it. Raises ConfigError as `load`."""
    place = f"{_package(name)}.{module}".rstrip(".")
    try:
        found = import_module(place)
        return getattr(found, attribute) if attribute else found
    except (Exception, SystemExit) as error:  # whatever the code of another distribution raises
        if name in own():
            raise
        raise ConfigError(f"protocol = {name!r}: {place} cannot be used: {type(error).__name__}: {error}") from error
