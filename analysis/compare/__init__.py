"""Comparisons of configurations, run by run under common random numbers: which is safer, and by how much."""
