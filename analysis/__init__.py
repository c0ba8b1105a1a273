"""What a number means: estimates, intervals, exact answers, searches, comparisons, traces and decisions."""
