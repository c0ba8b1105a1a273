"""Answers as Prometheus gives them, a sample every minute."""

STEP = 60
START = 1_735_689_600
"""2025-01-01."""


def answer(*series):
    """An answer of Prometheus: series of name, labels and values, every minute, or pairs of time and value."""
    result = []
    for name, labels, values in series:
        pairs = [each if isinstance(each, tuple) else (START + STEP * i, each) for i, each in enumerate(values)]
        named = {"__name__": name} if name else {}
        result.append({"metric": {**named, **labels}, "values": [[time, str(value)] for time, value in pairs]})
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def minutes(name, values, labels=None, since=0, step=1):
    """A series that starts some minutes late."""
    return (name, labels or {}, [(START + STEP * (since + step * i), each) for i, each in enumerate(values)])
