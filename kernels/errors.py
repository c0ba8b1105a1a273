"""What goes wrong, in words for the person who asked for it."""


class QuoriskError(Exception):
    """What went wrong, in one line. It names arguments as Python does, within the line in backticks; the command names
    the options that they are instead."""

    exit_code = 1
    """What the command exits with."""


class ConfigError(QuoriskError, ValueError):
    """Input that cannot be used; the text is one line naming file, key, value and what is allowed."""

    exit_code = 2

    def __init__(self, text: str, argument: str = "") -> None:
        """`argument` is what the caller gave wrongly, by its name in Python; `text` goes on after it, " VALUE: ..."."""
        super().__init__(argument + text)
        self.argument, self.text = argument, text


class ModelError(QuoriskError, ValueError):
    """A protocol's package does not keep to what it declares, so no number of it can be trusted; the text is one line
    that names the protocol and what it declares."""

    exit_code = 2


class RunError(QuoriskError, RuntimeError):
    """A computation that cannot go on; the text is one line naming what failed. What it had computed before is kept."""


class ResultError(QuoriskError, ValueError):
    """Result rows that do not belong together, or a file that does not hold what was written to it."""


class EngineError(QuoriskError, RuntimeError):
    """An engine cannot work here; the text is one line that says why, and what to do."""

    exit_code = 2
