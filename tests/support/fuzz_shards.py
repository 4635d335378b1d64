"""A million random rewrites in shards: `make fuzz` makes those that are missing, data/results/fuzz.json sums them up.

    python -m support.fuzz_shards --shards 60 --processes 2

A shard is determined by its number: each model of the zoo, each model with masks and dimensions of no elements and some
drawn graphs are rewritten at random, and then models around the source of every rule. All are compared in ONNX Runtime,
as written and as deployed. The file is written after every shard, so that a killed run goes on where it was; shards of
another library or another ONNX Runtime are made anew.
"""

import argparse
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnxruntime as ort
from experiment.results import read_results
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from studies.measurements import Fuzz
from studies.published import publish_part
from tqdm import tqdm

from rlflow import zoo
from rlflow.ir import Graph
from rlflow.onnx_io import from_onnx
from rlflow.rules.library import load
from rlflow.rules.verification.sampler import Sampler
from support.carried_values import SUBJECTS
from support.fuzzing import Tally, unconditional
from support.rewrites import embed
from support.strategies import graphs
from support.zoo_names import SMALL, ZOO

_LOGGER = logging.getLogger(__name__)

DRAWN_GRAPHS = 100
TURNS = 13
"""Rewrites by each rule, at least, so that a shard has about 17,000."""
ATTEMPTS = 20
"""Drawn models for one turn of a rule: not every one has a place for it."""


@dataclass(frozen=True)
class Shard:
    """The rewrites of one shard: how often by each rule, by its id, and what came of the comparisons."""

    number: int
    uses: Counter[str]
    models: int
    informative: int
    largest_error: float
    differences: tuple[str, ...]
    fusions: Counter[str]


def take_turns(tally: Tally, rule: int, turns: int, seed: int) -> None:
    """Models around the rule's source, rewritten by it first, until it has had so many turns."""
    sampler, random, rng = Sampler(tally.rules[rule]), Random(seed), np.random.default_rng(seed)
    for _ in range(ATTEMPTS * turns):
        if tally.uses[rule] >= turns:
            return
        graph, _ = embed(tally.rules[rule], sampler.draw(random), rng)
        tally.rewrite(graph, rng, first=rule)


def walk(tally: Tally, name: str, seed: int) -> None:
    """Rewrite a small model of the zoo at random."""
    tally.rewrite(from_onnx(zoo.build(name, **SMALL.get(name, {}), seed=seed)), np.random.default_rng(seed))


@cache
def _rules_and_rewriter() -> tuple[Any, Any]:
    rules = load().rules
    return rules, unconditional(rules)


def made(number: int) -> Shard:
    """Make a shard, in this process."""
    rules, rewriter = _rules_and_rewriter()
    tally = Tally(rules, rewriter, seed=number)

    @seed(number)
    @settings(
        max_examples=DRAWN_GRAPHS,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(graph=graphs(opset=21), chosen=st.integers(0, 2**32 - 1))
    def of_drawn_graphs(graph: Graph, chosen: int) -> None:
        tally.rewrite(graph, np.random.default_rng(chosen))

    for name in ZOO:
        walk(tally, name, number)
    for subject in SUBJECTS.values():
        built = subject()
        tally.rewrite(from_onnx(built.model), np.random.default_rng(number), inputs=built.feeds)
    of_drawn_graphs()
    for rule in range(len(rules)):
        take_turns(tally, rule, TURNS, seed=number * len(rules) + rule)
    uses = Counter({rules[rule].id: count for rule, count in tally.uses.items()})
    return Shard(
        number,
        uses,
        tally.models,
        tally.informative,
        tally.largest_error,
        tuple(tally.differences),
        tally.fusions,
    )


@dataclass
class Sum:
    """The shards that were made by one library in one ONNX Runtime, added up."""

    library: str
    onnxruntime: str = ort.__version__
    shards: list[int] = field(default_factory=list)
    uses: Counter[str] = field(default_factory=Counter)
    models: int = 0
    informative: int = 0
    largest_error: float = 0.0
    differences: list[str] = field(default_factory=list)
    fusions: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, document: dict[str, Any], library: str) -> "Sum":
        """Return what the file has of this library and this ONNX Runtime, or nothing."""
        fresh = cls(library)
        if (document.get("library"), document.get("onnxruntime")) != (library, fresh.onnxruntime):
            return fresh
        return cls(
            library,
            shards=document["shards"],
            uses=Counter(document["rewrites_by_rule"]),
            models=document["models"],
            informative=document["informative_models"],
            largest_error=document["largest_relative_error"],
            differences=document["found"],
            fusions=Counter(document["fusions"]),
        )

    def add(self, shard: Shard) -> None:
        self.shards = sorted([*self.shards, shard.number])
        self.uses += shard.uses
        self.models += shard.models
        self.informative += shard.informative
        self.largest_error = max(self.largest_error, shard.largest_error)
        self.differences += shard.differences
        self.fusions += shard.fusions

    def document(self, rules: Sequence[str]) -> dict[str, Any]:
        """As schema `fuzz` describes it, but for what `test_fuzz_egraph` writes."""
        uses = {rule: self.uses[rule] for rule in rules}
        return {
            "library": self.library,
            "onnxruntime": self.onnxruntime,
            "shards": self.shards,
            "rewrites": sum(uses.values()),
            "models": self.models,
            "informative_models": self.informative,
            "rules": len(rules),
            "fewest_rewrites_of_a_rule": min(uses.values()),
            "largest_share_percent": round(100 * max(uses.values()) / max(sum(uses.values()), 1), 3),
            "differences": len(self.differences),
            "found": self.differences,
            "fusions": dict(self.fusions),
            "largest_relative_error": self.largest_error,
            "rewrites_by_rule": uses,
        }


def add_shards(path: Path, wanted: Iterable[int], processes: int) -> Sum:
    """Make the shards that the file does not have, and write it after each."""
    library = load()
    rules = [rule.id for rule in library.rules]
    document = read_results(path)
    total = Sum.of(document, library.hash)
    missing = [number for number in wanted if number not in total.shards]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for shard in tqdm(pool.map(made, missing), total=len(missing), desc="shards", unit="shard"):
            total.add(shard)
            for difference in shard.differences:
                _LOGGER.warning("shard %d: %s", shard.number, difference)
            publish_part(path, Fuzz, read_results(path) | total.document(rules), __file__)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=60)
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    path = Path(__file__).parents[2] / "data/results/fuzz.json"
    total = add_shards(path, range(chosen.shards), chosen.processes)
    if total.differences:
        raise SystemExit(f"{len(total.differences)} rewritten models compute something else: see {path}")


if __name__ == "__main__":
    main()
