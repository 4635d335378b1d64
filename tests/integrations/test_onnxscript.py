"""The library in onnxscript: its rules apply where our engine applies them, and make of it what our engine makes."""

from collections.abc import Iterator
from itertools import islice
from random import Random

import numpy as np
import onnx_ir as ir
import pytest
from onnx import ModelProto, parser
from onnx_ir.passes.common import IdentityEliminationPass, RemoveUnusedNodesPass, ShapeInferencePass
from onnxscript.rewriter import MatchingTracer, RewriteRuleSet, rewrite
from support.rewrites import each_of, embed
from support.zoo_names import SMALL

import rlflow
from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError, RLFlowError
from rlflow.integrations.onnxscript import VerifiedRule, rules, unsaid
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.onnx_io.standalone import standalone_model
from rlflow.rules.certificate import check_certificate
from rlflow.rules.expression import holds
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.rules.verification import sampler

LIBRARY = load()
UNSAID = unsaid()
SAID = [rule for rule in LIBRARY.rules if rule.id not in UNSAID]
CONDITIONAL = [rule for rule in SAID if rule.where]
DRAWS = 40
FEW = ("tiny_chain", "tiny_transpose", "loop")


def examples(rule: Rule, *, holding: bool) -> Iterator[ModelProto]:
    """Models of the rule's source at drawn shapes and attributes, at which its conditions hold or one of them fails."""
    random, rng = Random(0), np.random.default_rng(0)
    for _ in range(DRAWS):
        instance = sampler.draw(rule, random, respect_condition=holding)
        if all(holds(condition, instance.scope) for condition in rule.where) == holding:
            try:
                yield standalone_model(embed(rule, instance, rng)[0])
            except RLFlowError:  # the source is not well typed there
                continue


def example(rule: Rule) -> ModelProto:
    """The first one in which the rule matches: the importer folds what is constant, and drops what does nothing."""
    models = list(examples(rule, holding=True))
    return next((model for model in models if ours(rule, model)), models[0])


def ours(rule: Rule, model: ModelProto) -> set[str]:
    """The graphs that our engine makes of the model by one rewrite, each by its structure."""
    rewriter, graph = Rewriter([rule]), from_onnx(model)
    return {structural_hash(from_onnx(to_onnx(rewriter.apply(graph, m)))) for m in rewriter.matches(graph)[0]}


def theirs(rule: Rule, model: ModelProto) -> set[str]:
    """The graphs that onnxscript makes of it by one rewrite, without the Identity that stands for a value it has."""
    said = rules([rule.id], cost=None)
    return {structural_hash(from_onnx(m)) for at in range(len(model.graph.node)) for m in rewritten_at(at, said, model)}


def rewritten_at(place: int, said: list[VerifiedRule], proto: ModelProto) -> Iterator[ModelProto]:
    """The models that the rules make at one node, as `RewriteRuleSet` does at each."""
    for rule in said:
        model = typed(proto)
        node = model.graph[place]
        found = rule.try_rewrite(model, model.graph, node)
        if found is not None:
            for weight in found.new_initializers:
                model.graph.register_initializer(weight)
            replaced, by = found.match.outputs, found.new_outputs
            ir.convenience.replace_nodes_and_values(
                model.graph, node, found.match.nodes, found.new_nodes, replaced, by
            )
            IdentityEliminationPass()(model)
            RemoveUnusedNodesPass()(model)
            yield ir.to_proto(model)


def typed(proto: ModelProto) -> ir.Model:
    return ShapeInferencePass()(ir.from_proto(proto)).model


def price(model: ModelProto) -> float:
    return AnalyticCost().runtime_ms(from_onnx(model))


def test_nine_rules_in_ten_can_be_said_and_the_others_have_a_reason() -> None:
    said = rules()
    assert {rule.name for rule in said} == {rule.id for rule in SAID}
    assert len(SAID) >= 0.9 * len(LIBRARY.rules)
    for identifier, reason in UNSAID.items():
        assert len({source.node for source in LIBRARY.get(identifier).source}) > 1  # type: ignore[union-attr]
        assert "outputs of" in reason


def test_a_rule_has_its_certificate_and_its_assumptions() -> None:
    for said in rules(rule.id for rule in SAID[::50]):
        check_certificate(said.rule)
        assert said.rule.assumes == LIBRARY.get(said.name).assumes


def test_a_library_of_another_selection() -> None:
    strict = LIBRARY.strict()
    assert {said.name for said in rules(library=strict)} == {r.id for r in strict.rules} - UNSAID.keys()
    assert len(strict.rules) < len(LIBRARY.rules)


def test_names_that_cannot_be_had() -> None:
    with pytest.raises(InputError, match="has no rule 'merge-2-matmul'"):
        rules(["merge-2-matmul"])
    with pytest.raises(InputError, match="'merge-2-matmuls' cannot be said in onnxscript: it replaces"):
        rules(["merge-2-matmuls"])


@each_of(SAID)
def test_it_rewrites_an_example_as_our_engine_does(rule: Rule) -> None:
    """At every place that either of them finds."""
    model = example(rule)
    assert theirs(rule, model) == ours(rule, model)


@each_of(CONDITIONAL)
def test_it_refuses_where_our_conditions_fail(rule: Rule) -> None:
    """Not vacuous: the pattern leaves conditions open, so that it matches there."""
    for model in islice(examples(rule, holding=False), 3):
        assert theirs(rule, model) == ours(rule, model)


@pytest.mark.slow
def test_examples_are_rewritten_and_counterexamples_are_refused() -> None:
    """The two tests above are not vacuous."""
    some = SAID[::8]
    assert sum(bool(ours(rule, example(rule))) for rule in some) >= 0.95 * len(some)
    refused = [m for rule in CONDITIONAL[::8] for m in islice(examples(rule, holding=False), 1) if not ours(rule, m)]
    assert len(refused) > len(CONDITIONAL) // 16


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in SMALL]
)
def test_models_of_the_zoo_compute_the_same_and_never_cost_more(name: str) -> None:
    before = zoo.build(name, **SMALL[name])
    after = ir.to_proto(rewrite(typed(before), pattern_rewrite_rules=rules()))
    report = rlflow.equivalence(before, after)
    assert report.equivalent, report.reason
    assert price(after) <= price(before)


def test_what_is_rewritten_says_by_which_rules() -> None:
    """Not vacuous, what is above: this model loses all of its nodes but one."""
    after = ir.to_proto(rewrite(typed(zoo.build("tiny_chain")), pattern_rewrite_rules=rules()))
    (node,) = after.graph.node
    (named,) = [p.value for p in node.metadata_props if p.key == "pkg.onnxscript.rewriter.rule_name"]
    assert {LIBRARY.get(name).name for name in named.split(", ")} == {"associate-weights"}


PRODUCT = """
    <ir_version: 10, opset_import: ["" : 21]>
    chain (float[{sizes}] x) => (float[{results}] y)
    <float[8, 64] v = {{0}}, float[64, 8] w = {{0}}> {{ a = MatMul(x, v)  b = MatMul(a, w)  y = Relu(b) }}
"""
"""By associate-weights one product of eight columns is left, where the weights may be multiplied when it is loaded."""


def product(sizes: str, results: str, *, fed: bool = False) -> ir.Model:
    """Two products by weights; `fed` makes the second weight an input, which has a default value."""
    proto = parser.parse_model(PRODUCT.format(sizes=sizes, results=results).replace("{0}", "{" + "0," * 511 + "0}"))
    if fed:
        proto.graph.input.append(parser.parse_graph("g (float[64, 8] w) => () {}").input[0])
    return typed(proto)


def reason(model: ir.Model, said: list[VerifiedRule]) -> set[str]:
    """Why the rules refuse the places at which their patterns match."""
    tracer = MatchingTracer()
    RewriteRuleSet(said).apply_to_model(model, tracer=tracer)
    return {info.match_result.reason for infos in tracer.best_matches_map.values() for info in infos}


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (product("4, 8", "4, 8", fed=True), "a weight where the model computes"),
    ],
)
def test_a_refusal_has_a_reason(model: ir.Model, why: str) -> None:
    assert any(why in told for told in reason(model, rules(["associate-weights"])))
