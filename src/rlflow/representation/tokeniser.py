"""Every match in a graph as a token, in the vocabulary of a model and in the unit of a price profile.

    tokeniser = Tokeniser(rewriter, cost_model)
    profile = PriceProfile.of(start, cost_model)
    state = tokeniser.tokens(graph, profile)
    state.tokens[state.token_of[7]]             # what the eighth match does

Six hundred matches in twelve layers that are alike have fewer than a hundred tokens. A search goes from a graph to one
after it, in which most matches live on: those whose nodes the edit has not disturbed keep their token without being
looked at.

The invariant: the tokens of a graph depend on the graph and the profile alone, and never on the way to it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np

from rlflow.cost.base import CostModel, local
from rlflow.cost.dependence import last_known, read_by
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.preview import Preview, preview
from rlflow.representation.edit_graph import ADDED, EditGraph, EditGraphs
from rlflow.representation.match_token import MatchToken
from rlflow.representation.node_descriptors import PRICE_FEATURES, GraphDescriptors, NodeDescriptors
from rlflow.representation.own_features import COUNT_SCALE, OWN_FEATURES, columns, todays_operators
from rlflow.representation.price_profile import PriceProfile
from rlflow.representation.state_tokens import StateTokens, TokenOfMatch
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location, Rewriter

TOKEN_FEATURES = (*OWN_FEATURES, *PRICE_FEATURES, "outside_readers", "is_output")
"""The numbers that are told of a node today, in the order in which they are computed."""

_MAX_REMEMBERED = 200_000
_MAX_GRAPHS = 64  # a search looks at a graph, then mostly at those right after it


def todays_token_vocabulary() -> Vocabulary:
    """Every operator that the library knows, and every feature."""
    return Vocabulary(todays_operators(), TOKEN_FEATURES)


class _Known(NamedTuple):
    """The tokens of a graph, and those of its matches one by one."""

    state: StateTokens
    by_match: Mapping[Match, TokenOfMatch]


class Tokeniser:
    """Writes the matches of graphs as tokens, and remembers what it has written.

    Tokens go `reach` steps far from what an edit changes, and follow the readers of a node up to `max_readers`
    (`edit_graph`). `InputError` for a cost model that does not tell the prices of parts of a graph.
    """

    def __init__(
        self,
        rewriter: Rewriter,
        cost_model: CostModel,
        vocabulary: Vocabulary | None = None,
        reach: int = 2,
        max_readers: int = 6,
    ) -> None:
        told = local(cost_model)
        if told is None:
            raise InputError(
                f"the cost model {cost_model.name} does not tell the prices of the parts of a graph, which tokens of "
                "matches are made of: give it the methods of rlflow.cost.base.LocalCostModel, or choose another one, "
                "such as predicted or analytic"
            )
        self.vocabulary = vocabulary or todays_token_vocabulary()
        self._rewriter, self.cost_model = rewriter, told
        self._columns = columns(self.vocabulary, TOKEN_FEATURES)
        self._descriptors = NodeDescriptors(self.vocabulary, told)
        self._edit_graphs = EditGraphs(reach, max_readers)
        self._written: dict[Hashable, MatchToken] = {}
        self._states: OrderedDict[tuple[Graph, PriceProfile], _Known] = OrderedDict()

    def tokens(self, graph: Graph, profile: PriceProfile) -> StateTokens:
        """Return the tokens of all matches in a graph. Raises what the cost model does."""
        known = self._states.get((graph, profile))
        if known is None:
            self.cost_model.exact_ms(graph)  # what has no price yet is measured there
            known = self._looked_at(graph, profile)
            self._states[graph, profile] = known
            if len(self._states) > _MAX_GRAPHS:
                self._states.popitem(last=False)
        return known.state

    def _looked_at(self, graph: Graph, profile: PriceProfile) -> _Known:
        if self._descriptors.is_full or len(self._written) >= _MAX_REMEMBERED:
            self._descriptors.forget()
            self._written.clear()
        descriptors = GraphDescriptors(self._descriptors, graph, profile)
        last, changed = last_known(graph, lambda earlier: self._states.get((earlier, profile)), self.cost_model)
        before = last.by_match if last else {}
        matches: list[tuple[Location, Match]] = []
        by_match: dict[Match, TokenOfMatch] = {}
        for rule, found in self._rewriter.matches(graph).found():
            for number, match in enumerate(found):
                known = before.get(match)
                if known is None or not changed.isdisjoint(known.nodes):
                    known = self._look_at(graph, match, descriptors)
                matches.append((Location(rule, number), match))
                by_match[match] = known
        return _Known(StateTokens.of(matches, by_match), by_match)

    def _look_at(self, graph: Graph, match: Match, descriptors: GraphDescriptors) -> TokenOfMatch:
        edit = preview(graph, *self._rewriter.edit(graph, match))
        around = self._edit_graphs.around(graph, edit)
        depends, numbers = read_by(graph, edit, match), []
        for identifier, role in zip(around.nodes, around.roles, strict=True):
            if role == ADDED:
                numbers.append(descriptors.of_added(identifier, edit))
            else:
                number, part = descriptors.of(identifier)
                numbers.append(number)
                depends.update(part)
        outputs = _outputs(graph, edit)
        token = self._token(tuple(numbers), tuple([i in outputs for i in around.nodes]), around)
        return TokenOfMatch(token, frozenset(depends))

    def _token(self, numbers: tuple[int, ...], is_output: tuple[bool, ...], around: EditGraph) -> MatchToken:
        """Return the token of a small graph, from memory if one was written whose nodes stand in the same order."""
        content = (numbers, is_output, *around[1:])
        known = self._written.get(content)
        if known is None:
            known = self._written[content] = self._new_token(numbers, is_output, around)
        return known

    def _new_token(self, numbers: Sequence[int], is_output: Sequence[bool], around: EditGraph) -> MatchToken:
        descriptors = [self._descriptors.numbered[number] for number in numbers]
        features = np.zeros((len(descriptors), len(TOKEN_FEATURES)), np.float32)
        features[:, :-2] = [descriptor.features for descriptor in descriptors]
        features[:, -2] = COUNT_SCALE * np.array(around.outside_readers)
        features[:, -1] = is_output
        return MatchToken.of(
            [descriptor.op for descriptor in descriptors],
            around.roles,
            features[:, self._columns],
            np.array([descriptor.price for descriptor in descriptors], np.float32),
            around.before,
            around.after,
        )


def _outputs(graph: Graph, edit: Preview) -> Set[int]:
    """The nodes of the graph whose values are outputs, and those that the edit adds whose values will be."""
    substitution, outputs = edit.substitution, graph.output_nodes
    if outputs.isdisjoint(ref.node for ref in substitution):
        return outputs
    given = {substitution[ref].node for ref in graph.outputs if ref in substitution}
    return outputs | (given & edit.added.keys())
