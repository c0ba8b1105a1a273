"""What goes wrong because of the machine."""


class EngineError(RuntimeError):
    """An engine cannot work here; the text is one line that says why, and what to do."""
