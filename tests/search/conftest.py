"""Graphs with a known best form, and searches over one rewriter that counts what it is asked to do."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from rlflow import zoo
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library


@dataclass
class Detour:
    """A graph whose best form lies behind a worse one: a scale must first move to a larger tensor, where it then
    disappears into a weight.
    """

    graph: Graph
    library: Library
    rules: list[str] = field(default_factory=lambda: ["scale-out-of-left-operand", "scale-into-weight"])


@pytest.fixture(scope="session")
def shipped() -> Library:
    return rule_library.load()


@pytest.fixture
def tiny() -> Callable[[str], Graph]:
    return lambda name: from_onnx(zoo.build(name))


@pytest.fixture(scope="session")
def bert() -> Graph:
    settings = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50}
    return from_onnx(zoo.build("bert", **settings, positions=16))


@pytest.fixture
def detour(shipped: Library) -> Detour:
    """y = (x * 0.5) w, with twice as many columns in y as in x."""
    nodes = [helper.make_node("Mul", ["x", "s"], ["u"]), helper.make_node("MatMul", ["u", "w"], ["y"])]
    values = np.random.default_rng(0).standard_normal((64, 128), np.float32)
    weights = [numpy_helper.from_array(values, "w"), numpy_helper.from_array(np.array(0.5, np.float32), "s")]
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "detour",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (512, 64))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, (512, 128))],
            weights,
        ),
        ir_version=10,
        opset_imports=[helper.make_opsetid("", 17)],
    )
    names = Detour(from_onnx(model), shipped).rules
    return Detour(from_onnx(model), shipped.select([shipped.get(name).id for name in names]))


@pytest.fixture
def plateau(shipped: Library) -> Detour:
    """y = (x / 2) w with rules that make the division a product, which saves nothing, and only then take it into w."""
    linear = shipped.select([rule.id for rule in shipped.rules if rule.family == "linear"])
    return Detour(from_onnx(zoo.build("tiny_scale")), linear)
