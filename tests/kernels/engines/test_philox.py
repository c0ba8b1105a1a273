"""The random numbers: published known answers, the same bits on every engine, and the right distribution."""

import jax
import numpy as np
import pytest
from numba import njit

from quorisk.kernels.engines import philox
from quorisk.kernels.ops import deposit

jax.config.update("jax_enable_x64", True)

# Random123, kat_vectors, philox 4x32 10: counter, key, answer
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(text):
    return [np.uint64(int(word, 16)) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
@pytest.mark.parametrize("compiler", [lambda f: f, njit, jax.jit], ids=["python", "numba", "jax"])
def test_known_answers(counter, key, answer, compiler):
    draw = compiler(lambda *arguments: philox.philox(*arguments))
    assert [int(word) for word in draw(*words(counter), *words(key))] == [int(word) for word in words(answer)]


def test_multiply_high_is_the_upper_half_of_the_product():
    numbers = np.random.default_rng(1).integers(0, 2**64, 200, np.uint64)
    edges = np.array([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1], np.uint64)
    for a in np.concatenate([numbers, edges]):
        for b in np.concatenate([numbers[:20], edges]):
            with np.errstate(over="ignore"):
                assert int(philox.multiply_high(a, b)) == int(a) * int(b) >> 64


def test_minus_log2_is_accurate_and_the_same_on_every_engine():
    uniform = np.random.default_rng(2).integers(0, 2**64, 20_000, np.uint64)
    uniform = np.concatenate([uniform, np.uint64(1) << np.arange(64, dtype=np.uint64), uniform >> np.uint64(50)])
    exact = 64 - np.log2((uniform | np.uint64(1)).astype(np.float64))
    compiled = njit(lambda u: philox.minus_log2(u))
    by_numba = np.array([compiled(u) for u in uniform])
    assert np.abs(by_numba * philox.LOG2_UNIT - exact).max() < 4e-8
    assert (by_numba == np.asarray(jax.jit(jax.vmap(philox.minus_log2))(uniform))).all()
    assert by_numba[:2000].tolist() == [philox.minus_log2(u) for u in uniform[:2000]]


def source(run=0, step=1, block=0, loss=0):
    return tuple(map(np.uint64, (3, run, step, block, loss)))


KNOWN_STEP = (1599860561, 2783211877, 0b0010)
KNOWN_PLACE = 1288377897999628557
KNOWN_SETTLED = 0b1011
KNOWN_LATER = 0b1010000000
EVERY = [lambda f: f, lambda f: njit(lambda *given: f(*given)), jax.jit]
"""Compilers."""


@pytest.mark.parametrize("compiler", EVERY, ids=["python", "numba", "jax"])
def test_known_draws_of_a_step(compiler):
    """Any change here changes all results: count the models' versions up."""
    run, loss = 2**40 + 7, round(0.3 * 2**63)
    choose, wait, fates = compiler(philox.first_draws)(source(run, 5, 0, loss))
    assert (int(choose), int(wait), int(fates)) == KNOWN_STEP
    place = compiler(philox.place)(choose, np.uint64(3 * 2**60), source(run, 5, 0, loss))
    assert int(place) == KNOWN_PLACE
    assert int(compiler(philox.settled_fates)(0b11110000, source(run, 5, 0, loss))) == KNOWN_SETTLED
    assert int(philox.later_fates(source(run, 5, 0, loss), 12)) == KNOWN_LATER
    again = philox.again(source(run, 5, 0, loss))
    assert [int(word) for word in again] == [3, run, 5, 256, loss]


def full_draws(run, messages=12):
    """The 63 bits of each message's fate, from the blocks as `philox` describes them."""
    words = philox.philox(np.uint64(run), np.uint64(0), np.uint64(1), np.uint64(0), np.uint64(3), np.uint64(0))
    leading = [int(words[2 + j // 2]) >> 16 * (j % 2) & 0x7FFF for j in range(4)]
    pairs = [philox.draw_pair(*map(np.uint64, (3, run, 1, 2 + j // 2)))[j % 2] for j in range(messages)]
    first = [high << 48 | int(low) & 2**48 - 1 for high, low in zip(leading, pairs, strict=False)]
    return first + [int(pair) >> 1 for pair in pairs[4:]]


def lost_of(run, loss, messages=12):
    _, _, fates = philox.first_draws(source(run, loss=loss))
    fates = philox.settled_fates(fates, source(run, loss=loss))
    return int(fates) | int(philox.later_fates(source(run, loss=loss), messages))


def test_a_message_is_lost_if_and_only_if_its_63_bits_are_below_the_loss():
    """At the threshold itself the leading bits leave it open."""
    for run in range(50):
        for j, draw in enumerate(full_draws(run)):
            for loss, is_lost in ((draw, 0), (draw + 1, 1), (draw ^ 1 << 60, draw >> 60 & 1 ^ 1), (0, 0), (2**63, 1)):
                assert lost_of(run, loss) >> j & 1 == is_lost, (run, j, loss)
            if j < 4:
                assert int(philox.first_draws(source(run, loss=draw))[2]) >> j & 0x11 == 0x10
                assert int(philox.first_draws(source(run, loss=draw + 2**48 & 2**63 - 1))[2]) >> j & 0x10 == 0


@njit
def lost_of_six(run, loss):
    drawn = np.uint64(3), np.uint64(run), np.uint64(1), np.uint64(0), loss
    _, _, fates = philox.first_draws(drawn)
    return philox.settled_fates(fates, drawn) | philox.later_fates(drawn, 6)


@pytest.mark.parametrize("probability", [1e-12, 0.1, 0.9])
def test_losses_are_independent_and_as_likely_as_asked(probability):
    loss = np.uint64(round(probability * 2**63))
    masks = [lost_of_six(run, loss) for run in range(40_000)]
    counts = np.array([[mask >> bit & 1 for bit in range(6)] for mask in masks])
    sigma = (probability * (1 - probability) / len(masks)) ** 0.5
    assert np.abs(counts.mean(0) - probability).max() < 4.5 * sigma + 1e-9
    if probability > 0.01:
        assert np.abs(np.corrcoef(counts.T) - np.eye(6)).max() < 0.03


@pytest.mark.parametrize("total", [1, 10, 2**32 + 1, 3 * 2**60, 2**62 - 1])
def test_a_place_is_where_96_bits_lead_and_between_where_32_bits_may(total):
    for run in range(200):
        word = philox.first_draws(source(run))[0]
        following, _ = philox.draw_pair(*map(np.uint64, (3, run, 1, 1)))
        exact = (int(word) << 64 | int(following)) * total >> 96
        assert int(philox.place(word, np.uint64(total), source(run))) == exact
        lowest, highest = (int(f(word, np.uint64(total))) for f in (philox.lowest_place, philox.highest_place))
        assert lowest == int(word) * total >> 32
        assert highest == ((int(word) << 64 | 2**64 - 1) * total >> 96)
        assert lowest <= exact <= highest


def test_an_instance_is_accepted_as_often_as_asked():
    accepted = [bool(philox.is_accepted(np.uint64(0.25 * 2**63), source(run))) for run in range(4000)]
    assert abs(np.mean(accepted) - 0.25) < 4.5 * (0.25 * 0.75 / len(accepted)) ** 0.5
    assert all(philox.is_accepted(np.uint64(2**63), source(run)) for run in range(100))


def test_deposit_spreads_bits_over_a_mask():
    assert deposit(0b101, 0b110100) == 0b100100
    assert deposit(0b111111, 0b1001) == 0b1001
