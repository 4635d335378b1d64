"""Optimising by an e-graph, and comparing in ONNX Runtime: what comes of it, and other graphs that an e-graph holds.

A result shows the members of classes that pay. A wrong member that is dear is never in one, so that graphs are taken
out of an e-graph at prices that are drawn, too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

import numpy as np
from onnx import ModelProto

from rlflow.egraph import greedy_extraction
from rlflow.egraph.exploration import ExplorationConfig, explore
from rlflow.egraph.matching import EMatcher
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.prices import NodePrices
from rlflow.egraph.realisation import realise
from rlflow.egraph.rebuilding import ModelProblem
from rlflow.ir import Graph, Header, structural_hash, validate
from rlflow.method import Budget
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.onnx_io.standalone import standalone_model
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.rules.verification.sampler import Sampler
from rlflow.search.equality_saturation import EqualitySaturation
from rlflow.trajectory.replay import replay
from support.fuzzing import fusions_to_blame, verdict
from support.rewrites import embed

EXPLORATIONS = [
    ExplorationConfig(slack_us=None, max_nodes=300, max_passes=8, filters_cycles=filters) for filters in (False, True)
]
"""No match is too dear; with Tensat's filter of cycles, too."""

EXTRACTIONS = 4
"""From an e-graph, each at prices that are drawn."""

_SPREAD = 2.0
"""Of the logarithms of drawn prices: one choice costs a hundred times as much as another."""

_ATTEMPTS = 10


def model_around(rule: Rule, seed: int) -> ModelProto:
    """A model of a rule's source, with a place for the rule if one of a few has it."""
    sampler, random, rng = Sampler(rule), Random(seed), np.random.default_rng(seed)
    rewriter = Rewriter([rule])
    for _ in range(_ATTEMPTS):
        model = standalone_model(embed(rule, sampler.draw(random), rng)[0])
        if any(rewriter.matches(from_onnx(model)).counts):
            break
    return model


@dataclass
class EGraphTally:
    """What was compared, and the differences found.

    `extractions` at drawn prices gave graphs, `rewritten` ones unless they gave the model again, and `realised` are
    those that rewrites led to. `rules` were used in an e-graph, and `fusions` are as in `support.fuzzing.Tally`.
    """

    method: EqualitySaturation
    models: int = 0
    improved: int = 0
    extractions: int = 0
    rewritten: int = 0
    realised: int = 0
    compared: int = 0
    informative: int = 0
    largest_error: float = 0.0
    rules: set[str] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)
    fusions: Counter[str] = field(default_factory=Counter)
    _matchers: dict[object, EMatcher] = field(default_factory=dict)

    def optimise(self, model: ModelProto, seed: int, dimensions: Mapping[str, int] | None = None) -> None:
        """Optimise a model, replay the trajectory, and compare the result and other graphs with the model."""
        graph = from_onnx(model)
        result = self.method.optimise(graph, Budget())
        *_, last = replay(graph, result.trajectory, self.method.rewriter)
        assert structural_hash(last) == structural_hash(result.best)
        assert result.best_ms <= result.start_ms
        self.models += 1
        self.improved += bool(result.trajectory.steps)
        steps = ", ".join(step.rule for step in result.trajectory.steps)
        self._compare(model, result.best, f"model {seed} by {steps}", dimensions)
        for other, rules in self._held(graph, EXPLORATIONS[seed % 2], np.random.default_rng(seed)):
            self._compare(model, other, f"model {seed} by some of {rules}", dimensions)

    def _held(
        self, graph: Graph, exploration: ExplorationConfig, rng: np.random.Generator
    ) -> Iterator[tuple[Graph, str]]:
        """Yield graphs that an e-graph holds, with the rules that were used in it."""
        price = NodePrices(self.method.cost_model, graph.header)
        egraph = ModelEGraph.from_graph(graph)
        explore(egraph, self._matcher(graph.header, price), exploration)
        rules = list(dict.fromkeys(use.rule.id for use in egraph.uses))
        self.rules.update(rules)
        extraction = ModelProblem.of(egraph, price)
        for _ in range(EXTRACTIONS):
            drawn = np.exp(_SPREAD * rng.standard_normal(len(extraction.problem.choices)))
            solution = greedy_extraction.extract(extraction.problem, dict(enumerate(drawn.tolist())))
            assert solution is not None  # the model is one
            rebuilt = extraction.graph(solution, graph)
            realised = realise(graph, egraph, extraction.chosen(solution), self.method.rewriter)
            self.extractions += 1
            self.rewritten += structural_hash(rebuilt) != structural_hash(graph)
            self.realised += not realised.missing
            yield rebuilt, ", ".join(rules)
            if structural_hash(realised.last) != structural_hash(rebuilt):
                yield realised.last, ", ".join(rules)

    def _matcher(self, header: Header, price: NodePrices) -> EMatcher:
        """Return a matcher of the method's rules, which take a moment to compile, for models with such a header."""
        key = (header.opset, tuple(sorted(header.domains.items())))
        if key not in self._matchers:
            self._matchers[key] = EMatcher(self.method.rewriter.rules, header, price)
        return self._matchers[key]

    def _compare(self, model: ModelProto, graph: Graph, origin: str, dimensions: Mapping[str, int] | None) -> None:
        validate(graph)
        after = to_onnx(graph)
        check_model(after)
        report = verdict(model, after, seed=self.compared, dimensions=dimensions)
        self.compared += 1
        self.informative += report.non_vacuous_draws > 0
        if report.equivalent:
            self.largest_error = max(self.largest_error, report.max_relative_error)
        elif fusions := fusions_to_blame(model, after, report, self.compared - 1):
            self.fusions[" and ".join(fusions)] += 1
        else:
            self.differences.append(f"{origin}: {report.summary}")
