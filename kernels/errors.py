"""What goes wrong, in words for the person who asked for it."""


class ConfigError(ValueError):
    """Input that cannot be used; the text is one line naming file, key, value and what is allowed."""


class RunError(RuntimeError):
    """A computation that cannot go on; the text is one line naming what failed. What it had computed before is kept."""


class ResultError(ValueError):
    """Result rows that do not belong together, or a file that does not hold what was written to it."""


class EngineError(RuntimeError):
    """An engine cannot work here; the text is one line that says why, and what to do."""
