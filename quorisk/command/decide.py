"""The verbs of the `quorisk` command that lead from a question to a choice: recommend, diff."""

import math
from pathlib import Path
from typing import Annotated

import typer

from quorisk.command.app import (
    File,
    Json,
    NoScenario,
    Overrides,
    Strict,
    Threads,
    app,
    confidence,
    of_a_year,
    parsed,
    repeated,
    reply,
    written_file,
)

TARGET_MISSED = 3
"""Exit status if no design meets the targets, or it is undecided whether one does."""


Markdown = Annotated[
    Path | None, written_file("--markdown", "write a comment for a pull request, and its picture beside it", ".md")
]


@app.command("recommend")
def recommend_verb(
    file: File,
    overrides: Overrides,
    keys: Annotated[
        list[str],
        repeated(
            "--break-even",
            metavar="KEY",
            help="scale this rate or other figure, 'all' or 'none'; may be repeated (default: what fits in 5 s)",
        ),
    ],
    break_even_s: Annotated[
        float | None,
        typer.Option(min=0.0, help="seconds that this may take (default: 600 for 'all', no limit for KEY)"),
    ] = None,
    fail_on_target: Annotated[
        bool, typer.Option("--fail-on-target", help="exit with 3 if no design is shown to meet the targets")
    ] = False,
    details: Annotated[bool, typer.Option("--details", help="print reasons, all designs, scenarios, limits")] = False,
    markdown: Markdown = None,
    memory: Annotated[str, typer.Option(help="memory for solving a configuration exactly, such as 128MiB")] = "128MiB",
    scenario: NoScenario = None,
    threads: Threads = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Say which design to run.

    Weighs every design of the grid over all scenarios: exactly if its Markov chain is small, else by random runs. Ranks
    the designs by losses or, if the file has [cluster], by the probability of losing anything in a year. Checks them
    against [targets], and names the one to choose and the runner-up. Says how sure that is by what is known of the
    rates, and how far off they would have to be to change the choice.

    \b
    Examples: quorisk recommend configs/pulsar.toml --break-even faults.message_loss
              quorisk recommend mine.toml --fail-on-target --markdown comment.md
    """
    experiment = of_a_year(parsed(file, overrides, strict, scenario=scenario))
    from quorisk.analysis import explore, files
    from quorisk.analysis.decision import recommend
    from quorisk.analysis.decision.weigh import Weigher
    from quorisk.command import bars, show_decision
    from quorisk.kernels.cores import num_cores

    memory_bytes = explore.parse_memory(memory)
    if markdown:
        files.require_writable(markdown, "markdown")
    with bars.status_with_designs() as (tell, known):
        weigher = Weigher(memory_bytes, threads or num_cores(), tell, known=known)
        usual: dict[str, tuple[list[str] | None, float]] = {
            "": (None, recommend.WITHIN_S),
            "all": (None, recommend.ALL_WITHIN_S),
            "none": ([], math.inf),
        }
        scaled, usual_s = usual.get(" ".join(keys), (keys, math.inf))
        within_s = usual_s if break_even_s is None else break_even_s
        advice = recommend.advise(experiment, weigher, scaled, within_s, bool(keys))
    more = [part for key in keys or ["all"] for part in ("--break-even", key)]
    if keys and within_s < math.inf:
        more += ["--break-even-s", f"{max(10 * within_s, recommend.ALL_WITHIN_S):g}"]
    reply(as_json, recommend.as_json(advice), lambda: show_decision.print_advice(advice, experiment, more, details))
    if markdown:
        from quorisk.command import show_comment  # which loads Matplotlib
        from quorisk.plots.comment import Judged

        sweep = Judged(advice.designs, advice.target)
        show_comment.write_comment(markdown, sweep, [*advice.asked_for, *advice.words.flips, *advice.words.sentences])
    if fail_on_target and not advice.choice:
        raise typer.Exit(TARGET_MISSED)


@app.command("diff")
def diff_verb(
    before: Annotated[Path, typer.Argument(metavar="DIR1", help="folder of a sweep", show_default=False)],
    after: Annotated[Path, typer.Argument(metavar="DIR2", help="folder of a later sweep", show_default=False)],
    invariant: Annotated[str, typer.Option(help="invariant whose probability to compare")] = "data loss",
    confidence: Annotated[float, confidence("confidence that all intervals hold together")] = 0.95,
    markdown: Markdown = None,
    as_json: Json = False,
) -> None:
    """Compare two sweeps.

    Which configurations lose data more often or less often than before, and by how much?

    Example: quorisk diff results/monday results/tuesday
    """
    from quorisk.analysis.decision import diff
    from quorisk.command import show_comment, show_decision

    found = diff.diff(before, after, invariant, confidence)
    reply(as_json, found, lambda: show_decision.print_diff(found, invariant))
    if markdown:
        show_comment.write_diff(markdown, before, after, confidence)
