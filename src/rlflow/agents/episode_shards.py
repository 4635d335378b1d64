"""Episodes while they are collected, each kept by itself, so that a kill costs one and several workers share the rest.

    shards = Kept(folder / fingerprint(settings), save, load)
    parts = [*played_once(range(60), shards, play, on_episode)]

Workers on several machines need a folder that all of them see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rlflow.kept import Kept

T = TypeVar("T")


def played_once(
    numbers: Iterable[int], shards: Kept[T] | None, play: Callable[[int], T], on_episode: Callable[[int, T], None]
) -> Iterator[T]:
    """Yield the episodes of these numbers; those that the shards have are not played, the others are kept there.

    on_episode: called after each that is played.
    """
    for number in numbers:
        key = f"episode-{number}"
        episode = shards.find(key) if shards is not None else None
        if episode is None:
            episode = play(number)
            if shards is not None:
                shards.keep(key, episode)
            on_episode(number, episode)
        yield episode
