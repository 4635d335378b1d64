import numpy as np
import pytest
from onnx import TensorProto, helper

from rlflow.runtime.session import fused_model, open_session, run
from rlflow.runtime.timing import batches
from rlflow.runtime.timing.batches import BatchConfig, time_batch
from rlflow.runtime.timing.fragments import Run
from rlflow.runtime.timing.trailing_views import without_last_views

ROWS, WIDTH = 8, 16


@pytest.fixture
def make_biased(make_model):
    """MatMul of this rank and Add: at rank 3 ONNX Runtime makes Reshape, Gemm, Reshape of it."""

    def build(rank, rows=ROWS, width=WIDTH):
        shape = [1, rows, width][3 - rank :]
        rng = np.random.default_rng(0)
        return make_model(
            [helper.make_node("MatMul", ["x", "w"], ["product"]), helper.make_node("Add", ["product", "b"], ["y"])],
            [("x", TensorProto.FLOAT, shape)],
            [("y", TensorProto.FLOAT, shape)],
            {
                "w": rng.standard_normal((width, width), np.float32),
                "b": rng.standard_normal(width, np.float32),
            },
        )

    return build


def _operators(model):
    return [node.op_type for node in model.graph.node]


def test_the_view_that_the_runtime_puts_at_the_end_goes_and_the_values_stay(make_biased):
    model = make_biased(3)
    fused = fused_model(model)
    assert _operators(fused) == ["Reshape", "Gemm", "Reshape"]
    cut, views = without_last_views(fused)
    assert (_operators(cut), views) == (["Reshape", "Gemm"], 1)
    x = {"x": np.random.default_rng(1).standard_normal((1, ROWS, WIDTH), np.float32)}
    whole, part = (run(open_session(m, "as_written"), x) for m in (model, cut))
    np.testing.assert_array_equal(next(iter(part.values())), whole["y"].reshape(ROWS, WIDTH))


def test_a_chain_of_views_goes_as_a_whole(make_model):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Flatten", ["b"], ["y"]),
    ]
    declared = [TensorProto.FLOAT, [2, 3]]
    cut, views = without_last_views(make_model(nodes, [("x", *declared)], [("y", *declared)]))
    assert (_operators(cut), views, cut.graph.output[0].name) == (["Relu"], 2, "a")


def test_an_operand_that_is_an_output_too_is_given_once(make_model):
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Identity", ["a"], ["y"])]
    declared = [TensorProto.FLOAT, [2, 3]]
    cut, views = without_last_views(make_model(nodes, [("x", *declared)], [("a", *declared), ("y", *declared)]))
    assert ([o.name for o in cut.graph.output], views) == (["a"], 1)


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param([("Identity", "x", "y")], id="view of an input"),
        pytest.param([("Relu", "x", "a"), ("Identity", "a", "y"), ("Neg", "y", "z")], id="view that is read"),
        pytest.param([("Identity", "x", "a"), ("Relu", "a", "y")], id="view at the start"),
    ],
)
def test_other_views_stay(make_model, nodes):
    declared = [TensorProto.FLOAT, [2, 3]]
    outputs = [(name, *declared) for _, _, name in nodes if name in ("y", "z")]
    model = make_model([helper.make_node(op, [a], [b]) for op, a, b in nodes], [("x", *declared)], outputs)
    cut, views = without_last_views(model)
    assert (cut.SerializeToString(), views) == (model.SerializeToString(), 0)


def test_a_view_that_was_left_out_is_charged_as_a_launch(make_biased, monkeypatch):
    """Every run takes 1 s but that of many views, which takes 64 s more: a launch of a second, which shows once."""
    monkeypatch.setattr(batches, "evict", lambda size_bytes: None)
    many = batches._views(64, 1, 2)
    monkeypatch.setattr(batches, "timed", lambda f, turn: Run(turn % 2, (65 if f is many else 1) * 10**9, True))
    models, config = [make_biased(3), make_biased(2)], BatchConfig(sessions=2, turns=1)
    assert [timing.ms for timing in time_batch(models, setting="deployed", config=config)] == [1000, 0]


@pytest.mark.timing
def test_the_rank_of_a_product_hardly_changes_its_price(make_biased):
    """Both are one Gemm of BERT-Base inside a model; with the copy into the output it was 10 to 20 % more."""
    models = [make_biased(rank, 128, 768) for rank in (2, 3)]
    flat, cube = (timing.ms for timing in time_batch(models, setting="deployed", config=BatchConfig(turns=9)))
    assert cube < 1.07 * flat
