"""The random numbers: published known answers, the same bits on every engine, and the right distribution."""

import jax
import numpy as np
import pytest
from numba import njit

from quorisk.kernels.compiled import bind
from quorisk.kernels.engines import numba_engine, philox
from quorisk.kernels.machine_code import _deposit_one_by_one
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


@pytest.fixture(scope="module")
def lost_of():
    """Which messages of the first step of a run are lost: `lost_of(run, sent, loss)`, by the engine's own draws."""
    draw_ahead = bind(numba_engine._draw_ahead, "test", max_sends=6)

    @njit
    def lost(run, sent, loss):
        draws = np.empty(3 * numba_engine._AHEAD, np.int64)
        draw_ahead(np.uint64(3), run, 0, loss, draws)
        return deposit(draws[2 * numba_engine._AHEAD], sent)

    return lambda run, sent, loss: lost(np.uint64(run), sent, np.uint64(loss))


@pytest.mark.parametrize("probability", [1e-12, 0.1, 0.9])
def test_losses_are_independent_and_as_likely_as_asked(lost_of, probability):
    """Five messages a step; a small probability is checked at its threshold, draw by draw."""
    sent, places = 0b110111, (0, 1, 2, 4, 5)
    lost = [lost_of(run, sent, round(probability * 2**63)) for run in range(40_000)]
    assert all(mask & ~sent == 0 for mask in lost)
    counts = np.array([[mask >> bit & 1 for bit in places] for mask in lost])
    sigma = (probability * (1 - probability) / len(lost)) ** 0.5
    assert np.abs(counts.mean(0) - probability).max() < 4.5 * sigma + 1e-9
    if probability > 0.01:
        assert np.abs(np.corrcoef(counts.T) - np.eye(5)).max() < 0.03


def test_a_message_is_lost_if_and_only_if_its_draw_is_below_the_loss(lost_of):
    sent, places = 0b110111, (0, 1, 2, 4, 5)
    draws = [u for block in (1, 2, 3) for u in philox.draw_pair(*map(np.uint64, (3, 0, 1, block)))]
    for draw, bit in zip(draws, places, strict=False):
        assert lost_of(0, sent, (int(draw) >> 1) + 1) >> bit & 1 == 1
        assert lost_of(0, sent, int(draw) >> 1) >> bit & 1 == 0


def test_certain_loss_and_no_loss(lost_of):
    for run in range(100):
        assert lost_of(run, 0b111111, 2**63) == 0b111111
        assert lost_of(run, 0b111111, 0) == 0


def test_deposit_spreads_bits_over_a_mask():
    for compiled in (deposit, njit(lambda bits, mask: deposit(bits, mask)), njit(_deposit_one_by_one)):
        assert compiled(0b101, 0b110100) == 0b100100
        assert compiled(0b111111, 0b1001) == 0b1001
