"""A protocol's functions as expressions, for one configuration or for all of them, and those as machine code."""
