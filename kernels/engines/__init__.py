"""The engines, which step random runs. Every engine gives the same results, bit for bit."""

ENGINES = {
    "numba": "quorisk.kernels.engines.numba_engine",
    "lanes": "quorisk.kernels.engines.lanes",
    "jax": "quorisk.kernels.engines.jax_engine",
}
"""Modules of the engines, by their names in experiment files. Looking one up loads none."""
