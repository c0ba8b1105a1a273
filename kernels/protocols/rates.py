"""What each rate of a protocol counts, as the tables of docs/actions.md have it."""

from quorisk.kernels.model import MESSAGE_LOSS, Model


def table(model: Model) -> str:
    """The table of a model's rates, in Markdown."""
    lines = ["| `[rates]` | at this rate | |", "|---|---|---|"]
    for action in model.actions:
        notes = [f"needs `{action.needs}`"] if action.needs else []
        if action.lost_with != MESSAGE_LOSS:
            notes.append(f"loses with `{action.lost_with}`")
        lines.append(f"| `{action.name}` | {action.counts} | {', '.join(notes)} |".replace("|  |", "| |"))
    return "\n".join(lines)
