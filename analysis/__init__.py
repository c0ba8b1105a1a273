"""Meaning of numbers: estimates, intervals, exact answers, searches, comparisons, traces and decisions."""
