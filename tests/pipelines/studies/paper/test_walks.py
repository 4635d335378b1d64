"""Walks: correlations in closed form, and a walk that is the same by the same seed."""

from pathlib import Path

import numpy as np
import pytest
from studies.paper.walks import WalkCell, correlations, random_rewrite
from studies.subject import Subject

from rlflow import zoo
from rlflow.cost.base import Cost, CostContext
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import save_model
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter


def cost(runtime_ms: float, flops: int, bytes_moved: int) -> Cost:
    return Cost(runtime_ms, flops, bytes_moved, launches=4, load_time_flops=0)


def test_correlations_of_costs_that_go_together_and_against_each_other():
    found = correlations([cost(1.0, 30, 10), cost(2.0, 20, 20), cost(3.0, 10, 30)])
    assert found["correlation_runtime_ms_bytes_moved"] == pytest.approx(1.0)
    assert found["correlation_runtime_ms_flops"] == pytest.approx(-1.0)
    assert not any("launches" in name for name in found), "what does not vary has no correlation"


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    path = tmp_path / "chain.onnx"
    save_model(zoo.build("tiny_chain", rows=8, inner=64, length=2), path)
    return Subject(path, "analytic", CostContext())


def test_a_walk_is_the_same_by_the_same_seed(subject: Subject):
    cell = WalkCell(subject, seed=3, steps=8, episode_steps=4)
    first, again = (cell.run()["walk"].figures for _ in range(2))
    timeless = first.keys() - {"step_ms"}
    assert {name: first[name] for name in timeless} == {name: again[name] for name in timeless}
    assert first["graphs"] == 9, "the original and one graph for each step"
    assert first["matches"] >= first["rules_that_match"] > 0


def test_a_random_rewrite_leads_to_another_graph_where_a_rule_matches(subject: Subject):
    graph, rng = subject.graph(), np.random.default_rng(0)
    rewritten = random_rewrite(graph, Rewriter(library.load().rules), rng)
    assert structural_hash(rewritten) != structural_hash(graph)
    assert random_rewrite(graph, Rewriter(()), rng) is graph, "no rule, no rewrite"
