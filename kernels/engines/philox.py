"""Random numbers as a pure function of (seed, run, step, block): the counter-based generator Philox4x32-10.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); known answers from
Random123. A run is the counter's first 64 bits, a step the next 32, a block of draws the last 32; the seed is the key.
Words of 32 bits are held in 64-bit unsigned integers, in which no product below overflows, so that Numba, JAX and
NumPy scalars compute the same bits.

Step 0 is the start of a run: its block 0 picks the initial state. Steps are counted from 1, and nearly all of them need
block 0 alone:

    word 0    the leading 32 bits of what chooses the instance
    word 1    the wait
    word 2    15 leading bits of the fate of message 0 in the lower half, of message 1 in the upper; each half's top bit
              is not used
    word 3    those of messages 2 and 3

Where these bits leave a decision open, further blocks settle it. Drawing them although nothing is open gives the same
answer.

    block 1               first half: the 64 bits that follow word 0; second half: whether an instance is accepted
    block 2 + j // 2      half j % 2: 48 low bits that follow the fate of message j; of those beyond the first four the
                          upper 63 bits are all that there is
    block PICK            first half: which member of a group goes off, where instances share a rate; second half: which
                          fault comes in place of the end of a hurried run (`engines.hurried`)
    block PICK + 1        whether a hurried run is dropped

What an action loses with another probability than messages are is drawn from the same bits as their fates.

So an instance of weight w in a total of W is chosen with probability w/W to within 2**-96, and a message is lost with
probability loss/2**63 exactly. A wait has 32 bits: its distribution function is within 2**-32, its scale within 3e-8,
and none is longer than 23 times the mean. If an instance is not accepted (see `points.Weights`), everything is drawn
anew from blocks that are counted RETRY further on.
"""

import numpy as np

from quorisk.kernels.ops import as_int64, as_uint64, jitable, jitable_apart, leading_zeros, where
from quorisk.kernels.rule import PICK_BITS

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 10
FIRST_MESSAGES = 4
"""Number of messages of a step whose fates block 0 decides, nearly always."""
OPEN = FIRST_MESSAGES
"""Lowest bit of `first_draws`' fates that marks one as still open."""
PICK = 1 << 7
"""Number of the block, after those of all messages, that picks the member of a group that goes off (`rule.member`)."""
RETRY = 1 << 8
"""Blocks from one attempt at a step to the next."""
_REST_BITS = np.uint64(48)
"""Bits of a loss, in units of 2**-63, after the leading 15."""
_REST = np.uint64((1 << 48) - 1)
_MOST = (1 << 15) - 1
_ONES, _GUARDS = np.uint64(0x0001000100010001), np.uint64(0x80008000)


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


@jitable
def lowest_place(word, total):
    """The place below `total` (uint64, below 2**62) that `word`, 32 bits of a fraction, leads to if zeros follow."""
    low = word * (total & _LOW)
    return word * (total >> _32) + (low >> _32)


@jitable
def highest_place(word, total):
    """The place that `word` leads to if ones follow."""
    low = word * (total & _LOW)
    return word * (total >> _32) + (low >> _32) + ((low & _LOW) + total - np.uint64(1) >> _32)


@jitable
def place(word, total, source):
    """The place that `word` leads to, and block 1 after it: uniform to within 2**-96."""
    seed, run, step, block, _ = source
    following, _ = draw_pair(seed, run, step, block + np.uint64(1))
    low = word * (total & _LOW)
    return word * (total >> _32) + (low >> _32) + ((low & _LOW) + multiply_high(following, total) >> _32)


@jitable
def first_draws(source):
    """Returns a step's draws from block 0: the word that chooses, the wait, and the fates of the first four messages.

    `source` is (seed, run, step, block, loss), all of them uint64: `block` is where an attempt begins, and `loss` is
    the probability in units of 2**-63. Fates are an int64: bit j is set if message j is lost, bit OPEN + j if that is
    still open.
    """
    seed, run, step, block, loss = source
    choose, wait, w2, w3 = philox(run & _LOW, run >> _32, step, block, seed & _LOW, seed >> _32)
    # four 15-bit numbers, each with a one above from which a borrow is taken if it is below the loss
    guarded = (w2 | _GUARDS) | (w3 | _GUARDS) << _32
    above = guarded - _leading(loss) * _ONES
    kept, decided = above >> np.uint64(15) & _ONES, above - _ONES >> np.uint64(15) & _ONES
    bits = kept ^ _ONES | kept - decided << np.uint64(OPEN)
    bits |= bits >> np.uint64(15)
    bits |= bits >> np.uint64(30)
    return choose, minus_log2(wait << _32 | np.uint64(1 << 31)), as_int64(bits & np.uint64(255))


@jitable
def again(source):
    """The source of another attempt."""
    seed, run, step, block, loss = source
    return seed, run, step, block + np.uint64(RETRY), loss


@jitable
def _leading(loss):
    """The bits of a loss that are compared first; all ones also for probability 1."""
    # not `>`, which machine code's values lack
    return where(loss >> _REST_BITS >= np.uint64(_MOST + 1), np.uint64(_MOST), loss >> _REST_BITS)


@jitable_apart
def settled_fates(fates, source):
    """The fates of the first four messages, none of them open."""
    seed, run, step, block, loss = source
    first, second = draw_pair(seed, run, step, block + np.uint64(2))
    third, fourth = draw_pair(seed, run, step, block + np.uint64(3))
    rest = loss - (_leading(loss) << _REST_BITS)
    lost = as_int64(first & _REST < rest) | as_int64(second & _REST < rest) << 1
    lost |= as_int64(third & _REST < rest) << 2 | as_int64(fourth & _REST < rest) << 3
    return fates & 15 | fates >> OPEN & lost


@jitable_apart
def later_fates(source, num):
    """The fates of messages 4 to num - 1, at their places in a mask; the bit of message `num` may be set, too."""
    seed, run, step, block, loss = source
    lost = 0
    for pair in range(FIRST_MESSAGES // 2, (num + 1) // 2):
        first, second = draw_pair(seed, run, step, block + as_uint64(pair + 2))
        lost |= as_int64(first >> np.uint64(1) < loss) << 2 * pair
        lost |= as_int64(second >> np.uint64(1) < loss) << 2 * pair + 1
    return lost


@jitable_apart
def fates_of(source, num):
    """The fates of members 0 to num - 1 of a subset, or of more, as a mask: all are drawn with the source's loss."""
    _, _, fates = first_draws(source)
    return settled_fates(fates, source) | later_fates(source, num)


@jitable_apart
def pick(source):
    """A random number below 2**PICK_BITS, which picks the member of a group that goes off."""
    seed, run, step, block, _ = source
    return as_int64(draw_pair(seed, run, step, block + np.uint64(PICK))[0] >> np.uint64(64 - PICK_BITS))


@jitable
def is_accepted(accept, source):
    """Draws whether an instance is accepted, with probability `accept` in units of 2**-63."""
    seed, run, step, block, _ = source
    return draw_pair(seed, run, step, block + np.uint64(1))[1] >> np.uint64(1) < accept


# log2(1 + f) = f (1 + (f - 1) q(f)) on [0, 1): q fitted at Chebyshev points, error below 3e-8; scaled by 2**30
_LOG2_COEFFICIENTS = tuple(
    round(c * 2**30)
    for c in (0.00568476, -0.02920528, 0.0707645, -0.1150446, 0.15507041, -0.20186265, 0.27863539, -0.44269491)
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
