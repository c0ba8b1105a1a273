"""Work side by side."""

import threading

import pytest

from quorisk.kernels.cores import side_by_side


def test_the_first_is_alone_and_all_are_in_order():
    running, most = [0], [0]
    together = threading.Barrier(2, timeout=30)

    def work(item):
        running[0] += 1
        most[0] = max(most[0], running[0])
        if item:
            together.wait()  # passes only if two run at once
        else:
            assert most[0] == 1
        running[0] -= 1
        return -item

    assert list(side_by_side(work, range(5), 2)) == [0, -1, -2, -3, -4]
    assert list(side_by_side(work, [], 2)) == []


def test_what_is_raised_is_raised():
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda item: 1 // item, [1, 0, 2], 2))
