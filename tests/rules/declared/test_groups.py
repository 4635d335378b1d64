"""Groups of convolutions apart and together again, and filters of one point as products and slices."""

import numpy as np
import pytest
from support.rewrites import applied, assert_same_outputs, graph_of, operators, read, rewritten
from support.strategies import weight

from rlflow.ir import Graph, Node, Ref
from rlflow.rules.declared import groups
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.matching.rewriter import Rewriter

RULES = {rule.name: rule for rule in rules_of(groups)}


def convolution(channels: int, filters: tuple[int, ...], **attributes: object) -> Graph:
    def build(nodes: list[Node]) -> list[Ref]:
        x = read(nodes, "x", 1, channels, 5, 5)
        nodes.append(weight(np.random.default_rng(0).standard_normal(filters).astype(np.float32), "f"))
        window = {"strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0), **attributes}
        return [applied(nodes, "Relu", applied(nodes, "Conv", x, Ref(len(nodes) - 1), **window))]

    return graph_of(build)


def test_four_groups_come_apart_and_together_again() -> None:
    before = convolution(8, (8, 2, 3, 3), group=4)
    apart = rewritten(RULES, before, "groups-apart", "groups-apart", "groups-apart")
    assert operators(apart)["Conv"] == 4
    assert {apart.nodes[i].attributes.get("group") for i in apart.order} == {1, None}
    together = rewritten(RULES, apart, "groups-together", "groups-together", "groups-together")
    assert operators(together)["Conv"] == 1
    for after in (apart, together):
        assert_same_outputs(before, after, np.random.default_rng(0))


def test_a_strided_shortcut_is_a_product_of_a_slice() -> None:
    """The shortcut of a residual block (He et al., 2016)."""
    before = convolution(4, (6, 4, 1, 1), strides=(2, 2))
    after = rewritten(RULES, before, "strided-points-to-slice")
    assert operators(after) == {"Slice": 1, "Conv": 1, "Relu": 1}
    assert_same_outputs(before, after, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("filters", "attributes"),
    [((8, 8, 3, 3), {}), ((9, 3, 3, 3), {"group": 3}), ((8, 8, 1, 1), {}), ((8, 8, 1, 1), {"pads": (1, 1, 1, 1)})],
)
def test_other_convolutions_stay(filters: tuple[int, ...], attributes: dict[str, object]) -> None:
    """Of one group, of an odd number of groups, of single points without strides, of points with pads around."""
    channels = filters[1] * int(attributes.get("group", 1))  # type: ignore[call-overload]
    assert not any(Rewriter(list(RULES.values())).matches(convolution(channels, filters, **attributes)))
