"""What steps random runs. Every engine gives the same results, bit for bit."""

ENGINES = {
    "numba": "quorisk.kernels.engines.numba_engine",
    "lanes": "quorisk.kernels.engines.lanes",
    "jax": "quorisk.kernels.engines.jax_engine",
}
"""The module that is an engine, by the name that an experiment file calls it. Naming one loads none."""
