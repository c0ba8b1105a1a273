"""What each rate of a protocol counts, as the tables of docs/actions.md have it."""

from quorisk.kernels.model import MESSAGE_LOSS, Model, needed


def table(model: Model) -> str:
    """The table of a model's rates, in Markdown."""
    lines = ["| `[rates]` | at this rate | |", "|---|---|---|"]
    for action in model.actions:
        names = [f"`{p.name}`{' off' if p.default_value is True else ''}" for p in needed(model, action)]
        wanted = [*(f"`{name}`" for name in action.bounds), *([" or ".join(names)] if names else [])]
        notes = [f"needs {' and '.join(wanted)}"] if wanted else []
        if action.lost_with != MESSAGE_LOSS:
            notes.append(f"loses with `{action.lost_with}`")
        lines.append(f"| `{action.name}` | {action.counts} | {', '.join(notes)} |".replace("|  |", "| |"))
    return "\n".join(lines)
