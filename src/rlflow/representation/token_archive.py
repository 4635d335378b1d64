"""Token rollouts on disk: arrays end to end in an npz file, and what they mean in a JSON file.

    save(rollouts, folder)          token_rollouts.npz, token_rollouts.json
    load(folder)

Integers are stored in the narrowest type that holds them. Distances between kinds are the same in both directions, so
each is stored once. The keys of tokens are digests of their arrays, and are made anew.

The invariant: equal rollouts give equal bytes, and what is loaded is what was saved, to the bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_rollouts import Demonstration, TokenEpisode, TokenRollouts, TokenState, TokenStep
from rlflow.representation.vocabulary import Vocabulary

FORMAT_VERSION = 1

_TOKEN = ("op", "role", "features", "price", "edges_before", "edges_after")
_STATE = ("token", "count", "saving")
_STEP = ("distance", "gone", "turned", "born")


def save(rollouts: TokenRollouts, folder: Path) -> None:
    """Write `token_rollouts.npz` and `token_rollouts.json`; equal rollouts give equal bytes."""
    rules = sorted(set(rollouts.rule_of))
    states = [state for episode in rollouts.episodes for state in episode.states]
    steps = [step for episode in rollouts.episodes for step in episode.steps]
    arrays = {
        **_packed_tokens(rollouts.tokens),
        **_packed_episodes(rollouts.episodes),
        **_packed_states(states),
        **_packed_steps(steps),
        **_packed_demonstrations(rollouts.episodes),
        "token/rule": np.searchsorted(rules, rollouts.rule_of) if rules else np.zeros(0, np.int64),
    }
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
        packed = {name: _wide(array) for name, array in stored.items()}
    sizes = _sizes(packed)
    if sizes != {name: description[name] for name in sizes}:
        raise InputError(f"token rollouts: the files of {folder} do not belong together; run collect_rollouts")
    return TokenRollouts(
        tokens=tuple(_tokens(packed)),
        rule_of=tuple(description["rules"][rule] for rule in packed["token/rule"]),
        episodes=tuple(_episodes(packed)),
        graphs=tuple(description["graphs"]),
        vocabulary=Vocabulary.from_json(description["vocabulary"]),
        library_hash=description["library_hash"],
    )


def _packed_tokens(tokens: Sequence[MatchToken]) -> dict[str, np.ndarray]:
    lengths = {
        "nodes": [token.num_nodes for token in tokens],
        "before": [len(token.edges_before) for token in tokens],
        "after": [len(token.edges_after) for token in tokens],
    }
    packed = {f"token/{name}": np.array(values, np.int64) for name, values in lengths.items()}
    return packed | {f"token/{name}": _end_to_end([getattr(token, name) for token in tokens]) for name in _TOKEN}


def _tokens(packed: Mapping[str, np.ndarray]) -> Iterator[MatchToken]:
    nodes, before, after = (packed[f"token/{name}"] for name in ("nodes", "before", "after"))
    lengths = (nodes, nodes, nodes, nodes, before, after)
    columns = (_split(packed[f"token/{name}"], length) for name, length in zip(_TOKEN, lengths, strict=True))
    return (MatchToken.of_arrays(*arrays) for arrays in zip(*columns, strict=True))


def _packed_states(states: Sequence[TokenState]) -> dict[str, np.ndarray]:
    return {
        "state/kinds": np.array([len(state.token) for state in states], np.int64),
        "state/cost": np.array([state.cost for state in states], np.float64),
        "state/distance": _end_to_end([_upper(state.distance) for state in states]),
        **{f"state/{name}": _end_to_end([getattr(state, name) for state in states]) for name in _STATE},
    }


def _states(packed: Mapping[str, np.ndarray]) -> Iterator[TokenState]:
    kinds = packed["state/kinds"]
    token, count, saving = (_split(packed[f"state/{name}"], kinds) for name in _STATE)
    distances = _split(packed["state/distance"], kinds * (kinds - 1) // 2)
    columns = zip(kinds.tolist(), token, count, saving, distances, packed["state/cost"].tolist(), strict=True)
    for number, tokens, counts, savings, upper, cost in columns:
        yield TokenState(tokens, counts, _symmetric(upper, number), savings, cost)


def _upper(distance: np.ndarray) -> np.ndarray:
    return distance[np.triu_indices(len(distance), 1)]


def _symmetric(upper: np.ndarray, number: int) -> np.ndarray:
    distance = np.zeros((number, number), np.int8)
    distance[np.triu_indices(number, 1)] = upper
    return distance + distance.T


def _packed_steps(steps: Sequence[TokenStep]) -> dict[str, np.ndarray]:
    return {
        "step/chosen": np.array([step.chosen for step in steps], np.int64),
        "step/reward": np.array([step.reward for step in steps], np.float64),
        "step/kinds": np.array([len(step.gone) for step in steps], np.int64),
        "step/turns": np.array([len(step.turned) for step in steps], np.int64),
        "step/births": np.array([len(step.born) for step in steps], np.int64),
        **{f"step/{name}": _end_to_end([getattr(step, name) for step in steps]) for name in _STEP},
    }


def _steps(packed: Mapping[str, np.ndarray]) -> Iterator[TokenStep]:
    kinds = packed["step/kinds"]
    lengths = (kinds, kinds, packed["step/turns"], packed["step/births"])
    columns = [_split(packed[f"step/{name}"], length) for name, length in zip(_STEP, lengths, strict=True)]
    firsts = zip(packed["step/chosen"].tolist(), packed["step/reward"].tolist(), strict=True)
    for (chosen, reward), (distance, *changes) in zip(firsts, zip(*columns, strict=True), strict=True):
        yield TokenStep(chosen, reward, distance.astype(np.int8), *changes)


def _packed_episodes(episodes: Sequence[TokenEpisode]) -> dict[str, np.ndarray]:
    return {
        "episode/steps": np.array([episode.num_steps for episode in episodes], np.int64),
        "episode/graph": np.array([episode.graph for episode in episodes], np.int64),
        "episode/unit_percent": np.array([episode.unit_percent for episode in episodes], np.float64),
        "episode/terminated": np.array([episode.terminated for episode in episodes], np.int64),
        "episode/shown": np.array([episode.demonstration is not None for episode in episodes], np.int64),
    }


def _episodes(packed: Mapping[str, np.ndarray]) -> Iterator[TokenEpisode]:
    states, steps, labels = _states(packed), _steps(packed), _labels(packed)
    columns = [packed[f"episode/{name}"].tolist() for name in ("steps", "graph", "unit_percent", "terminated", "shown")]
    for number, graph, unit_percent, terminated, shown in zip(*columns, strict=True):
        visited, taken = tuple(islice(states, number + 1)), tuple(islice(steps, number))
        told = Demonstration(*zip(*islice(labels, number + 1), strict=True)) if shown else None
        yield TokenEpisode(graph, unit_percent, visited, taken, bool(terminated), told)
    if any(next(left, None) is not None for left in (states, steps, labels)):
        raise InputError("token rollouts: there are states, steps or labels that belong to no episode")


def _packed_demonstrations(episodes: Sequence[TokenEpisode]) -> dict[str, np.ndarray]:
    shown = [episode.demonstration for episode in episodes if episode.demonstration is not None]
    taken = [labels for demonstration in shown for labels in demonstration.taken]
    gain = [labels for demonstration in shown for labels in demonstration.gain]
    return {
        "label/kinds": np.array([len(labels) for labels in taken], np.int64),
        "label/taken": _end_to_end(taken),
        "label/gain": _end_to_end(gain),
    }


def _labels(packed: Mapping[str, np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The labels that demonstrations give to the kinds of each of their states."""
    kinds = packed["label/kinds"]
    return zip(_split(packed["label/taken"], kinds), _split(packed["label/gain"], kinds), strict=True)


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


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int64) if array.dtype.kind in "iu" else array


def _end_to_end(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _split(array: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    if lengths.sum() != len(array):
        raise InputError(f"token rollouts: {lengths.sum()} entries are told of, and {len(array)} are there")
    return np.split(array, np.cumsum(lengths)[:-1]) if len(lengths) else []
