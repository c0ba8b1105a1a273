"""Topics to try the model on."""

from quorisk.kernels.protocols.cases import Cases

_LARGE = {"messages": 4, "compactions": 6, "keys": 2, "values": 1, "max_crashes": 12}

CASES = Cases(
    small={"messages": 2, "compactions": 3, "keys": 1, "values": 1, "max_crashes": 1},
    variants=(
        {"messages": 4, "compactions": 4, "keys": 2},
        {"retain_null_key": False, "max_steps": 18},
        {"model_producer": False, "messages": 3, "values": 2},
        {"publish_context_before_horizon": False},
        {"persist_cursor_before_delete": False, "max_crashes": 2, "rates": {"broker_crash": 0.3}},
        {"horizon": 6.0, "rates": {"producer": 1e-3}},
        {"rates": {"producer": 0.0}},
    ),
    walks=(
        _LARGE,
        _LARGE | {"publish_context_before_horizon": False, "persist_cursor_before_delete": False},
        {"messages": 8, "compactions": 7, "keys": 6, "values": 6, "max_crashes": 31, "retain_null_key": False},
        {"messages": 5, "keys": 3, "values": 2, "model_producer": False},
    ),
    bench={"model": {"messages": 6, "compactions": 4, "keys": 3, "values": 2, "max_crashes": 3}},
)
