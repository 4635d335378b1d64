"""Token rollouts on disk: arrays end to end in an npz file, and what they mean in a JSON file.

    save(rollouts, folder)          token_rollouts.npz, token_rollouts.json
    load(folder)

Integers are stored in the narrowest type that holds them. The keys of tokens are digests of their arrays, and are made
anew.

The invariant: equal rollouts give equal bytes, and what is loaded is what was saved, to the bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError
from rlflow.representation.match_token import MatchToken
from rlflow.representation.packing import Along, pack, unpack
from rlflow.representation.token_rollouts import Demonstration, TokenEpisode, TokenRollouts, TokenState, TokenStep
from rlflow.representation.vocabulary import Vocabulary

FORMAT_VERSION = 2

_ARRAYS = {
    "token": ("nodes", "before", "after", "op", "role", "features", "price", "edges_before", "edges_after"),
    "episode": ("steps", "graph", "unit_percent", "terminated", "shown"),
    "state": ("kinds", "cost", "hash", "distance", "token", "count", "apart", "saving"),
    "step": ("chosen", "taken", "reward", "kinds", "turns", "births", "distance", "gone", "turned", "born"),
    "label": ("kinds", "taken", "gain"),
}
"""The arrays of the file in their order, but for those that follow, and the last, the rule of each token."""

_WHERE_KNOWN = ("step/memory_saved", "step/latency_saved")
"""Numbers that are stored if any is known."""


@dataclass(frozen=True)
class _Labels:
    """A demonstration of one state: of each of its classes."""

    taken: Annotated[np.ndarray, Along("kinds")]
    gain: Annotated[np.ndarray, Along("kinds")]


def save(rollouts: TokenRollouts, folder: Path) -> None:
    """Write `token_rollouts.npz` and `token_rollouts.json`; equal rollouts give equal bytes."""
    rules, packed = sorted(set(rollouts.rule_of)), _packed(rollouts)
    arrays = {name: packed[name] for table, names in _ARRAYS.items() for name in (f"{table}/{of}" for of in names)}
    arrays |= {name: packed[name] for name in _WHERE_KNOWN if not np.isnan(packed[name]).all()}
    arrays["token/rule"] = np.searchsorted(rules, rollouts.rule_of) if rules else np.zeros(0, np.int64)
    with written_whole(folder / "token_rollouts.npz") as draft:
        np.savez_compressed(draft, **{name: _narrow(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    description = {
        "format_version": FORMAT_VERSION,
        "graphs": list(rollouts.graphs),
        "library_hash": rollouts.library_hash,
        **_sizes(arrays),
        "rules": rules,
        "vocabulary": asdict(rollouts.vocabulary),
    }
    with written_whole(folder / "token_rollouts.json") as draft:
        draft.write_text(json.dumps(description, indent=2) + "\n")


def load(folder: Path) -> TokenRollouts:
    """Read what `save` wrote. Raises InputError if the folder holds no such rollouts, or broken ones."""
    try:
        return _read(folder)
    except InputError:
        raise
    except Exception as error:  # a broken archive raises nearly anything, by which of its bytes is broken
        raise InputError(f"token rollouts: {folder} cannot be read ({error}); run collect_rollouts") from error


def _read(folder: Path) -> TokenRollouts:
    description = json.loads((folder / "token_rollouts.json").read_text())
    if description.get("format_version") != FORMAT_VERSION:
        raise InputError(f"token rollouts: {folder} has another format version; run collect_rollouts again")
    with (folder / "token_rollouts.npz").open("rb") as file, np.load(file, allow_pickle=False) as stored:
        packed = dict(stored)
    packed = dict.fromkeys(_WHERE_KNOWN, np.full(len(packed["step/chosen"]), np.nan)) | packed
    sizes = _sizes(packed)
    if sizes != {name: description[name] for name in sizes}:
        raise InputError(f"token rollouts: the files of {folder} do not belong together; run collect_rollouts")
    return TokenRollouts(
        tokens=tuple(unpack(MatchToken, packed, "token/", MatchToken.of_arrays)),
        rule_of=tuple(description["rules"][rule] for rule in packed["token/rule"]),
        episodes=tuple(_episodes(packed)),
        graphs=tuple(description["graphs"]),
        vocabulary=Vocabulary.from_json(description["vocabulary"]),
        library_hash=description["library_hash"],
    )


def _packed(rollouts: TokenRollouts) -> dict[str, np.ndarray]:
    """Return the arrays of all tables; the states, steps and labels of episodes lie end to end."""
    episodes = rollouts.episodes
    shown = [episode.demonstration for episode in episodes if episode.demonstration is not None]
    labels = [_Labels(*of_state) for each in shown for of_state in zip(each.taken, each.gain, strict=True)]
    return {
        **pack(MatchToken, rollouts.tokens, "token/"),
        **pack(TokenEpisode, episodes, "episode/"),
        **pack(TokenState, [state for episode in episodes for state in episode.states], "state/"),
        **pack(TokenStep, [step for episode in episodes for step in episode.steps], "step/"),
        **pack(_Labels, labels, "label/"),
        "episode/steps": np.array([episode.num_steps for episode in episodes], np.int64),
        "episode/shown": np.array([episode.demonstration is not None for episode in episodes], np.int64),
    }


def _episodes(packed: Mapping[str, np.ndarray]) -> Iterator[TokenEpisode]:
    states, steps = unpack(TokenState, packed, "state/"), unpack(TokenStep, packed, "step/")
    labels = unpack(_Labels, packed, "label/", lambda taken, gain: (taken, gain))
    numbers, demonstrated = packed["episode/steps"].tolist(), packed["episode/shown"].tolist()
    episodes = unpack(TokenEpisode, packed, "episode/", dict)
    for values, number, shown in zip(episodes, numbers, demonstrated, strict=True):
        visited, taken = tuple(islice(states, number + 1)), tuple(islice(steps, number))
        told = Demonstration(*zip(*islice(labels, number + 1), strict=True)) if shown else None
        yield TokenEpisode(**values, states=visited, steps=taken, demonstration=told)
    if any(next(left, None) is not None for left in (states, steps, labels)):
        raise InputError("token rollouts: there are states, steps or labels that belong to no episode")


def _sizes(packed: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Sizes that the description repeats of the arrays, to tell files that do not belong together."""
    return {
        "tokens": len(packed["token/nodes"]),
        "episodes": len(packed["episode/steps"]),
        "steps": int(packed["episode/steps"].sum()),
    }


def _narrow(array: np.ndarray) -> np.ndarray:
    """Integers in the narrowest type that holds them all."""
    if array.dtype.kind != "i":
        return array
    if not array.size:
        return array.astype(np.int8)
    return array.astype(np.result_type(np.min_scalar_type(array.min()), np.min_scalar_type(array.max())))
