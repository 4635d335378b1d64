"""Pass ordering: searches and agents on the toy compiler, and a walk through the passes of ONNX tools.

What the toy compiler does is defined in the tests, so that only searches, environment and agents count.
"""

from collections.abc import Mapping
from functools import cache, partial
from random import Random

from rlflow.passes import search
from rlflow.passes.agents.playing import PlayConfig, play
from rlflow.passes.backend import PassError
from rlflow.passes.onnx.backend import OnnxBackend
from rlflow.passes.search import Found
from rlflow.passes.transitions import Transitions
from support.golden.digests import Value, digest, weights
from support.golden.entries import Compute
from support.pass_agents import trained
from support.toy_compiler import SafeToyCompiler

WORD = "ccabc"
AGENTS = ("dqn", "maskable_ppo", "ppo")
WALKED = "detours/mlp?layers=2&hidden=16"


def entries() -> Mapping[str, Compute]:
    """Return the searches, which are the same on every machine."""
    return {
        "by chance": lambda: _searched(partial(search.by_chance, max_passes=30, episodes=5, seed=0)),
        "beam": lambda: _searched(partial(search.beam, width=3, max_passes=6)),
        "greedy": lambda: _searched(partial(search.greedy, max_passes=6)),
    }


def learned() -> Mapping[str, Compute]:
    """Return the agents, which torch trains, and the walk, which follows the versions of the tools."""
    return {**{f"agents/{name}": partial(_trained, name) for name in AGENTS}, "walk/onnx": _walked}


def _searched(by: partial[Found]) -> Value:
    transitions = Transitions(SafeToyCompiler())
    return _found(by(transitions, transitions.start(WORD)))


def _found(found: Found) -> dict[str, str | int]:
    return {"left": found.facts.operations, "passes": digest(found.passes), "tried": found.tried}


def _trained(algorithm: str) -> Value:
    transitions, agent = trained(algorithm, total_steps=128)
    found = play(agent, transitions, WORD, PlayConfig(episodes=2), seed=0)
    return {**_found(found), "curve": digest(agent.curve), "weights": weights(agent.model.policy.state_dict())}


def _walked() -> Value:
    """Run two dozen passes at random, each on what the one before made; a pass that refuses changes nothing."""
    backend = _onnx()
    program, keys = backend.load(WALKED), list[str]()
    for name in Random(0).choices(backend.catalogue().passes, k=24):
        try:
            program = backend.apply(program.payload, name)
        except PassError as error:
            keys.append(f"{name}: {type(error).__name__}")
        keys.append(program.facts.key)
    return {"left": program.facts.operations, "programs": digest(keys)}


@cache
def _onnx() -> OnnxBackend:
    return OnnxBackend()
