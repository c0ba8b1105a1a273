"""Work side by side."""

import threading

import pytest

from quorisk.kernels.cores import side_by_side


def test_two_run_at_once_and_all_are_in_order():
    together = threading.Barrier(2, timeout=30)

    def work(item):
        together.wait()  # passes only if two run at once
        return -item

    assert list(side_by_side(work, range(4), 2)) == [0, -1, -2, -3]
    assert list(side_by_side(work, [], 2)) == []


def test_what_is_raised_is_raised():
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda item: 1 // item, [1, 0, 2], 2))
