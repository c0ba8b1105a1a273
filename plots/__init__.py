"""Figures and the design-review report, drawn from result tables alone."""
