"""Which invariants break under which variant, in the smallest configuration where they do: a Markdown table.

For each protocol a ladder of configurations, smallest first, is searched exhaustively for each variant until every
invariant is broken or the ladder ends; a variant that breaks nothing is reported with the configurations tried.

    python tests/validation/breaking_table.py bookkeeper
    python tests/validation/breaking_table.py kraft --under max_tail_losses=1 --only flush_every_message
    python tests/validation/breaking_table.py raft --of servers=2,values=1,max_elections=2,max_restarts=1
"""

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from quorisk.kernels.model import Model, with_defaults
from quorisk.kernels.protocols import registry
from quorisk.kernels.states.search import explore
from tests.validation.ladders import LADDERS


def variants(model: Model) -> Iterator[dict[str, Any]]:
    """The defaults, then each switch off and each other choice, one at a time."""
    yield {}
    for parameter in model.parameters:
        if parameter.table == "variant":
            others = (not parameter.default_value,) if parameter.allowed is None else parameter.allowed[1:]
            yield from (
                {parameter.name: value} for value in others if not isinstance(value, int) or isinstance(value, bool)
            )


def label(given: dict[str, Any]) -> str:
    said = {True: "on", False: "off"}
    return ", ".join(f"{k} {said.get(v, f'= {v}')}" for k, v in given.items()) or "as specified"


def values_of(given: Iterable[str]) -> dict[str, int | str]:
    return {key: int(value) if value.isdigit() else value for key, value in (each.split("=") for each in given)}


def main(
    protocol: str,
    memory_gib: float = 4.0,
    under: Annotated[list[str] | None, typer.Option(help="KEY=VALUE that all configurations have")] = None,
    only: Annotated[list[str] | None, typer.Option(help="a switch; the others are left as they are")] = None,
    of: Annotated[list[str] | None, typer.Option(help="KEY=VALUE,...: a configuration to search")] = None,
) -> None:
    """Prints the table for one protocol."""
    model = registry.load(protocol)
    ladder = [values_of(each.split(",")) for each in of or ()] or LADDERS[protocol]
    ladder = [{**sizes, **values_of(under or ())} for sizes in ladder]
    tried = ["/".join(map(str, sizes.values())) for sizes in ladder]
    print(f"Configurations tried ({', '.join(ladder[0])}): {', '.join(tried)}\n")
    print("| variant | breaks | smallest configuration | depth | distinct states |")
    print("|---|---|---|---|---|")
    for given in variants(model):
        if only and given and not given.keys() & set(only):
            continue
        found: set[str] = set()
        unfinished = []
        for sizes in ladder:
            values = with_defaults(model, dict(sizes) | given)
            if not all(condition.holds(values) for condition in model.conditions):
                continue
            print(f"{label(given)}: {dict(sizes)} ...", end="\033[K\r", file=sys.stderr, flush=True)
            search = explore(model, model.make_params(values), int(memory_gib * 2**30))
            size = "/".join(map(str, sizes.values()))
            if not search.complete:
                unfinished.append(size)
            errors = [invariant.name for invariant in model.invariants if not invariant.about]
            for name in errors:
                depth = search.first_depth[name]
                if depth and name not in found:
                    found.add(name)
                    states = f"{search.distinct_states:,}" + ("" if search.complete else " (memory ran out)")
                    print(f"| {label(given)} | {name} | {size} | {depth} | {states} |", flush=True)
        if not found:
            searched = "all of the above" + (f" ({', '.join(unfinished)} in part)" if unfinished else "")
            print(f"| {label(given)} | nothing | {searched} | | |", flush=True)


if __name__ == "__main__":
    typer.run(main)
