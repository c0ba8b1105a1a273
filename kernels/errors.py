"""Errors, in words for the user."""


class QuoriskError(Exception):
    """An error, in one line. The line names arguments as Python does, in backticks; the command replaces these by its
    options."""

    exit_code = 1
    """Exit status of the command."""


class ConfigError(QuoriskError, ValueError):
    """Input that cannot be used; the text is one line naming file, key, value and what is allowed."""

    exit_code = 2

    def __init__(self, text: str, argument: str = "") -> None:
        """`argument` is the Python name of the argument that is wrong; `text` goes on after it, " VALUE: ..."."""
        super().__init__(argument + text)
        self.argument, self.text = argument, text


class ModelError(QuoriskError, ValueError):
    """A protocol's package that breaks its declarations, so that no number of it can be trusted; the text is one line
    that names the protocol and the declaration."""

    exit_code = 2


class RunError(QuoriskError, RuntimeError):
    """A computation that cannot go on; the text is one line naming what failed. Earlier results are kept."""


class ResultError(QuoriskError, ValueError):
    """Result rows that do not belong together, or a file that was damaged or changed."""


class EngineError(QuoriskError, RuntimeError):
    """An engine that cannot work here; the text is one line that says why, and what to do."""

    exit_code = 2
