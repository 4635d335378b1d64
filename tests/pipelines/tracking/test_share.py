"""The shares of all workers are the whole, and no piece is in two of them."""

import pytest
from tracking.share import Share

from rlflow.errors import InputError


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_shares_are_the_whole(workers: int):
    shares = [list(Share(worker, workers).of(7)) for worker in range(workers)]
    assert sorted(piece for share in shares for piece in share) == list(range(7))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_one_worker_has_all():
    assert list(Share().of(3)) == [0, 1, 2]


@pytest.mark.parametrize(("worker", "workers"), [(2, 2), (-1, 2), (0, 0)])
def test_a_worker_that_is_not_among_them_is_refused(worker: int, workers: int):
    with pytest.raises(InputError, match="there is no worker"):
        Share(worker, workers)
