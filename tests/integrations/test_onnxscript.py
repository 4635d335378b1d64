"""The library in onnxscript: its rules apply where our engine applies them, and make of it what our engine makes."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import onnx_ir as ir
import pytest
from onnx import ModelProto, numpy_helper, parser
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
MARKS: dict[str, tuple[pytest.MarkDecorator, ...]] = {
    **dict.fromkeys(("tiny_chain", "tiny_transpose"), ()),
    **dict.fromkeys(("loop", "bert", "squeezenet1_1"), (pytest.mark.slow,)),
}


@cache
def everything() -> list[VerifiedRule]:
    return rules()


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
            ir.convenience.replace_nodes_and_values(model.graph, node, found.match.nodes, found.new_nodes, replaced, by)
            IdentityEliminationPass()(model)
            RemoveUnusedNodesPass()(model)
            yield ir.to_proto(model)


def typed(proto: ModelProto) -> ir.Model:
    return ShapeInferencePass()(ir.from_proto(proto)).model


def price(model: ModelProto) -> float:
    return AnalyticCost().runtime_ms(from_onnx(model))


def test_nine_rules_in_ten_can_be_said_and_the_others_have_a_reason() -> None:
    assert {said.name for said in everything()} == {rule.id for rule in SAID}
    assert len(SAID) >= 0.9 * len(LIBRARY.rules)
    assert Counter(reason.split()[1] for reason in UNSAID.values()) == {"replaces": 20, "drops": 1}


def test_the_page_tells_how_many(repository: Path) -> None:
    assert f"{len(SAID)} of the {len(LIBRARY.rules)}" in (repository / "docs/integrations.md").read_text()


def test_a_rule_has_its_certificate_and_its_assumptions() -> None:
    for said in rules([rule.id for rule in SAID[::50]]):
        check_certificate(said.rule)
        assert said.rule.assumes == LIBRARY.get(said.rule.id).assumes


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


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, pytest.mark.exhaustive)) for name in SMALL])
def test_models_of_the_zoo_compute_the_same_and_never_cost_more(name: str) -> None:
    before = zoo.build(name, **SMALL[name])
    after = ir.to_proto(rewrite(typed(before), pattern_rewrite_rules=everything()))
    report = rlflow.equivalence(before, after)
    assert report.equivalent, report.reason
    assert price(after) <= price(before)


def test_what_is_rewritten_says_by_which_rules() -> None:
    """Not vacuous, what is above: this model loses all of its nodes but one."""
    after = ir.to_proto(rewrite(typed(zoo.build("tiny_chain")), pattern_rewrite_rules=everything()))
    (node,) = after.graph.node
    (named,) = [p.value for p in node.metadata_props if p.key == "pkg.onnxscript.rewriter.rule_name"]
    assert {LIBRARY.get(name).name for name in named.split(", ")} == {"associate-weights"}


def model(text: str, **weights: tuple[int, ...]) -> ModelProto:
    """A model in ONNX's notation, with weights of ones of these shapes."""
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    proto.graph.initializer.extend(numpy_helper.from_array(np.ones(s, np.float32), n) for n, s in weights.items())
    return proto


def operators(proto: ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]


def refusals(proto: ModelProto, *names: str) -> set[str]:
    """Why the rules of these names refuse the places that their patterns match."""
    tracer = MatchingTracer()
    RewriteRuleSet(rules(names)).apply_to_model(ir.from_proto(proto), tracer=tracer)
    return {match.match_result.reason for matches in tracer.best_matches_map.values() for match in matches}


CHAIN = "f (float[n, 512] x) => (float[n, 512] y) { a = MatMul(x, v)  b = MatMul(a, w)  y = Relu(b) }"
WIDE: dict[str, tuple[int, ...]] = {"v": (512, 600), "w": (600, 512)}
NARROW: dict[str, tuple[int, ...]] = {"v": (512, 1), "w": (1, 512)}


def test_a_rule_applies_where_that_saves() -> None:
    """Two products through 600 columns cost more than one of 512; two through one column cost less."""
    fixed = CHAIN.replace("n,", "4096,")
    assert operators(rewrite(model(fixed, **WIDE), rules(["associate-weights"]))) == ["MatMul", "Relu"]
    assert operators(rewrite(model(fixed, **NARROW), rules(["associate-weights"]))) == ["MatMul", "MatMul", "Relu"]
    (why,) = refusals(model(fixed, **NARROW), "associate-weights")
    assert why == "it saves nothing here, by analytic prices"
    assert operators(rewrite(model(fixed, **NARROW), rules(["associate-weights"], cost=None))) == ["MatMul", "Relu"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (CHAIN.replace("x)", "x, float[600, 512] w)", 1), "it wants a weight where the model computes a value"),
        (
            CHAIN.replace("[n, 512] x", " x"),
            "it does not hold here: `rlflow rules why linear-9c80c0e8a252 MODEL` says why",
        ),
        (CHAIN.replace("x)", "q)", 1).replace("{", "{ x = Unheard(q) "), "the type of the value 'x' is not known"),
    ],
    ids=["an input with a default", "a shape of unknown rank", "a value of unknown type"],
)
def test_a_refusal_has_a_reason(text: str, why: str) -> None:
    assert refusals(model(text, **WIDE), "associate-weights") == {why}


def test_a_rule_and_its_inverse_end() -> None:
    proto = model(
        "f (float[4, 8] x, float[4, 8] z) => (float[4, 16] y)"
        " { a = Relu(x)  b = Relu(z)  c = Concat <axis = 1> (a, b)  y = Neg(c) }"
    )
    assert operators(rewrite(proto, rules(["relu-of-parts", "relu-of-whole"]))) == ["Concat", "Relu", "Neg"]


def test_numbers_are_found_on_either_side_in_nodes_and_among_weights() -> None:
    proto = model(
        "f (float[4, 8] x) => (float[4, 8] y) { r = Constant <value_float = 1.4142135381698608> ()"
        " h = Constant <value_float = 0.5> ()"
        " a = Div(x, r)  b = Erf(a)  c = Add(one, b)  d = Mul(c, x)  y = Mul(h, d) }",
        one=(),
    )
    after = rewrite(proto, rules(["fuse-gelu-of-quotient-half-of-all"]))
    assert operators(after) == ["Gelu"]
    assert rlflow.equivalence(proto, after).equivalent


def test_a_large_weight_is_read_only_where_a_rule_applies() -> None:
    loaded = ir.from_proto(model(CHAIN.replace("n,", "4096,"), **NARROW | {"v": (512, 3), "w": (3, 512)}))
    for weight in loaded.graph.initializers.values():
        assert weight.shape is not None
        weight.const_value = ir.LazyTensor(pytest.fail, ir.DataType.FLOAT, weight.shape, name=weight.name)
    assert len(rewrite(loaded, rules(["associate-weights"])).graph) == 3


def test_what_a_model_names_stays_apart_from_what_inference_names() -> None:
    """Two dimensions that are not known have no name afterwards: by one name they would be equal."""
    text = "f (float[n, ?, 8] x, float[n, ?, 8] z) => (float[n, ?, 16] y)"
    body = "{ a = Relu(x)  b = Relu(z)  c = Concat <axis = 2> (a, b)  y = Neg(c) }"
    after = rewrite(ir.from_proto(model(text + body)), rules(["relu-of-whole"], cost=None))
    dimensions = [d for node in after.graph for value in node.outputs for d in value.shape or ()]
    assert {d.value for d in dimensions if isinstance(d, ir.SymbolicDim)} == {"n", None}


def test_branches_are_rewritten_and_their_weights_keep_apart() -> None:
    """Each graph gets a new weight; a branch sees those of the graph around it, too."""
    branch = "{0} () => (float[4, 512] {0}y) {{ {0}a = MatMul(p, v)  {0}b = MatMul({0}a, w)  {0}y = Relu({0}b) }}"
    proto = model(
        "f (float[4, 512] x, bool c) => (float[4, 512] y) { a = MatMul(x, v)  b = MatMul(a, w)  p = Relu(b) "
        f"y = If (c) <then_branch = {branch.format('t')}, else_branch = {branch.format('e')}> }}",
        **WIDE,
    )
    after = ir.to_proto(rewrite(typed(proto), rules(["associate-weights"])))
    bodies = [attribute.g for attribute in after.graph.node[-1].attribute]
    assert [[node.op_type for node in body.node] for body in (after.graph, *bodies)] == [
        ["MatMul", "Relu", "If"],
        ["MatMul", "Relu"],
        ["MatMul", "Relu"],
    ]
    assert rlflow.equivalence(proto, after).equivalent


def test_an_operator_that_the_model_defines_itself_is_not_ours() -> None:
    """Its Gelu is another function than ONNX Runtime's, of which the rule speaks."""
    text = "f (float[4, 8] x) => (float[4, 8] y) { a = com.microsoft.Gelu(x)  y = Neg(a) }"
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]> {text}')
    rule = rules(["unfuse-gelu-of-microsoft"], cost=None)
    assert "Erf" in operators(rewrite(proto, rule))
    proto.functions.append(
        parser.parse_function('<domain: "com.microsoft", opset_import: ["" : 21]> Gelu (x) => (y) { y = Abs(x) }')
    )
    assert operators(rewrite(proto, rule)) == ["Gelu", "Neg"]
