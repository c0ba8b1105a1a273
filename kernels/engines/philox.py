"""Random numbers as a pure function of (seed, run, step, draw): the counter-based generator Philox4x32-10.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); known answers from
Random123. A run is the counter's first 64 bits, a step the next 32, a block of draws the last 32; the seed is the key.
Words of 32 bits are held in 64-bit unsigned integers, in which no product below overflows, so that Numba, JAX and
NumPy scalars compute the same bits.
"""

import numpy as np

from quorisk.kernels.ops import as_int64, as_uint64, jitable, leading_zeros

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 10


@jitable
def philox(c0, c1, c2, c3, k0, k1):
    """Philox4x32-10. Counter and key are 32-bit words in uint64; so are the four words returned."""
    for _ in range(_ROUNDS):
        product_0, product_1 = c0 * _MULTIPLIER_0, c2 * _MULTIPLIER_1
        c0, c1, c2, c3 = (product_1 >> _32) ^ c1 ^ k0, product_1 & _LOW, (product_0 >> _32) ^ c3 ^ k1, product_0 & _LOW
        k0, k1 = (k0 + _WEYL_0) & _LOW, (k1 + _WEYL_1) & _LOW
    return c0, c1, c2, c3


@jitable
def draw_pair(seed, run, step, block):
    """Two 64-bit numbers: block `block` of the draws of one step of one run. All arguments are uint64."""
    w0, w1, w2, w3 = philox(run & _LOW, run >> _32, step, block, seed & _LOW, seed >> _32)
    return w0 | (w1 << _32), w2 | (w3 << _32)


@jitable
def multiply_high(a, b):
    """The upper 64 bits of the 128-bit product of two uint64: for uniform `a`, uniform below `b`."""
    a0, a1, b0, b1 = a & _LOW, a >> _32, b & _LOW, b >> _32
    middle = a1 * b0 + (a0 * b0 >> _32)
    return a1 * b1 + (middle >> _32) + (a0 * b1 + (middle & _LOW) >> _32)


# log2(1 + f) = f (1 + (f - 1) q(f)) on [0, 1): q fitted at Chebyshev points, error below 3e-8; scaled by 2**30
_LOG2_COEFFICIENTS = tuple(
    round(c * 2**30)
    for c in (
        0.00568476,
        -0.02920528,
        0.0707645,
        -0.1150446,
        0.15507041,
        -0.20186265,
        0.27863539,
        -0.44269491,
    )
)
LOG2_UNIT = 2.0**-32


@jitable
def minus_log2(uniform):
    """-log2 of a 64-bit uniform number as a fraction of one, an int64 in units of 2**-32.

    Integer arithmetic alone, so that every engine gets the same bits. It is exponential with mean 1/ln 2.
    """
    uniform = uniform | np.uint64(1)
    zeros = leading_zeros(uniform)
    mantissa = as_int64((uniform << as_uint64(zeros) << np.uint64(1)) >> _32)
    q = 0
    for coefficient in _LOG2_COEFFICIENTS:
        q = coefficient + (q * mantissa >> 32)
    bend = q * (mantissa - 4294967296) >> 32
    return ((zeros + 1) << 32) - (mantissa * (1073741824 + bend) >> 30)
