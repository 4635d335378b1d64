"""The buckets of distances that T5's decoder counts by."""

import numpy as np

from rlflow.zoo.t5 import distance_buckets


def test_buckets_of_distances():
    """Sixteen single ones, then ever wider, the last from 113 on; a later token counts as none."""
    buckets = distance_buckets(200, 32)
    assert (buckets[np.triu_indices(200)] == 0).all()
    by_distance = buckets[199, ::-1]
    assert list(by_distance[:17]) == list(range(17))
    widths = np.bincount(by_distance)[16:31]
    assert len(np.bincount(by_distance)) == 32
    assert (np.diff(widths) >= -1).all()
    assert list(np.flatnonzero(np.diff(by_distance))[-3:] + 1) == [87, 99, 113]
    assert np.array_equal(buckets[:50, :50], distance_buckets(50, 32))
