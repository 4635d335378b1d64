"""A found sequence of rewrites as one rule of onnxscript: what it replaces gives way to what it leads to, at once.

    found = rlflow.optimise("model.onnx")
    rule = sequence(found.rewriting.start, found.result.trajectory)
    rewrite(another, pattern_rewrite_rules=[rule])

The pattern is the part of the graph that the steps replace. A place that it matches is taken as a graph with the same
numbers, and the steps are taken there again, each by its own verified rule. So nothing is proven of the sequence beside
what is proven of its rules: it holds at every size at which each of them holds, and where one does not, nothing is
done. Unlike its rules one by one, it needs no step on the way to pay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import onnx_ir as ir
from onnxscript.rewriter.pattern import OpsetPatternBuilder, Var

from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.integrations.fragment import Fragment
from rlflow.integrations.onnxscript import ANALYTIC
from rlflow.integrations.place_rule import PlaceRule
from rlflow.ir.graph import Graph, make_graph
from rlflow.ir.node import Ref
from rlflow.ops.registry import OPERATORS
from rlflow.rules.library import Library, load
from rlflow.rules.matching.bounds import SIGHT
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import rewriter_of
from rlflow.trajectory.places import places
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import of_its_rules
from rlflow.trajectory.transfer import transferred


def sequence(
    start: Graph, trajectory: Trajectory, *, library: Library | None = None, cost: CostModel | None = ANALYTIC
) -> SequenceRule:
    """Return the rule of a trajectory from `start`, whose rules are in the library, by default the one that ships.

    It matches operands in the order that they have in `start`, and applies where that lowers the `cost`, or, if this is
    None, wherever all steps hold. Raises `ReplayError` if the trajectory does not start there, and `InputError` if it
    has no steps, or replaces the values of several nodes, of which onnxscript tries one choice alone.
    """
    rewriter = of_its_rules(trajectory, rewriter_of(trajectory.matching, (library or load()).rules))
    return SequenceRule(start, trajectory, rewriter, cost)


class SequenceRule(PlaceRule):
    """The steps of `trajectory` as one rule, named by its digest."""

    def __init__(self, start: Graph, trajectory: Trajectory, rewriter: Rewriter, cost: CostModel | None) -> None:
        self.trajectory, self._start, self._rewriter = trajectory, start, rewriter
        replaced = {node for place in places(start, trajectory, rewriter) for node in place.before}
        self._values = {_name(ref): ref for ref in _values(start, replaced)}
        outputs = [
            ref
            for ref in self._values.values()
            if ref.node in replaced and (ref in start.outputs or not replaced.issuperset(start.consumers[ref.node]))
        ]
        roots = {ref.node for ref in outputs}
        if len(roots) != 1:
            raise InputError(f"the sequence replaces the values of {len(roots)} nodes: onnxscript has rules for one")
        variables = [name for name, ref in self._values.items() if ref.node not in replaced]
        super().__init__(
            partial(_pattern, start, replaced, outputs),
            f"sequence-{trajectory.digest}",
            operator=start.nodes[outputs[0].node].op,
            outputs=list(map(_name, outputs)),
            variables=variables,
            weights=[name for name in variables if start.nodes[self._values[name].node].constant],
            sight=SIGHT,
            cost=cost,
            why_not="one of the steps does not hold here",
        )

    def _after(self, place: Fragment, bindings: Mapping[str, ir.Value]) -> Graph | None:
        refs = place.refs()
        numbers: dict[int, int] = {}
        for name, ref in self._values.items():
            found = refs.get(bindings[name])
            if found is None or numbers.setdefault(found.node, ref.node) != ref.node or found.index != ref.index:
                return None
        others = count(self._start.next_id)
        numbers |= {node: next(others) for node in place.graph.nodes if node not in numbers}
        next_id = next(others)
        onto = replace(_numbered(place.graph, numbers), next_id=next_id)
        done = transferred(replace(self._start, next_id=next_id), self.trajectory, onto, self._rewriter)
        return None if done.refused else done.last


def _values(graph: Graph, nodes: set[int]) -> list[Ref]:
    """Return the values that the nodes compute or read, each once."""
    computed = [Ref(node, index) for node in nodes for index in range(len(graph.nodes[node].types))]
    read = [ref for node in nodes for ref in graph.nodes[node].inputs if ref is not None]
    return list(dict.fromkeys([*computed, *read]))


def _name(ref: Ref) -> str:
    return f"value_{ref.node}_{ref.index}"


def _numbered(graph: Graph, numbers: Mapping[int, int]) -> Graph:
    """Return the graph with other numbers of its nodes."""

    def renamed(ref: Ref | None) -> Ref | None:
        return None if ref is None else Ref(numbers[ref.node], ref.index)

    nodes = {numbers[i]: node.with_inputs(tuple(map(renamed, node.inputs))) for i, node in graph.nodes.items()}
    outputs = [Ref(numbers[ref.node], ref.index) for ref in graph.outputs]
    return make_graph(nodes, [numbers[i] for i in graph.inputs], outputs, graph.output_names, graph.header)


def _pattern(graph: Graph, inside: set[int], outputs: list[Ref], op: OpsetPatternBuilder) -> list[Any]:
    """Say the nodes `inside`: operators, and which values are the same. Operands that are parameters stay open."""
    said: dict[Ref, Any] = {}

    def value(ref: Ref | None) -> Any:
        if ref is None:
            return None
        if ref.node not in inside:
            return said.setdefault(ref, Var(_name(ref)))
        if ref not in said:
            node = graph.nodes[ref.node]
            results = [Ref(ref.node, index) for index in range(len(node.types))]
            built = getattr(op, OPERATORS[node.op].op_type)(
                *map(value, node.inputs),
                _domain=OPERATORS[node.op].domain,
                _outputs=list(map(_name, results)),
                _allow_other_inputs=True,
            )
            said.update(zip(results, built if len(results) > 1 else [built], strict=True))
        return said[ref]

    return list(map(value, outputs))
