"""Episodes while they are collected, each in a folder of its own, so that several workers add to one collection.

    shards = EpisodeShards.of(folder, {"seed": 0}, nothing)          nothing: rollouts without an episode
    shards.keep(7, collected)
    shards.find(7)                                                   None where nobody has played it
    put_together([shards.find(number) for number in range(60)])

Workers on several machines need a folder that all of them see.

The invariant: an episode is there as a whole or not at all, so that a kill costs one.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError
from rlflow.representation import token_archive
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.representation.token_shards import merged

_RUN, _EFFORT = "collection.json", "effort.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Collected:
    """Rollouts and what they took, by all that played them.

    rewrites: those that were carried out to know all savings; workers do not share what they have tried. seconds:
    of wall time, summed over workers.
    """

    rollouts: TokenRollouts
    rewrites: int
    seconds: float


def put_together(parts: Sequence[Collected]) -> Collected:
    """Return the episodes of all parts, one of each in turn; `InputError` if they do not belong together."""
    return Collected(
        merged([part.rollouts for part in parts]),
        sum(part.rewrites for part in parts),
        sum(part.seconds for part in parts),
    )


@dataclass(frozen=True)
class EpisodeShards:
    """The episodes of one collection, by their numbers."""

    folder: Path

    @classmethod
    def of(cls, folder: Path, run: Mapping[str, Any], nothing: TokenRollouts) -> EpisodeShards:
        """Return the shards in a folder, from which those of another run are removed.

        run: the settings that episodes depend on. nothing: the collection's rollouts as long as there are none.
        """
        known = [dict(run), nothing.graphs, nothing.library_hash, asdict(nothing.vocabulary)]
        wanted = json.dumps(known, sort_keys=True)
        if (folder / _RUN).exists() and (folder / _RUN).read_bytes() != wanted.encode():
            log.warning("%s was collected with another seed, settings, rules or vocabulary; starting afresh", folder)
            shutil.rmtree(folder)
        with written_whole(folder / _RUN) as draft:
            draft.write_bytes(wanted.encode())
        return cls(folder)

    def find(self, number: int) -> Collected | None:
        """Return an episode that was kept; None if it is not there, or broken."""
        place = self._place(number)
        if not (place / _EFFORT).exists():
            return None
        try:
            return Collected(token_archive.load(place), **json.loads((place / _EFFORT).read_text()))
        except (InputError, OSError, ValueError, TypeError) as error:
            log.warning("episode %d is played again: %s", number, error)
            return None

    def keep(self, number: int, played: Collected) -> None:
        """Write an episode; the file that tells that it is whole comes last."""
        place = self._place(number)
        token_archive.save(played.rollouts, place)
        with written_whole(place / _EFFORT) as draft:
            draft.write_text(json.dumps({"rewrites": played.rewrites, "seconds": played.seconds}))

    def _place(self, number: int) -> Path:
        return self.folder / f"episode-{number}"
