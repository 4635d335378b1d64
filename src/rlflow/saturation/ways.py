"""Ways from one form of a value to another: uses of rules, one after another, within a class of an e-graph.

A use of x + 0 => x leads from the e-node x + 0 to whatever e-node x is. Most lead from one e-node of a class to another.

    ways = Ways(egraph)
    ways.lengths(wanted)[member]          # how many uses it takes at the least; no entry if there is no way
    ways.uses(member)                     # the uses that start from an e-node

Uses have a direction: what a rule turns into something else is seldom turned back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rlflow.saturation.model_egraph import ClassId, ENodeId, ModelEGraph, Use


class Ways:
    """The ways in an e-graph that does not change any more."""

    def __init__(self, egraph: ModelEGraph) -> None:
        self._egraph = egraph
        self._uses: dict[ENodeId, list[Use]] = defaultdict(list)
        self._members: dict[ClassId, dict[ENodeId, None]] = defaultdict(dict)
        for use in egraph.uses:
            for root in use.roots:
                number = egraph.find_node(root)
                self._uses[number].append(use)
                self._members[egraph.find(number)][number] = None
        self._lengths: dict[ENodeId, dict[ENodeId, int]] = {}

    def uses(self, member: ENodeId) -> Sequence[Use]:
        """Return the uses one of whose roots is this e-node, in the order of time."""
        return self._uses.get(member, ())

    def ends(self, use: Use, root: ENodeId) -> Iterator[ENodeId | None]:
        """Yield the e-nodes that an e-node becomes by a use; None where that is a variable, in whatever form it is."""
        for number, output in zip(use.roots, use.outputs, strict=True):
            if self._egraph.find_node(number) == root:
                yield self._end(use, output)

    def _end(self, use: Use, output: ClassId) -> ENodeId | None:
        output = self._egraph.find(output)
        for application in reversed(use.made):
            for number in self._egraph.outputs_of(self._egraph.application(application)):
                if self._egraph.find(number) == output:
                    return number
        return None

    def lengths(self, wanted: ENodeId) -> Mapping[ENodeId, int]:
        """Return the least number of uses from each e-node of a class to the wanted one, 0 for that one itself."""
        if wanted not in self._lengths:
            backwards, anywhere = self._backwards(self._egraph.find(wanted))
            lengths, frontier = {wanted: 0}, [wanted]
            while frontier:
                reached = [start for end in frontier for start in backwards.get(end, ())]
                if frontier == [wanted]:
                    reached += anywhere
                length = lengths[frontier[0]] + 1
                frontier = [start for start in dict.fromkeys(reached) if start not in lengths]
                lengths.update(dict.fromkeys(frontier, length))
            self._lengths[wanted] = lengths
        return self._lengths[wanted]

    def _backwards(self, member: ClassId) -> tuple[Mapping[ENodeId, list[ENodeId]], list[ENodeId]]:
        """Return the e-nodes from which a use leads to each e-node of a class, and those from which one leads anywhere."""
        backwards: dict[ENodeId, list[ENodeId]] = defaultdict(list)
        anywhere = []
        for start in self._members[member]:
            for use in self._uses[start]:
                for end in self.ends(use, start):
                    if end is None:
                        anywhere.append(start)
                    else:
                        backwards[end].append(start)
        return backwards, anywhere
