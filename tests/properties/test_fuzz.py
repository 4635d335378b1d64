"""Random rewrites of models, of drawn graphs and of every rule's own source: none may change what is computed.

`make fuzz` makes a hundred thousand and writes data/results/fuzz.json; with every other run of the tests goes a slice
of two minutes.
"""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fuzzing import Tally, unconditional
from support.rewrites import embed
from support.strategies import graphs
from support.zoo_names import SMALL, ZOO
from tqdm import tqdm

from rlflow import zoo
from rlflow.evaluation.results import read_results, write_results
from rlflow.ir import Graph
from rlflow.onnx_io import from_onnx
from rlflow.rules.library import load
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification.sampler import Sampler

LIBRARY = load()
REWRITER = unconditional(LIBRARY.rules)
LEAST_TURNS = 100
LARGEST_SHARE = 0.05
LEAST_REWRITES = 20_000
WALKS = 40
"""Of each model of the zoo."""
DRAWN_GRAPHS = 1000
SLICE_TURNS, SLICE_WALKS, SLICE_PARTS = 5, 5, 10
ATTEMPTS = 20
"""Drawn models for one turn of a rule: not every one has a place for it."""


def take_turns(tally: Tally, rule: int, turns: int, seed: int) -> None:
    """Models around the rule's source, rewritten by it first, until it has had so many turns."""
    sampler, random, rng = Sampler(tally.rules[rule]), Random(seed), np.random.default_rng(seed)
    for _ in range(ATTEMPTS * turns):
        if tally.uses[rule] >= turns:
            return
        graph, _ = embed(tally.rules[rule], sampler.draw(random), rng)
        tally.rewrite(graph, rng, first=rule)


def walk(tally: Tally, name: str, seed: int) -> None:
    tally.rewrite(from_onnx(zoo.build(name, **SMALL.get(name, {}), seed=seed)), np.random.default_rng(seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_random_rewrites_of_a_model(name: str) -> None:
    tally = Tally(LIBRARY.rules, REWRITER)
    for seed in range(SLICE_WALKS):
        walk(tally, name, seed)
    assert not tally.differences
    assert tally.informative == tally.models


@pytest.mark.slow
@settings(max_examples=150)
@given(graph=graphs(opset=21), seed=st.integers(0, 2**32 - 1))
def test_random_rewrites_of_drawn_graphs(graph: Graph, seed: int) -> None:
    tally = Tally(LIBRARY.rules, REWRITER)
    tally.rewrite(graph, np.random.default_rng(seed))
    assert not tally.differences


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICE_PARTS))
def test_every_rule_gets_its_turns(part: int) -> None:
    tally = Tally(LIBRARY.rules, REWRITER)
    chosen = range(part, len(LIBRARY.rules), SLICE_PARTS)
    for rule in chosen:
        take_turns(tally, rule, SLICE_TURNS, seed=rule)
    assert not tally.differences
    assert [LIBRARY.rules[rule].name for rule in chosen if tally.uses[rule] < SLICE_TURNS] == []


def test_a_false_rule_is_found() -> None:
    """So the tests above can fail."""
    false = rule_from_json("false", "test", [["Relu", ["Neg", "x"]]], [["Neg", ["Relu", "x"]]])
    tally = Tally([false], unconditional([false]))
    take_turns(tally, 0, turns=1, seed=0)
    assert tally.models == len(tally.differences) == 1
    assert tally.differences[0].startswith("false then false: not equivalent: output 'y0' differs")


@pytest.mark.fuzz
def test_tens_of_thousands_of_rewrites(repository: Path) -> None:
    """At least so many for each rule, of models first, then of drawn graphs, then of what is made for it."""
    tally = Tally(LIBRARY.rules, REWRITER)

    @settings(max_examples=DRAWN_GRAPHS, database=None, derandomize=True)
    @given(graph=graphs(opset=21), seed=st.integers(0, 2**32 - 1))
    def of_drawn_graphs(graph: Graph, seed: int) -> None:
        tally.rewrite(graph, np.random.default_rng(seed))

    for seed in range(WALKS):
        for name in ZOO:
            walk(tally, name, seed)
    of_drawn_graphs()
    for rule in tqdm(range(len(LIBRARY.rules)), desc="rules", unit="rule"):
        take_turns(tally, rule, LEAST_TURNS, seed=rule)
    path = repository / "data/results/fuzz.json"
    write_results(path, read_results(path) | document(tally))
    assert not tally.differences
    assert tally.uses.total() >= LEAST_REWRITES
    assert min(tally.uses[rule] for rule in range(len(LIBRARY.rules))) >= LEAST_TURNS
    assert max(tally.uses.values()) <= LARGEST_SHARE * tally.uses.total()


def document(tally: Tally) -> dict[str, Any]:
    """As schema `fuzz` describes it, but for what `test_fuzz_egraph` writes."""
    uses = [tally.uses[rule] for rule in range(len(tally.rules))]
    return {
        "library": LIBRARY.hash,
        "rewrites": sum(uses),
        "models": tally.models,
        "informative_models": tally.informative,
        "rules": len(uses),
        "fewest_rewrites_of_a_rule": min(uses),
        "largest_share_percent": round(100 * max(uses) / sum(uses), 3),
        "differences": len(tally.differences),
        "largest_relative_error": tally.largest_error,
    }
