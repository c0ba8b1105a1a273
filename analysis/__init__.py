"""Estimates, intervals, searches and comparisons of protocols, and the `quorisk` command."""
