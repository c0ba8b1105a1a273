"""Long points on GPUs: each configuration gets a kernel of its own, as `lanes` has on CPUs.

`lane` is a step of one run, `kernel` what makes runs of it, `switch` when that takes over from `jax_batch`.
"""
