"""The verbs that ask about one design: estimate, explore, exact, compare, trace."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from quorisk.command.app import (
    File,
    Json,
    Overrides,
    Scenario,
    Strict,
    Threads,
    app,
    as_text,
    by_option,
    parsed,
    picking,
    print_json,
    repeated,
    reply,
    tell_idle,
    tell_notes,
    whole_of,
)
from quorisk.kernels.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorisk.analysis.experiment.config import Experiment


@app.command("estimate")
def estimate_verb(
    file: File,
    overrides: Overrides,
    memory: Annotated[str, typer.Option(help="memory for the likeliest paths of a run, if losses are rare")] = "1GiB",
    scenario: Scenario = None,
    threads: Threads = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Estimate the risk of one configuration by random runs.

    How likely is a run to break each invariant, how far can that number be trusted, and how do runs end? If losses are
    too rare to count, the likeliest paths are solved exactly. If the file has scenarios: how many losses a year, and
    from which scenario?

    \b
    Example: quorisk estimate configs/defect1.toml --set run.runs=100000 --set faults.message_loss=0.2
    """
    experiment = parsed(file, overrides, strict, True, scenario)
    from quorisk.analysis import explore
    from quorisk.analysis.estimate import amounts, estimate
    from quorisk.command import bars, show
    from quorisk.kernels.cores import num_cores

    memory_bytes = explore.parse_memory(memory)
    if experiment.asks_year:
        from quorisk.command import show_year

        year = whole_of(experiment, threads, records=True)
        reply(as_json, year.whole_json(), lambda: show_year.print_year(year, experiment, show.console()))
        return
    with bars.estimate_bar(experiment.run.runs) as (progress, solving):
        result = estimate.estimate(experiment, threads or num_cores(), progress, memory_bytes, solving)
        result = amounts.with_amount(experiment, result)
    reply(as_json, result, lambda: show.print_estimate(result, show.console()))


@app.command("explore")
def explore_verb(
    file: File,
    overrides: Overrides,
    memory: Annotated[str, typer.Option(help="memory for states, such as 512MiB")] = "4GiB",
    max_depth: Annotated[int | None, typer.Option(min=1, help="deepest states to search; initial ones have 1")] = None,
    scenario: Scenario = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Search every state of one configuration.

    How many states can it reach, and how many of them break each invariant?

    Example: quorisk explore configs/defect1.toml --memory 8GiB
    """
    experiment = parsed(file, overrides, strict, True, scenario)
    from quorisk.analysis import explore
    from quorisk.command import bars, show

    memory_bytes = explore.parse_memory(memory)
    with bars.search_line() as progress:
        found, took_s = explore.explore(experiment, memory_bytes, progress, max_depth)
    told = explore.as_json(experiment, found, took_s)
    reply(as_json, told, lambda: show.print_search(found, took_s, explore.history_switches(experiment), show.console()))


@app.command("exact")
def exact_verb(
    file: File,
    overrides: Overrides,
    by_steps: Annotated[
        list[int], repeated(min=0, help="also print the probability of data loss within this many steps")
    ],
    by_time: Annotated[
        list[str],
        repeated(
            metavar="TIME",
            help='also print the probability of data loss by this time: "1 day" if rates have units, else a number',
        ),
    ],
    memory: Annotated[str, typer.Option(help="memory for states and transitions, such as 512MiB")] = "4GiB",
    scenario: Scenario = None,
    storm: Annotated[bool, typer.Option("--storm", help="also solve it with the model checker Storm")] = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Solve one configuration exactly.

    Builds the Markov chain that random runs follow, with every state, and solves it. A probability of zero is a proof.
    If the file has scenarios, prints the losses a year, for each scenario and in total.

    \b
    Example: quorisk exact configs/defect1.toml --set model.bookies=2 --set model.write_quorum=2 --by-steps 14
    """
    experiment = parsed(file, overrides, strict, True, scenario)
    from quorisk.analysis import explore
    from quorisk.analysis.estimate import amounts
    from quorisk.analysis.exact import exact
    from quorisk.command import bars, show

    memory_bytes = explore.parse_memory(memory)
    if experiment.asks_year:
        from quorisk.command import show_year

        if by_steps or by_time or storm:
            raise ConfigError("--by-steps, --by-time, --storm: need a scenario; pick it with --scenario NAME")
        year = whole_of(experiment, None, memory_bytes, True, records=True)
        reply(as_json, year.whole_json(), lambda: show_year.print_year(year, experiment, show.console()))
        return
    times = [exact.parse_time(experiment, each) for each in by_time]
    with bars.chain_line() as progress:
        result = exact.exact(experiment, memory_bytes, by_steps, times, storm, progress)
        result = amounts.with_amount(experiment, result)
    reply(as_json, result, lambda: show.print_exact(result, show.console()))


@app.command("compare")
def compare_verb(
    file: File,
    overrides: Overrides,
    vary: Annotated[
        list[str],
        repeated(
            metavar="SECTION.KEY=VALUE,VALUE", help="a key and its values, the baseline first; several keys are crossed"
        ),
    ],
    ablation: Annotated[
        bool, typer.Option("--ablation", help="turn each mechanism off in turn, and compare with all on")
    ] = False,
    scenario: Scenario = None,
    threads: Threads = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Compare variants of one configuration, run by run.

    All variants see the same random numbers. Says by how much they differ, and how far that can be trusted; with
    --ablation, what each safety mechanism is worth. Variants that lose data too seldom for that are each estimated
    alone. If the file has scenarios, compares losses a year.

    \b
    Example: quorisk compare configs/defect1.toml --vary variant.fence_recovery_reads=true,false
    """
    if ablation == bool(vary):
        raise ConfigError("--vary, --ablation: give one of the two")
    from quorisk.analysis.compare import compare
    from quorisk.analysis.experiment import config
    from quorisk.kernels.cores import num_cores

    def changed(*more: str) -> "Experiment":
        return config.load(file, [*picking(overrides, scenario), *more])

    cores = threads or num_cores()
    if changed().asks_year:
        _compare_years(
            compare.ablated(changed) if ablation else compare.one_by_one(changed, vary), strict, cores, as_json
        )
        return
    plan = compare.ablation(changed) if ablation else compare.vary(changed, vary)
    tell_idle(plan.experiment, strict)
    tell_notes(plan.experiment)
    from quorisk.command import bars, show, show_compare

    with bars.estimate_bar(plan.experiment.run.runs * len(plan.variants)) as (progress, solving):
        result = compare.compare(plan, cores, progress, solving)
    reply(as_json, result, lambda: show_compare.print_comparison(result, show.console()))


def _compare_years(each: "Mapping[str, Experiment]", strict: bool, cores: int, as_json: bool) -> None:
    from quorisk.analysis.decision.weigh import MEMORY, Weigher
    from quorisk.analysis.decision.whole import by_variant, wholes
    from quorisk.command import bars, show, show_year

    tell_idle(next(iter(each.values())), strict)
    tell_notes(*each.values())
    with bars.status() as tell:
        weigher = Weigher(MEMORY, cores, tell)
        found = {label: wholes(experiment, weigher)[0] for label, experiment in each.items()}
    reply(as_json, by_variant(found), lambda: show_year.variants(found, show.console()))


@app.command("trace")
def trace_verb(
    file: File,
    overrides: Overrides,
    invariant: Annotated[
        str, typer.Option(help="invariant to break; 'data loss' is any invariant whose breach is data loss")
    ] = "data loss",
    form: Annotated[
        Literal["words", "tlc", "mermaid", "sequencediagram", "svg"] | None,
        typer.Option(
            "--format",
            help="default: words, or by the ending of --out (.svg, .mmd, .json; .txt or none: words)",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="file to write", dir_okay=False, show_default=False)] = None,
    run: Annotated[
        str | None, typer.Option(metavar="SEED:INDEX", help="show this random run instead", show_default=False)
    ] = None,
    saved: Annotated[
        Path | None, typer.Option("--replay", metavar="JSON", help="show a trace saved with --json", show_default=False)
    ] = None,
    memory: Annotated[str, typer.Option(help="memory for the search of all states, such as 4GiB")] = "256MiB",
    scenario: Scenario = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Show how an invariant breaks, step by step.

    Finds a shortest counterexample if all states fit in memory, or else minimises one from random runs. Can also show
    any random run, or a saved trace. Prints words, TLC's states, Mermaid, sequencediagram.org source, or a picture.

    \b
    Example: quorisk trace configs/defect1.toml --memory 64MiB --format sequencediagram
    """
    if run and saved:
        raise ConfigError("--run, --replay: give only one of the two")
    experiment = parsed(file, overrides, strict, True, scenario)
    from quorisk.analysis import explore, files
    from quorisk.analysis.traces import find, formats, json_file, trace
    from quorisk.command import bars, show

    memory_bytes, chosen = explore.parse_memory(memory), formats.chosen_format(form, out)
    first = None if run or saved or not experiment.asks_year else whole_of(experiment)
    if first:
        from quorisk.analysis.decision import whole

        experiment = whole.likeliest_scenario(experiment, first)
    with bars.status() as tell:
        found = find.requested_trace(experiment, invariant, run, saved, memory_bytes, tell)
    replayed = found.trace and trace.replay_in_words(found.trace)
    answer = json_file.as_json(*found, replayed.verdict if replayed else "")
    if first and not as_json:
        from quorisk.command import show_year

        show_year.print_losses_and_cause(first, experiment, bool(found.trace), show.console(stderr=chosen != "words"))
    if found.trace and replayed:
        text = as_text(answer) if chosen == "json" else formats.FORMATS[chosen](found.trace, replayed)
        if out:
            files.write_whole(out, text.encode(), "out")
        elif not as_json:
            typer.echo(text, nl=False)
    if as_json:
        print_json({**(first.as_json() if first else {}), **answer})
    elif out or not found.trace:
        typer.echo(by_option(found.reason) if not found.trace else f"{out}: {found.reason}")
