"""The rules of convolutional networks at work in networks: what they make of them, and that the outputs stay."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from support.rewrites import assert_same_outputs, graph_of
from support.strategies import source, weight

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.ir import Attributes, Graph, Node, Ref
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.ops import registry
from rlflow.rules.declared import convolution
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.rules.verification import sampler

RULES = {rule.name: rule for rule in rules_of(convolution)}
GROUPED = [r for r in RULES.values() if "?g" in r.attributes]
WINDOW: Attributes = {"auto_pad": "NOTSET", "group": 1, "strides": (1, 1), "dilations": (1, 1), "pads": (1, 1, 1, 1)}


def operators(graph: Graph) -> Counter[str]:
    return Counter(graph.nodes[i].op for i in graph.order)


def rewritten(graph: Graph, names: Sequence[str], times: int) -> Graph:
    """The first match of these rules, so many times."""
    rewriter = Rewriter([RULES[name] for name in names])
    for _ in range(times):
        graph = rewriter.apply(graph, next(m for found in rewriter.matches(graph) for m in found))
    return graph


class Builder:
    """Appends nodes to a list, with drawn weights."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes, self.rng = nodes, np.random.default_rng(0)

    def weight(self, *shape: int) -> Ref:
        return self._added(weight(self.rng.uniform(0.5, 1.5, shape).astype(np.float32), f"w{len(self.nodes)}"))

    def image(self, *shape: int) -> Ref:
        return self._added(source(shape, "x"))

    def apply(self, op: str, *operands: Ref, **attributes: object) -> Ref:
        given = [(r, self.nodes[r.node].types[r.index], self.nodes[r.node].constant) for r in operands]
        written = {**registry.OPERATORS[op].defaults, **attributes}
        return self._added(registry.apply(op, written, given))

    def conv(self, x: Ref, filters: tuple[int, ...], pads: int, **attributes: object) -> Ref:
        made = {**WINDOW, "pads": (pads,) * 4, **attributes}
        return self.apply("Conv", x, self.weight(*filters), self.weight(filters[0]), **made)

    def normalised(self, x: Ref, channels: int) -> Ref:
        return self.apply("BatchNormalization", x, *(self.weight(channels) for _ in range(4)))

    def _added(self, node: Node) -> Ref:
        self.nodes.append(node)
        return Ref(len(self.nodes) - 1)


@pytest.mark.parametrize("batch", [2, "n"])
def test_a_network_loses_its_normalisations(batch: int | str) -> None:
    model = zoo.build("conv", batch=batch, image=8)
    before = from_onnx(model)
    after = rewritten(before, ["fold-batch-normalisation-with-bias"], 2)
    assert operators(before)["BatchNormalization"] == 2
    assert operators(after) == operators(before) - Counter({"BatchNormalization": 2})
    assert compare(model, to_onnx(after)).equivalent


@pytest.mark.parametrize(
    "steps",
    [["enlarge-1x1-filters-with-bias", "sum-of-filters-with-bias"], ["sum-of-3x3-and-1x1-filters-with-bias"]],
)
def test_the_branches_of_a_repvgg_block_become_one_convolution(steps: list[str]) -> None:
    """Ding et al., 2021: 3 x 3 and 1 x 1 convolutions, each normalised, in one sum."""

    def block(nodes: list[Node]) -> list[Ref]:
        b = Builder(nodes)
        x = b.image(1, 4, 6, 6)
        wide, narrow = (b.normalised(b.conv(x, (4, 4, k, k), k // 2), 4) for k in (3, 1))
        return [b.apply("Relu", b.apply("Add", wide, narrow))]

    before = graph_of(block)
    after = rewritten(before, ["fold-batch-normalisation-with-bias"], 2)
    for step in steps:
        after = rewritten(after, [step], 1)
    assert operators(after) == {"Conv": 1, "Relu": 1}
    assert_same_outputs(before, after, np.random.default_rng(0))


def test_branches_of_an_inception_block_merge_and_part_again() -> None:
    def block(nodes: list[Node]) -> list[Ref]:
        b = Builder(nodes)
        x = b.image(1, 4, 6, 6)
        branches = [b.conv(x, (count, 4, k, k), k // 2) for count, k in ((2, 1), (3, 3), (1, 1))]
        return [b.apply("Relu", branch) for branch in branches]

    before = graph_of(block)
    merged = rewritten(before, ["merge-2-convolutions-with-bias"], 1)  # the two of single points
    assert operators(merged) == {"Conv": 2, "Split": 1, "Relu": 3}
    large = rewritten(before, ["enlarge-1x1-filters-with-bias"], 2)
    whole = rewritten(large, ["merge-3-convolutions-with-bias"], 1)
    assert operators(whole) == {"Conv": 1, "Split": 1, "Relu": 3}
    parted = rewritten(whole, ["split-convolution-3-with-bias"], 1)
    for after in (merged, large, whole, parted):
        assert_same_outputs(before, after, np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(4))
def test_outputs_stay_whatever_is_done(seed: int) -> None:
    """Walks through the whole library from a block of branches, one of them grouped, scaled and strided."""

    def block(nodes: list[Node]) -> list[Ref]:
        b = Builder(nodes)
        x = b.image(2, 4, 6, 6)
        wide = b.normalised(b.conv(x, (4, 4, 3, 3), 1), 4)
        total = b.apply("Relu", b.apply("Add", wide, b.conv(x, (4, 4, 1, 1), 0)))
        grouped = b.apply("Mul", b.conv(total, (8, 1, 3, 3), 1, group=4, strides=(2, 1)), b.weight(8, 1, 1))
        padded = b.apply("Pad", total, pads=(0, 0, 1, 0, 0, 0, 0, 1))
        shifted = b.apply("Add", b.conv(padded, (3, 4, 2, 2), 0), b.weight(1, 3, 1, 1))
        pool = {"kernel_shape": (2, 2), "strides": (1, 1), "dilations": (1, 1), "pads": (0, 1, 1, 0)}
        return [b.apply("MaxPool", grouped, **pool), shifted]

    before, rng = graph_of(block), np.random.default_rng(seed)
    rewriter, after, used = Rewriter(load().rules), before, set()
    for _ in range(12):
        matches = [m for found in rewriter.matches(after) for m in found]
        if not matches:
            break
        match = matches[rng.integers(len(matches))]
        used.add(match.rule.name)
        after = rewriter.apply(after, match)
        assert_same_outputs(before, after, rng)
    assert len(used) >= 4


def test_groups_are_halved_until_there_is_one() -> None:
    def separable(nodes: list[Node]) -> list[Ref]:
        b = Builder(nodes)
        return [b.apply("Relu", b.conv(b.image(2, 8, 5, 5), (8, 1, 3, 3), 1, group=8))]

    before = graph_of(separable)
    after = rewritten(before, ["halve-groups-with-bias"], 3)
    assert [after.nodes[i].attributes.get("group") for i in after.order] == [1, None]
    assert not any(Rewriter([RULES["halve-groups-with-bias"]]).matches(after))
    assert_same_outputs(before, after, np.random.default_rng(0))


@pytest.mark.parametrize("change", [{"group": 2}, {"strides": (2, 1)}, {"dilations": (1, 2)}])
def test_convolutions_that_differ_do_not_merge(change: dict[str, object]) -> None:
    def pair(nodes: list[Node]) -> list[Ref]:
        b = Builder(nodes)
        x = b.image(1, 4, 5, 5)
        wide = b.conv(x, (4, 4, 3, 3), 1)
        other = b.conv(x, (4, 4 // int(change.get("group", 1)), 3, 3), 1, **change)  # type: ignore[call-overload]
        return [wide, other]

    assert not any(Rewriter([RULES["merge-2-convolutions-with-bias"]]).matches(graph_of(pair)))


def test_pads_that_depend_on_the_image_are_left_alone() -> None:
    model = zoo.build("conv", image=8)
    for node in model.graph.node:
        if node.op_type == "Conv":
            del node.attribute[:]
            node.attribute.add(name="auto_pad", type=3, s=b"SAME_UPPER")
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    graph = from_onnx(model)
    found = [m.rule.name for matches in Rewriter(list(RULES.values())).matches(graph) for m in matches]
    assert found == ["global-average-to-mean"]


@pytest.mark.parametrize("rule", GROUPED, ids=lambda r: r.name)
def test_convolutions_of_several_groups_are_drawn(rule: Rule) -> None:
    random = Random(0)
    groups = Counter(sampler.draw(rule, random).attributes["?g"] for _ in range(40))
    assert sum(count for group, count in groups.items() if group != 1) >= 8
    assert len(groups) >= 2
