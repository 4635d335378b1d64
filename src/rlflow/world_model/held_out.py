"""The choice of the episodes that a fit never trains on."""

import numpy as np


def split_episodes(episodes: int, held_out_fraction: float, seed: int) -> tuple[list[int], list[int]]:
    """Indices of the training episodes and of the held-out ones.

    Whole episodes are held out, so that no held-out state is the neighbour of one that was trained on. At least one is
    held out if the fraction is positive and there are two or more.
    """
    order = np.random.default_rng(seed).permutation(episodes)
    held_out = round(held_out_fraction * episodes)
    if held_out_fraction > 0 and episodes > 1:
        held_out = min(max(held_out, 1), episodes - 1)
    return sorted(order[held_out:].tolist()), sorted(order[:held_out].tolist())
