"""A rule of onnxscript that rewrites a place in a graph of ours.

The pattern says the operators of a place and which of its values are the same. All else is decided in a graph of the
place, and what replaces the place is made there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

import onnx_ir as ir
from onnxscript.rewriter import MatchContext, MatchResult, RewriterContext, RewriteRule

from rlflow.cost.base import CostModel
from rlflow.integrations.fragment import Fragment, fragment, stored, written
from rlflow.ir.graph import Graph
from rlflow.ops.registry import OPERATORS

_LARGEST_READ = 1024
"""Elements of a weight that is read to find out whether a rule applies; a larger one is read where it does."""
_OPSETS = "rlflow.opsets"
"""The key by which a condition leaves the opsets at a root for the replacement, as a subgraph does not know its own."""


class PlaceRule(RewriteRule):
    """A rule whose pattern gives each value a name: `outputs` are those that it replaces, all of one node, `variables`
    those that it reads, and `weights` those of them that have to be weights.

    It applies where that lowers the `cost`, or, if this is None, wherever `_after` makes a graph. `sight` is how many
    operators above the place that wants to see, and `why_not` the reason where it makes none.
    """

    def __init__(
        self,
        said: Callable[..., Any],
        name: str,
        *,
        operator: str,
        outputs: Sequence[str],
        variables: Sequence[str],
        weights: Sequence[str],
        sight: int,
        cost: CostModel | None,
        why_not: str,
    ) -> None:
        self._operator = (OPERATORS[operator].domain, OPERATORS[operator].op_type, "")
        self._outputs, self._variables, self._weights = outputs, frozenset(variables), weights
        self._sight, self._cost, self._why_not = sight, cost, why_not
        super().__init__(said, self._replacement, self._condition, name=name)

    @abstractmethod
    def _after(self, place: Fragment, bindings: Mapping[str, ir.Value]) -> Graph | None:
        """Return the graph of the place with what replaces it; None if the rule does not hold there."""

    def match(
        self, model: ir.Model, graph_or_function: ir.Graph | ir.Function, node: ir.Node, **options: Any
    ) -> MatchResult | None:
        """Match as onnxscript does, which takes its time at nodes of other operators: there are a thousand rules."""
        if node.op_identifier() != self._operator:
            return None
        return super().match(model, graph_or_function, node, **options)

    def _condition(self, context: MatchContext, /, **bindings: ir.Value) -> MatchResult:
        """Ask whether it holds, and whether it saves anything."""
        if any(stored(bindings[name]) is None for name in self._weights):
            return MatchResult().fail("it wants a weight where the model computes a value")
        context.root.meta[_OPSETS] = _opsets(context)
        try:
            place = self._place(bindings, _LARGEST_READ)
        except ValueError as error:
            return MatchResult().fail(str(error))
        after = self._after(place, bindings)
        if after is None:
            return MatchResult().fail(self._why_not)
        if self._cost is not None and self._cost.runtime_ms(after) >= self._cost.runtime_ms(place.graph):
            return MatchResult().fail(f"it saves nothing here, by {self._cost.name} prices")
        return MatchResult()

    def _replacement(self, op: RewriterContext, /, **bindings: ir.Value) -> list[ir.Value] | MatchResult:
        """Rewrite the place as our engine does, now that its weights are read."""
        place = self._place(bindings, inf)
        after = self._after(place, bindings)
        if after is None:
            return MatchResult().fail("it does not hold for these weights")
        graph = self._root(bindings).graph
        taken = graph.initializers if isinstance(graph, ir.Graph) else ()
        return written(after, place, op, taken)

    def _root(self, bindings: Mapping[str, ir.Value]) -> ir.Node:
        node = bindings[self._outputs[0]].producer()
        assert node is not None
        return node

    def _place(self, bindings: Mapping[str, ir.Value], largest: float) -> Fragment:
        results = [value for name, value in bindings.items() if name not in self._variables]
        nodes = dict.fromkeys(node for result in results if (node := result.producer()) is not None)
        outputs = [bindings[name] for name in self._outputs]
        opsets = self._root(bindings).meta[_OPSETS]
        return fragment(list(nodes), outputs, opsets, sight=self._sight, largest=largest)


def _opsets(context: MatchContext) -> dict[str, int]:
    """Return the versions of the domains at a place, without those in which the model defines operators itself."""
    around = context.graph_or_function if isinstance(context.graph_or_function, ir.Function) else context.model
    own = {function.domain for function in context.model.functions.values()}
    return {domain: version for domain, version in around.opset_imports.items() if domain not in own}
