"""How long a real environment step takes on BERT-Base: prints JSON rows of schemas/bench.schema.json.

    python benchmarks/step_speed.py [--steps 300] [--layers 12] [--profile]

Random episodes in `SubstitutionEnv`, with the observation. The price list is warm: it has a price for every fragment,
which is found by the fragment's signature as always. The rows after the steps time their parts one by one, on the
graphs of the same walk. `--profile` prints where the time of the steps goes instead.
"""

import argparse
import cProfile
import json
import pstats
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
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
from rlflow.rules.match import Match
from rlflow.rules.rewriter import Rewriter

PROMISED_MS = 10.0
FEW_RULES = 16
EPISODE_STEPS = 50
_PART_CASES = 60


class WarmPriceList(PriceList):
    """Knows every price; what it is does not matter for the time that finding it takes."""

    def get(self, setting: str, signature: str) -> Price:
        return Price(int(signature[:6], 16) / 1e9 if signature != "view" else 0.004, signature)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    graph = from_onnx(zoo.build("bert", layers=arguments.layers))
    whole = rule_library.load()
    if arguments.profile:
        profile(graph, whole, arguments.steps)
        return
    rows = [row for name, rules in rule_sets(graph, whole) for row in step_rows(graph, name, rules, arguments.steps)]
    rows += part_rows(graph, whole)
    json.dump(rows, sys.stdout, indent=1)
    sys.stdout.write("\n")


def rule_sets(graph: Graph, whole: Library) -> Iterable[tuple[str, Library]]:
    """The whole library, and as many rules as an agent acts with: those that match most often."""
    found = Rewriter(whole.rules).matches(graph)
    by_matches = sorted(range(len(found)), key=lambda i: (-len(found[i]), i))
    yield f"whole library of {len(whole.rules)} rules", whole
    yield f"{FEW_RULES} rules", whole.select([whole.rules[i].id for i in by_matches[:FEW_RULES]])


def environment(graph: Graph, rules: Library) -> SubstitutionEnv:
    cost_model = MeasuredCost("deployed", WarmPriceList("any", "any"), None)
    return SubstitutionEnv(graph, rules, cost_model, config=EnvironmentConfig(max_steps=EPISODE_STEPS))


def walk(env: SubstitutionEnv, steps: int) -> list[float]:
    """Milliseconds of each of so many random valid steps."""
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    times: list[float] = []
    for _ in range(steps):
        counts = env.counts()
        rule = int(rng.choice(np.flatnonzero(counts)))
        action = np.array([rule, rng.integers(counts[rule])])
        start = time.perf_counter_ns()
        truncated = env.step(action)[3]
        times.append((time.perf_counter_ns() - start) / 1e6)
        if truncated:
            env.reset()
    return times


def step_rows(graph: Graph, name: str, rules: Library, steps: int) -> list[dict[str, Any]]:
    times = walk(environment(graph, rules), steps)
    return [
        row(f"real step on BERT-Base, {name}, {label}", float(np.quantile(times, quantile)), len(times), PROMISED_MS)
        for label, quantile in (("median", 0.5), ("99th percentile", 0.99))
    ]


def part_rows(graph: Graph, whole: Library) -> list[dict[str, Any]]:
    """Each part alone on `_PART_CASES` graphs, on copies without anything remembered."""
    rewriter = Rewriter(whole.rules)
    rng = np.random.default_rng(0)
    rewrites: list[tuple[Graph, Match]] = []
    for _ in range(_PART_CASES):
        choices = [m for found in rewriter.matches(graph) for m in found]
        rewrites.append((graph, choices[int(rng.integers(len(choices)))]))
        graph = rewriter.apply(*rewrites[-1])

    def timed(action: Callable[[Graph, Match], object], prepare: Callable[[Graph], Graph]) -> float:
        times = []
        for before, match in rewrites:
            prepared = prepare(before)
            start = time.perf_counter_ns()
            action(prepared, match)
            times.append((time.perf_counter_ns() - start) / 1e6)
        return float(np.median(times))

    def ordered(before: Graph) -> Graph:
        copy = replace(before)
        assert copy.order
        return copy

    parts: dict[str, tuple[Callable[[Graph, Match], object], Callable[[Graph], Graph]]] = {
        "order": (lambda g, _: g.order, replace),
        "hash": (lambda g, _: structural_hash(g), ordered),
        "apply": (rewriter.apply, lambda g: g),
        "matches after a rewrite": (lambda g, _: rewriter.matches(g), lambda g: g),
        "matches from nothing": (lambda g, _: rewriter.matches(g), ordered),
    }
    rows = []
    for name, (action, prepare) in parts.items():
        if name == "matches after a rewrite":
            children = {id(g): rewriter.apply(g, m) for g, m in rewrites}
            for child in children.values():
                assert child.order
            prepare = lambda g, known=children: known[id(g)]  # noqa: E731
        rows.append(row(f"{name}, BERT-Base, whole library", timed(action, prepare), len(rewrites), PROMISED_MS))
    return rows


def row(name: str, value: float, cases: int, promised: float) -> dict[str, Any]:
    return {
        "name": name,
        "value": round(value, 4),
        "unit": "ms",
        "baseline": "promised for a whole step",
        "baseline_value": promised,
        "cases": cases,
    }


def profile(graph: Graph, whole: Library, steps: int) -> None:
    env = environment(graph, whole)
    env.reset(seed=0)
    profiler = cProfile.Profile()
    profiler.runcall(walk, env, steps)
    pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(35)


if __name__ == "__main__":
    main()
