"""Time a step of the real environment, and its parts; prints JSON rows of schemas/bench.schema.json.

    python benchmarks/step_speed.py [--steps 300] [--profile]

Random episodes in `SubstitutionEnv`, with the observation, on BERT-Base, ResNet-50 and BERT of up to 96 layers. The
price list is warm: it has a price for every fragment, found by the fragment's signature as always (for missing prices
see price_speed.py). The parts are timed one by one on the graphs of one walk. `--profile` prints where
the time of the steps goes instead.
"""

import argparse
import cProfile
import json
import pstats
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rlflow import zoo
from rlflow.cost.measured import MeasuredCost
from rlflow.cost.price_list import Price, PriceList
from rlflow.environments import EnvironmentConfig, SubstitutionEnv
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter

FEW_RULES = 16
EPISODE_STEPS = 50
DEEP_LAYERS = 96
STORED_STATES = 10_000
PROMISED = {
    "median": 2.0,
    "99th percentile": 10.0,
    f"median at {DEEP_LAYERS} layers": 8.0,
    "matches from nothing": 50.0,
    "stored states": 1000.0,
}
_PART_CASES = 60


class WarmPriceList(PriceList):
    """A price list that has every price; its value does not matter for the time that finding it takes."""

    def get(self, setting: str, signature: str) -> Price:
        return Price(int(signature[:6], 16) / 1e9 if signature != "view" else 0.004, signature)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    whole = rule_library.load()
    bert = from_onnx(zoo.build("bert"))
    if arguments.profile:
        profile(bert, few(bert, whole), arguments.steps)
        return
    json.dump(list(all_rows(bert, whole, arguments.steps)), sys.stdout, indent=1)
    sys.stdout.write("\n")


def all_rows(bert: Graph, whole: Library, steps: int) -> Iterator[dict[str, Any]]:
    yield stored_row(bert, few(bert, whole))
    for name, graph in (("BERT-Base", bert), ("ResNet-50", from_onnx(zoo.build("resnet50")))):
        yield from step_rows(f"{name}, {FEW_RULES} rules", walk(environment(graph, few(graph, whole)), steps), PROMISED)
        yield from step_rows(f"{name}, all {len(whole.rules)} rules", walk(environment(graph, whole), steps), {})
        yield scratch_row(name, graph, whole)
    yield from growth_rows(whole, steps)
    yield from part_rows(bert, whole)


def few(graph: Graph, whole: Library) -> Library:
    """The rules that match most often, as many as an agent acts with."""
    found = Rewriter(whole.rules).matches(graph)
    by_matches = sorted(range(len(found)), key=lambda i: (-len(found[i]), i))
    return whole.select([whole.rules[i].id for i in by_matches[:FEW_RULES]])


def environment(graph: Graph, rules: Library) -> SubstitutionEnv:
    cost_model = MeasuredCost("deployed", WarmPriceList("any", "any"), None)
    nodes, edges = len(graph.nodes), sum(len(node.sources) for node in graph.nodes.values())
    room = EnvironmentConfig(max_steps=EPISODE_STEPS, max_nodes=4 * nodes, max_edges=4 * edges)
    return SubstitutionEnv(graph, rules, cost_model, config=room)


def walk(env: SubstitutionEnv, steps: int, visit: Callable[[Graph], None] = lambda graph: None) -> list[float]:
    """The milliseconds of each of a number of random valid steps."""
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    times: list[float] = []
    for _ in range(steps):
        counts = env.state.counts
        rule = int(rng.choice(np.flatnonzero(counts)))
        action = np.array([rule, rng.integers(counts[rule])])
        start = time.perf_counter_ns()
        truncated = env.step(action)[3]
        times.append((time.perf_counter_ns() - start) / 1e6)
        visit(env.graph)
        if truncated:
            env.reset()
    return times


def step_rows(name: str, times: list[float], promised: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    for label, quantile in (("median", 0.5), ("99th percentile", 0.99)):
        value = float(np.quantile(times, quantile))
        yield row(f"real step on {name}, {label}", value, len(times), promised.get(label))


def growth_rows(whole: Library, steps: int) -> Iterator[dict[str, Any]]:
    """The median step by the model's depth."""
    for layers in (1, 3, 6, 12, 24, 48, DEEP_LAYERS):
        graph = from_onnx(zoo.build("bert", layers=layers, hidden=64, heads=4, intermediate=128, vocabulary=100))
        times = walk(environment(graph, few(graph, whole)), steps)
        name = f"real step by size, {layers} layers, {len(graph.order)} nodes, {FEW_RULES} rules"
        yield row(name, float(np.median(times)), len(times), PROMISED.get(f"median at {layers} layers"))


def scratch_row(name: str, graph: Graph, whole: Library) -> dict[str, Any]:
    """The time to find all matches of a graph of which nothing is known; the rules' targets are already prepared."""
    rewriter = Rewriter(whole.rules)
    times = []
    for _ in range(_PART_CASES // 4):
        fresh = replace(graph)
        start = time.perf_counter_ns()
        rewriter.matches(fresh)
        times.append((time.perf_counter_ns() - start) / 1e6)
    label = f"matches from nothing, {name}, all {len(whole.rules)} rules"
    return row(label, float(np.median(times)), len(times), PROMISED["matches from nothing"])


def stored_row(graph: Graph, rules: Library) -> dict[str, Any]:
    """The memory of the graphs of random episodes, with their order, matches and prices, while all are kept."""
    kept: list[Graph] = []
    env = environment(graph, rules)
    walk(env, EPISODE_STEPS)
    before = resident_mb()
    walk(env, STORED_STATES, kept.append)
    name = f"memory of {len(kept)} stored states of BERT-Base"
    return row(name, resident_mb() - before, len(kept), PROMISED["stored states"], unit="MB")


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def part_rows(graph: Graph, whole: Library) -> Iterator[dict[str, Any]]:
    """The time of each part alone on the rewrites of one walk, from scratch and from the graph before."""
    rewriter = Rewriter(whole.rules)
    rng = np.random.default_rng(0)
    rewrites: list[tuple[Graph, Match]] = []
    for _ in range(_PART_CASES):
        choices = [m for found in rewriter.matches(graph) for m in found]
        rewrites.append((graph, choices[int(rng.integers(len(choices)))]))
        graph = rewriter.apply(*rewrites[-1])
        assert structural_hash(graph)  # from here on its order and layout are known

    parts: dict[str, Callable[[Graph, Match], Callable[[], object]]] = {
        "order from nothing": lambda before, match: partial(getattr, replace(before, edit=None), "order"),
        "order after a rewrite": lambda before, match: partial(getattr, rewriter.apply(before, match), "order"),
        "hash from nothing": lambda before, match: partial(structural_hash, in_order(replace(before, edit=None))),
        "hash after a rewrite": lambda before, match: partial(structural_hash, in_order(rewriter.apply(before, match))),
        "apply": lambda before, match: partial(rewriter.apply, before, match),
        "matches after a rewrite": lambda before, match: partial(
            rewriter.matches, in_order(rewriter.apply(before, match))
        ),
    }
    for name, prepare in parts.items():
        times = []
        for rewrite in rewrites:
            part = prepare(*rewrite)
            start = time.perf_counter_ns()
            part()
            times.append((time.perf_counter_ns() - start) / 1e6)
        label = f"{name}, BERT-Base, all {len(whole.rules)} rules"
        yield row(label, float(np.median(times)), len(times), PROMISED["median"], "promised for a whole step")


def in_order(graph: Graph) -> Graph:
    assert graph.order
    return graph


def row(
    name: str,
    value: float,
    cases: int,
    promised: float | None,
    baseline: str = "promised, at most",
    unit: str = "ms",
) -> dict[str, Any]:
    return {
        "name": name,
        "value": round(value, 4),
        "unit": unit,
        "baseline": baseline if promised else "none",
        "baseline_value": promised,
        "cases": cases,
    }


def profile(graph: Graph, rules: Library, steps: int) -> None:
    env = environment(graph, rules)
    env.reset(seed=0)
    profiler = cProfile.Profile()
    profiler.runcall(walk, env, steps)
    pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(35)


if __name__ == "__main__":
    main()
