"""Drawn models and every rule's own source, optimised by an e-graph: nothing that comes out computes anything else.

`make fuzz` takes a thousand and writes data/results/fuzz.json; a few go with every run of the tests.
"""

from pathlib import Path
from typing import Any

import pytest
from experiment.results import read_results
from hypothesis import given, settings
from hypothesis import strategies as st
from studies.measurements import Fuzz
from studies.published import publish_part
from support.drawn_models import DrawnModel, models
from support.egraph_fuzzing import EGraphTally, model_around
from support.fuzzing import unconditional
from tqdm import tqdm

from rlflow.cost.analytic import AnalyticCost
from rlflow.rules.library import Library, load
from rlflow.rules.rule import Rule, rule_from_json
from rlflow.search.equality_saturation import EqualitySaturation, equality_saturation

LIBRARY = load()
DRAWN_MODELS = 300
LEAST_MODELS = 1000
LEAST_REALISED = 0.95
LEAST_RULES = 0.9


def method(*rules: Rule) -> EqualitySaturation:
    """With small limits, and the rules without their conditions of profit."""
    free = unconditional(rules)
    exploration, limits = {"max_nodes": 300}, {"time_s": 5, "nodes": 100}
    return equality_saturation(Library(free.rules), free, AnalyticCost(), exploration=exploration, limits=limits)


ALL_RULES = method(*LIBRARY.rules)


@pytest.mark.slow
@settings(max_examples=8)
@given(drawn=models(), seed=st.integers(0, 2**32 - 1))
def test_drawn_models(drawn: DrawnModel, seed: int) -> None:
    tally = EGraphTally(ALL_RULES)
    tally.optimise(drawn.model, seed, drawn.dimensions)
    assert not tally.differences


SOME_RULES = (pytest.param(LIBRARY.rules[0], marks=pytest.mark.exhaustive), *LIBRARY.rules[90::180])


@pytest.mark.parametrize("rule", SOME_RULES, ids=lambda rule: rule.id)
def test_sources_of_rules(rule: Rule) -> None:
    """Of the first, graphs were once not found again: a value had gone for which others were still being prepared."""
    tally = EGraphTally(ALL_RULES)
    tally.optimise(model_around(rule, seed=0), seed=0)
    assert not tally.differences
    assert tally.rules, "some rule was used"


def test_a_false_rule_is_found() -> None:
    """So the tests above can fail: in the result, and where only drawn prices take the wrong member."""
    dear = rule_from_json("false", "test", [["Relu", ["Neg", "x"]]], [["Neg", ["Relu", "x"]]])
    cheap = rule_from_json("cheap", "test", [["Relu", ["Neg", "x"]]], [["Relu", "x"]])
    for rule, improved in ((dear, 0), (cheap, 1)):
        tally = EGraphTally(method(rule))
        tally.optimise(model_around(rule, seed=0), seed=0)
        assert tally.improved == improved
        assert tally.differences[0].startswith(f"model 0 by {'' if improved else 'some of '}{rule.id}: not equivalent")


@pytest.mark.fuzz
def test_a_thousand_models(repository: Path) -> None:
    tally = EGraphTally(ALL_RULES)

    @settings(max_examples=DRAWN_MODELS, database=None, derandomize=True)
    @given(drawn=models(), seed=st.integers(0, 2**32 - 1))
    def of_drawn_models(drawn: DrawnModel, seed: int) -> None:
        tally.optimise(drawn.model, seed, drawn.dimensions)

    of_drawn_models()
    for seed, rule in enumerate(tqdm(ALL_RULES.rewriter.rules, desc="rules", unit="rule")):
        tally.optimise(model_around(rule, seed), seed)
    path = repository / "data/results/fuzz.json"
    publish_part(path, Fuzz, read_results(path) | {"egraph": document(tally)}, __file__)
    assert not tally.differences
    assert tally.models >= LEAST_MODELS
    assert tally.realised >= LEAST_REALISED * tally.extractions
    assert len(tally.rules) >= LEAST_RULES * len(LIBRARY.rules)


def document(tally: EGraphTally) -> dict[str, Any]:
    """What schema `fuzz` describes under `egraph`."""
    return {
        "library": LIBRARY.hash,
        "models": tally.models,
        "improved_models": tally.improved,
        "extractions": tally.extractions,
        "rewritten_extractions": tally.rewritten,
        "realised_percent": round(100 * tally.realised / tally.extractions, 2),
        "compared": tally.compared,
        "informative": tally.informative,
        "rules": len(tally.rules),
        "differences": len(tally.differences),
        "fusions": dict(tally.fusions),
        "largest_relative_error": tally.largest_error,
    }
