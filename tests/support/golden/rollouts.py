"""The section `rollouts`: episodes on real graphs in both formulations, and lessons, as values and as files.

A digest of the values stays the same when files get another format, and a digest of the files shows that they did.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from rlflow import zoo
from rlflow.agents.collection import Collection, CollectionConfig, collect
from rlflow.agents.match_level.lessons import Expert, Lesson, Start, Taught, teach
from rlflow.agents.match_level.match_level_process import expert_of
from rlflow.agents.match_level.taught_guide import shipped
from rlflow.agents.token_collection import TokenCollectionConfig, collect_tokens
from rlflow.cost.analytic import AnalyticCost
from rlflow.environments import EnvironmentConfig, SubstitutionEnv
from rlflow.onnx_io import from_onnx
from rlflow.representation import token_archive
from rlflow.representation.match_token import MatchToken
from rlflow.representation.rollouts import Episode
from rlflow.representation.token_rollouts import TokenEpisode, TokenRollouts
from rlflow.representation.vocabulary import Vocabulary
from support.contents import contents
from support.golden.digests import Value, digest, trajectory
from support.golden.entries import Compute
from support.token_worlds import FEW, small_graph, small_process, small_token_rollouts
from support.walks import LIBRARY

POOLED = CollectionConfig(episodes=8, terminate_probability=0.1)
LESSON = Lesson(
    "bert",
    Start(walked=3, seed=1),
    Expert("chains", {"depth": 2, "width": 2}, expansions=60),
    play=TokenCollectionConfig(episodes=2, steps=3),
)
"""An expert's way from behind three random rewrites, and two random episodes beside it."""


def entries() -> Mapping[str, Compute]:
    """Return the rollouts."""
    return {
        "match level": lambda: _of_tokens(small_token_rollouts()),
        "match level, led by an expert": _of_an_expert,
        "match level, a lesson": _lesson,
        "graph level": _pooled,
    }


@cache
def pooled_env() -> SubstitutionEnv:
    """Return the environment of the pooled rollouts, on a graph of a few nodes."""
    graph = from_onnx(zoo.build("tiny_merge"))
    return SubstitutionEnv(graph, LIBRARY, AnalyticCost(), config=EnvironmentConfig(max_steps=8, max_locations=8))


@cache
def pooled() -> Collection:
    """Return rollouts over (rule, location)."""
    return collect(pooled_env(), POOLED, seed=0)


def _of_an_expert() -> Value:
    """Collect episodes that begin on the way of the policy that ships, and are led by it."""
    process, expert = small_process(), expert_of(shipped().model)
    found = collect_tokens(process, "bert", FEW, seed=1, library_hash=LIBRARY.hash, expert=expert)
    return {**_of_tokens(found.rollouts), "evaluations": found.rewrites}


@cache
def lesson(vocabulary: Vocabulary | None = None) -> Taught:
    """Return what an expert teaches, by default in the vocabulary of all operators."""
    return teach(LESSON, small_graph(), LIBRARY, AnalyticCost(), vocabulary)


def _lesson() -> Value:
    taught = lesson()
    return {
        **_of_tokens(taught.rollouts),
        "evaluations": taught.rewrites,
        "way": trajectory(taught.found.trajectory),
    }


def _of_tokens(rollouts: TokenRollouts) -> dict[str, str | int]:
    with TemporaryDirectory() as folder:
        token_archive.save(rollouts, Path(folder))
        files = _files(Path(folder))
    vocabulary = rollouts.vocabulary
    return {
        "files": files,
        "steps": rollouts.num_steps,
        "tokens": digest([_token(token) for token in rollouts.tokens], rollouts.rule_of),
        "values": digest([_episode(episode) for episode in rollouts.episodes]),
        "vocabulary": digest(vocabulary.operators, vocabulary.features),
    }


def _token(token: MatchToken) -> Sequence[object]:
    edges = (token.edges_before, token.edges_after)
    return (token.op, token.role, token.features, token.price, *edges, token.key)


def _episode(episode: TokenEpisode) -> Sequence[object]:
    states = [(one.token, one.count, one.distance, one.saving, float(one.cost)) for one in episode.states]
    steps = [
        (int(one.chosen), float(one.reward), one.distance, one.gone, one.turned, one.born) for one in episode.steps
    ]
    shown = episode.demonstration
    labels = None if shown is None else (shown.taken, shown.gain)
    return (episode.graph, float(episode.unit_percent), states, steps, episode.terminated, labels)


def _pooled() -> Value:
    collection, env = pooled(), pooled_env()
    with TemporaryDirectory() as folder:
        collection.save(Path(folder), env)
        files = _files(Path(folder))
    return {
        "files": files,
        "graphs": digest(
            [(graph.op, graph.features, graph.edges) for graph in collection.graphs], [*collection.places]
        ),
        "steps": sum(episode.num_steps for episode in collection.episodes),
        "trajectories": digest([trajectory(one) for one in collection.trajectories]),
        "values": digest([_pooled_episode(episode) for episode in collection.episodes]),
    }


def _pooled_episode(episode: Episode) -> Sequence[object]:
    choices = (episode.graph_index, episode.action, episode.counts)
    return (*choices, episode.reward, episode.terminated, episode.cost)


def _files(folder: Path) -> str:
    return digest(contents(folder))
