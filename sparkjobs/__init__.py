"""Parameter grids on Spark: plan -> run -> merge."""
