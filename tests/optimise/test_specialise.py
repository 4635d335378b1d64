"""What a search may take for granted, and that what is delivered takes no more than it needs."""

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from support.onnx_models import with_drawn_weights
from support.texts import SUMMED

import rlflow
from rlflow import schemas
from rlflow.cli import main
from rlflow.cost.analytic import AnalyticCost
from rlflow.equivalence.compare import compare
from rlflow.errors import RLFlowError
from rlflow.method import Budget
from rlflow.optimise.api import Optimised
from rlflow.optimise.specialise import Assumptions
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.inputs import dimensions_of
from rlflow.runtime.opsets import is_supported
from rlflow.runtime.session import open_session, run
from rlflow.schemas.optimise import OptimiseReport
from rlflow.search.greedy import Greedy
from rlflow.trajectory import record

NORMALISED = """
    <ir_version: 6, opset_import: ["" : 11], producer_name: "a tool", metadata_props: ["key": "value"]>
    normalised (float[n, 256, 32] x, float[n, 256, 32] unused) => (float[n, 256, 32] y)
    <float[32] scale, float[32] bias, float epsilon = {0.00001}, float two = {2}> {
        mean = ReduceMean<axes = [-1]>(x)
        centred = Sub(x, mean)
        square = Pow(centred, two)
        variance = ReduceMean<axes = [-1]>(square)
        shifted = Add(variance, epsilon)
        deviation = Sqrt(shifted)
        normal = Div(centred, deviation)
        scaled = Mul(normal, scale)
        y = Add(scaled, bias)
    }
"""
"""A LayerNormalization in an opset that has none, as exporters write it."""


def optimised(model: onnx.ModelProto | Path, **settings: object) -> Optimised:
    return rlflow.optimise(
        model, method="greedy", cost_model="analytic", shortlist=0, budget_s=120.0, setting="as_written", **settings
    )


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def candidate(found: Optimised) -> onnx.ModelProto:
    """What the search made, written or not: whether it is faster is not the question here."""
    return rlflow.to_onnx(found.result.best)


@pytest.fixture(scope="module")
def shipped() -> Library:
    return rule_library.load()


@pytest.fixture(scope="module")
def raised() -> Optimised:
    return optimised(with_drawn_weights(NORMALISED), shapes={"x": (4, 256, 32)})


def test_rules_of_a_newer_opset_match_the_raised_graph_alone(shipped: Library) -> None:
    assumptions = Assumptions(with_drawn_weights(NORMALISED), {}, shipped.rules)
    rewriter = Rewriter(shipped.rules)

    def writing(graph: rlflow.Graph) -> set[str]:
        counts = rewriter.matches(graph).counts
        targets = (str(rule.target) for rule, count in zip(shipped.rules, counts, strict=True) if count)
        return {op for op in ("LayerNormalization", "RMSNormalization") if any(op in target for target in targets)}

    assert writing(assumptions.as_it_is) == set()
    assert "LayerNormalization" in writing(assumptions.searched)
    assert assumptions.searched.header.opset == max(rule.versions[""] for rule in shipped.rules)
    without = [rule for rule in shipped.rules if rule.versions[""] <= 17]
    assert Assumptions(with_drawn_weights(NORMALISED), {}, without).searched.header.opset == 17, (
        "no newer than rules want"
    )


def test_a_model_is_raised_as_far_as_its_rewrites_need(raised: Optimised) -> None:
    model, report = candidate(raised), raised.report
    assert operators(model) == ["LayerNormalization"]
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 17)]
    assert (report.opset_before, report.opset_after) == (11, 17)
    assert set(report.raised_for) <= {step.rule for step in report.steps} != set()
    assert report.raised_for
    schemas.validate(OptimiseReport, report.to_json())


def test_a_raised_model_keeps_everything_else(raised: Optimised) -> None:
    before, after = with_drawn_weights(NORMALISED), candidate(raised)
    for field in ("input", "output"):
        ours, theirs = (list(getattr(model.graph, field)) for model in (before, after))
        assert ours == theirs, "names, order, types, open sizes"
    assert (after.producer_name, after.ir_version, after.graph.name) == ("a tool", 6, "normalised")
    assert [(entry.key, entry.value) for entry in after.metadata_props] == [("key", "value")]
    assert (raised.report.pinned, raised.report.pinned_for) == ({}, ())
    for rows in (1, 3):
        assert compare(before, after, dimensions={"n": rows}).equivalent


@pytest.mark.slow
def test_what_an_opset_needs_not_stays_at_its_opset() -> None:
    """A rewrite that the model's own opset has, found on the raised graph, does not raise the model."""
    model = with_drawn_weights(
        NORMALISED.replace("Mul(normal, scale)", "Relu(normal)").replace("Add(scaled, bias)", "Relu(scaled)")
    )
    only = {rule.name for rule in rule_library.load().rules} - {"Relu(Relu(a)) => Relu(a)"}
    found = optimised(model, shapes={"x": (4, 256, 32)}, disabled=tuple(only))
    assert operators(candidate(found)).count("Relu") == 1
    assert (found.report.opset_before, found.report.opset_after, found.report.raised_for) == (11, 11, ())


UNSAFE = {
    "Hardmax that flattens": (
        """<ir_version: 6, opset_import: ["" : 11]>
        model (float[4, 8, 2] x) => (float[4, 8, 2] y) { a = Hardmax(x) y = Relu(a) }""",
        12,
    ),
    "a function": (
        """<ir_version: 8, opset_import: ["" : 11, "own" : 1]>
        model (float[4, 8] x) => (float[4, 8] y) { a = own.largest(x) y = Relu(a) }
        <domain: "own", opset_import: ["" : 11]> largest (a) => (b) { b = Hardmax<axis = 0>(a) }""",
        12,
    ),
    "Softmax that flattens": (
        """<ir_version: 6, opset_import: ["" : 11]>
        model (float[4, 8] x) => (float[4, 8] y) { a = Softmax<axis = 0>(x) y = Relu(a) }""",
        12,
    ),
}
"""Models and the last opset in which they are the same."""


@pytest.mark.parametrize("name", UNSAFE)
def test_a_model_is_not_raised_further_than_is_safe(name: str, shipped: Library) -> None:
    text, last = UNSAFE[name]
    assumptions = Assumptions(parser.parse_model(text), {}, shipped.rules)
    assert assumptions.as_it_is.header.opset == 11
    assert assumptions.searched.header.opset == last


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "axis", "opset"), [("Hardmax", 1, 11), ("LogSoftmax", 1, 11), ("LogSoftmax", -1, 17)]
)
def test_a_model_is_optimised_in_the_opset_in_which_all_of_it_keeps_its_meaning(
    operator: str, axis: int, opset: int
) -> None:
    """Beside what could become a LayerNormalization is an operator that works on a matrix before opset 13."""
    text = NORMALISED.replace(
        "y = Add(scaled, bias)", f"moved = Add(scaled, bias) y = {operator}<axis = {axis}>(moved)"
    )
    before = with_drawn_weights(text)
    found = optimised(before, shapes={"x": (4, 256, 32)})
    assert found.report.opset_after == opset
    assert ("LayerNormalization" in operators(candidate(found))) == (opset == 17)
    report = compare(before, found.model, dimensions={"n": 3})
    assert report.equivalent, report.summary


def test_the_newest_opset_here_has_an_end() -> None:
    assert is_supported(17)
    assert not is_supported(10**6)


@pytest.fixture(scope="module")
def pinned() -> Optimised:
    return optimised(with_drawn_weights(SUMMED), shapes={"x": (256, 64), "z": (256, 64)})


def test_a_rewrite_that_needs_the_sizes_pins_them(pinned: Optimised) -> None:
    model, report = candidate(pinned), pinned.report
    assert sorted(operators(model)) == ["Add", "MatMul"]
    assert report.pinned == {"x": (256, 64), "z": (256, 64)}
    assert set(report.pinned_for) <= {step.rule for step in report.steps}
    assert report.pinned_for
    declared = [[d.dim_value for d in value.type.tensor_type.shape.dim] for value in model.graph.input]
    assert declared == [[256, 64], [256, 64]]
    schemas.validate(OptimiseReport, report.to_json())


def test_a_pinned_model_refuses_the_sizes_at_which_it_would_be_wrong(pinned: Optimised) -> None:
    """At x of one row the original broadcasts."""
    feeds = {"x": np.ones((1, 64), np.float32), "z": np.ones((256, 64), np.float32)}
    assert run(open_session(with_drawn_weights(SUMMED), "as_written"), feeds)["y"].shape == (256, 64)
    with pytest.raises(RLFlowError, match="could not run the model"):
        run(open_session(candidate(pinned), "as_written"), feeds)


def test_a_pinned_model_is_no_substitute_at_open_sizes(pinned: Optimised) -> None:
    """Equivalent at its sizes, and of another interface where nobody says that these are meant."""
    original, model = with_drawn_weights(SUMMED), candidate(pinned)
    assert rlflow.equivalence(original, model, shapes={"x": (256, 64), "z": (256, 64)}).equivalent
    assert "is declared" in rlflow.equivalence(original, model).reason
    assert "is declared" in rlflow.equivalence(original, model, shapes={"x": (1, 64), "z": (256, 64)}).reason


def test_the_rewrite_that_pins_has_no_place_at_open_sizes(pinned: Optimised, shipped: Library) -> None:
    """Otherwise the pins would be there for nothing."""
    assumptions = Assumptions(with_drawn_weights(SUMMED), {"n": 256, "m": 256}, shipped.rules)
    rewriter = Rewriter(shipped.select(pinned.report.pinned_for).rules)
    counts = [sum(rewriter.matches(graph).counts) for graph in (assumptions.as_it_is, assumptions.pinned)]
    assert counts[0] == 0 < counts[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "shapes"),
    [(NORMALISED, {"x": (4, 256, 32)}), (SUMMED, {"x": (256, 64), "z": (256, 64)})],
    ids=["raised", "pinned"],
)
def test_what_was_settled_is_replayed_from_its_model(
    text: str,
    shapes: dict[str, tuple[int, ...]],
    shipped: Library,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command finds the graph that the trajectory starts from."""
    source, target = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(with_drawn_weights(text), source)
    rewriter = Rewriter(shipped.rules)
    assumptions = Assumptions(with_drawn_weights(text), dimensions_of(with_drawn_weights(text), shapes), shipped.rules)
    found = Greedy(shipped, rewriter, AnalyticCost()).optimise(assumptions.searched, Budget(expansions=20))
    settled = assumptions.settled(found, rewriter)
    assert settled.raised_for or settled.pinned_for
    record.save([settled.trajectory], tmp_path / "trajectory.jsonl")
    named = [f"--shape={name}={'x'.join(map(str, shape))}" for name, shape in shapes.items()]
    arguments = [tmp_path / "trajectory.jsonl", source, *named, "-o", target]
    monkeypatch.setattr("sys.argv", ["rlflow", "replay", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert operators(onnx.load(target)) == operators(rlflow.to_onnx(settled.last))


@pytest.fixture(scope="module")
def exported_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As torch's older exporter writes it for opset 11, batch and sequence open."""
    import torch
    from transformers import BertConfig, BertModel

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            sizes = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 128}
            config = BertConfig(**sizes, vocab_size=100, max_position_embeddings=64, attn_implementation="eager")
            self.bert = BertModel(config, add_pooling_layer=False)

        def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("bert") / "bert.onnx"
    ids, mask = torch.randint(0, 100, (1, 16)), torch.ones(1, 16, dtype=torch.int64)
    axes = {name: {0: "batch", 1: "sequence"} for name in ("ids", "mask", "y")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter is deprecated, and traces
        torch.onnx.export(
            Encoder().eval(),
            (ids, mask),
            str(path),
            dynamo=False,
            opset_version=11,
            input_names=["ids", "mask"],
            output_names=["y"],
            dynamic_axes=axes,
        )
    return path


@pytest.mark.slow
def test_an_old_export_of_open_sizes_is_found_out(exported_bert: Path, shipped: Library) -> None:
    """As it is, no rule sees a LayerNormalization or a Gelu in it; pinned and raised, three and one are written."""
    assumptions = Assumptions(onnx.load(exported_bert), {"batch": 1, "sequence": 16}, shipped.rules)
    rewriter = Rewriter(shipped.rules)
    found = Greedy(shipped, rewriter, AnalyticCost()).optimise(assumptions.searched, Budget(expansions=60))
    settled = assumptions.settled(found, rewriter)
    newer = [rule for rule in shipped.rules if rule.versions[""] >= 17]
    assert not any(Rewriter(newer).matches(assumptions.as_it_is).counts)
    model = rlflow.to_onnx(settled.last)
    assert operators(model).count("LayerNormalization") == 3
    assert operators(model).count("Gelu") == 1
    assert settled.raised_for
    report = compare(exported_bert, model, dimensions={"batch": 1, "sequence": 16})
    assert report.equivalent
    assert report.non_vacuous_draws == report.draws
