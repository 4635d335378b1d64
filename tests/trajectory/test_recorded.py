"""The recorded trajectories, replayed: a change of rules, matching or operators that alters a rewrite shows here.

What is on file is not made by these tests: `make renew NAME=recording` records it anew.
"""

import pytest
from support.recording import FOLDER, MODELS, STEPS, recorded, recording, rules_recorded

from rlflow.cost.analytic import AnalyticCost
from rlflow.equivalence.compare import compare
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.ir.validate import validate
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification.verify import VerificationConfig, certified
from rlflow.trajectory.replay import replay

NEW_RULE = rule_from_json(
    "add-as-sub", "algebra", [["Add", "x", "c"]], [["Sub", "x", ["Neg", "c"]]], {"c": {"constant": True}}
)


@pytest.fixture(scope="module")
def rewriter(shipped):
    return Rewriter(shipped.rules)


@pytest.fixture(scope="module", params=["first", "in the middle", "last"])
def enlarged(shipped, request):
    """The library with one more rule."""
    place = {"first": 0, "in the middle": len(shipped.rules) // 2, "last": len(shipped.rules)}[request.param]
    new = certified(NEW_RULE, VerificationConfig(shapes=8))
    return Library((*shipped.rules[:place], new, *shipped.rules[place:]))


def test_there_is_a_dozen_and_they_are_not_trivial():
    """Long enough, of many rules, and over models that are all different."""
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(MODELS)
    every = [recorded(name) for name in MODELS]
    assert len(every) >= 12
    assert len({trajectory.start_hash for trajectory in every}) == len(every)
    assert sum(len(trajectory.steps) == STEPS for trajectory in every) >= 10
    assert all(trajectory.steps for trajectory in every)
    assert len({step.rule for trajectory in every for step in trajectory.steps}) >= 50


def test_they_were_drawn_from_the_rules_that_are_listed(shipped):
    """The list has them in their order: its hash is the one that every recording names."""
    assert {recorded(name).library for name in MODELS} == {rules_recorded(shipped).hash}


def test_a_rule_that_is_gone_is_named(shipped):
    with pytest.raises(InputError, match=shipped.rules[3].id):
        rules_recorded(shipped.without([shipped.rules[3].id]))


@pytest.mark.parametrize("name", MODELS)
def test_a_recorded_trajectory_leads_to_the_same_hashes_costs_and_outputs(name, rewriter):
    """`replay` compares the hashes; the cost is counted, not measured; the model at the end runs as the first does."""
    trajectory, model = recorded(name), MODELS[name]()
    graphs, cost_model = list(replay(from_onnx(model), trajectory, rewriter)), AnalyticCost()
    assert structural_hash(graphs[-1]) == trajectory.steps[-1].hash != trajectory.start_hash
    costs = [trajectory.start_runtime_ms, *(step.runtime_ms for step in trajectory.steps)]
    assert [cost_model.runtime_ms(graph) for graph in graphs] == pytest.approx(costs, rel=1e-12)
    validate(graphs[-1])
    end = to_onnx(graphs[-1])
    check_model(end)
    report = compare(model, end)
    assert report.equivalent, report.summary
    assert report.non_vacuous_draws == report.draws


@pytest.mark.parametrize("name", ["branches", "tiny_chain"])
def test_recording_anew_gives_what_is_on_file(name, shipped):
    """So that `make renew NAME=recording` changes nothing where nothing has changed."""
    rules = rules_recorded(shipped)
    trajectory, end = recording(name, rules, Rewriter(rules.rules))
    assert trajectory == recorded(name)
    assert structural_hash(end) == trajectory.steps[-1].hash


def test_a_new_rule_changes_no_recording(enlarged):
    """Wherever it stands. Not vacuous: it matches, and a walk over all rules goes another way."""
    name, every = "branches", Rewriter(enlarged.rules)
    graphs = list(replay(from_onnx(MODELS[name]()), recorded(name), every))
    new = next(place for place, rule in enumerate(enlarged.rules) if rule.name == NEW_RULE.name)
    assert any(every.matches(graph)[new] for graph in graphs)
    assert recording(name, enlarged, every)[0].steps != recorded(name).steps
    rules = rules_recorded(enlarged)
    assert recording(name, rules, Rewriter(rules.rules))[0] == recorded(name)


def test_matches_of_a_rule_do_not_depend_on_the_other_rules(shipped, enlarged):
    """Nor does their order, in which a trajectory counts locations."""
    graph = from_onnx(MODELS["branches"]())
    alone = dict(zip((rule.id for rule in shipped.rules), Rewriter(shipped.rules).matches(graph), strict=True))
    for rule, found in zip(enlarged.rules, Rewriter(enlarged.rules).matches(graph), strict=True):
        if rule.name != NEW_RULE.name:
            assert [match.nodes for match in found] == [match.nodes for match in alone[rule.id]]
