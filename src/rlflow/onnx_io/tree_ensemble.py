"""Boosted trees as an ONNX model, which any ONNX runtime can run.

    stump = Tree(feature=[3, 0, 0], value=[0.5, -1.0, 1.0], left=[1, -1, -1], right=[2, -1, -1])
    model = tree_ensemble([stump], features=4, base=0.0)

gives -1 where the feature 3 is below 0.5, else 1. Its input is "x", (rows, features) float32, and
its output "y", (rows, 1) float32: the base plus the leaves that a row reaches.

Invariant: a row's output does not depend on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import ModelProto, TensorProto, checker, helper

_ML_VERSION = 3
_OPSET = 17


@dataclass(frozen=True)
class Tree:
    """A binary tree as one entry a node, the root first: `left` is where rows go whose `feature` is below `value`.

    A leaf has -1 as `left` and `right`, and its `value` is what it adds.
    """

    feature: Sequence[int]
    value: Sequence[float]
    left: Sequence[int]
    right: Sequence[int]

    def leaves(self) -> list[int]:
        """Return the nodes that are leaves."""
        return [node for node, child in enumerate(self.left) if child < 0]


def tree_ensemble(trees: Sequence[Tree], features: int, base: float) -> ModelProto:
    """Make the model of the sum of these trees over rows of so many features. `onnx.checker` has passed it."""
    nodes = [(number, node) for number, tree in enumerate(trees) for node in range(len(tree.value))]
    is_leaf = [trees[number].left[node] < 0 for number, node in nodes]
    leaves = [(number, leaf) for number, tree in enumerate(trees) for leaf in tree.leaves()]

    def inner(entry: str) -> list:
        """Return an entry of all nodes, 0 for leaves."""
        return [
            0 if leaf else getattr(trees[number], entry)[node]
            for (number, node), leaf in zip(nodes, is_leaf, strict=True)
        ]

    regressor = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1,
        base_values=[float(base)],
        nodes_treeids=[number for number, _ in nodes],
        nodes_nodeids=[node for _, node in nodes],
        nodes_modes=["LEAF" if leaf else "BRANCH_LT" for leaf in is_leaf],
        nodes_featureids=inner("feature"),
        nodes_values=[float(value) for value in inner("value")],
        nodes_truenodeids=inner("left"),
        nodes_falsenodeids=inner("right"),
        target_treeids=[number for number, _ in leaves],
        target_nodeids=[leaf for _, leaf in leaves],
        target_ids=[0] * len(leaves),
        target_weights=[float(trees[number].value[leaf]) for number, leaf in leaves],
    )
    rows = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", features])
    sums = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 1])
    model = helper.make_model(
        helper.make_graph([regressor], "trees", [rows], [sums]),
        ir_version=10,
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_VERSION)],
    )
    checker.check_model(model)
    return model
