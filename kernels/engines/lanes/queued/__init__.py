"""A run in each lane, gathered from memory by what they draw, so that one effect is computed: for large models."""
