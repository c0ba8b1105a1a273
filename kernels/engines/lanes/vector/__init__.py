"""A run in each lane of a SIMD register, every effect computed for all of them: for small models."""
