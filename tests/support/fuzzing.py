"""Rewriting at random, with every rule getting its turn, and comparing what comes of it in ONNX Runtime."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.compare import compare
from rlflow.equivalence.drawing import Inputs
from rlflow.equivalence.fusions import to_blame
from rlflow.equivalence.reference import reference_of
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import RLFlowError
from rlflow.ir import Graph
from rlflow.onnx_io import check_model
from rlflow.onnx_io.standalone import standalone_model
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule

STEPS = 5
"""Rewrites before a comparison."""

MOST_TURNS = 1000
"""Of one rule: an Add can be turned round nearly everywhere, and that is all there is to it."""

_COMPARISONS = 10**5
"""More than one tally makes."""
_DRAWS = 4
"""Inputs at which models are compared again that differed at one: numbers may cancel by accident."""


def unconditional(rules: Sequence[Rule]) -> Rewriter:
    """The rules without their conditions of profit: what is drawn is small."""
    return Rewriter([replace(rule, profitable_if=()) for rule in rules])


@dataclass
class Tally:
    """The rewrites done, how often by each rule, and the differences found.

    `rewriter` is `unconditional(rules)`, which takes a second to compile for all rules. Inputs are drawn from `seed`
    and the number of the comparison. `fusions` counts models that are right as written and that ONNX Runtime makes
    wrong, or refuses, as deployed: no rule is to blame, and `rlflow optimise` refuses them.
    """

    rules: Sequence[Rule]
    rewriter: Rewriter
    seed: int = 0
    uses: Counter[int] = field(default_factory=Counter)
    models: int = 0
    informative: int = 0
    largest_error: float = 0.0
    differences: list[str] = field(default_factory=list)
    fusions: Counter[str] = field(default_factory=Counter)

    def next_action(self, graph: Graph, rng: np.random.Generator, first: int | None) -> tuple[int, Match] | None:
        """A match of this rule, or else of the one that has had fewest turns among those that match."""
        matches = self.rewriter.matches(graph)
        present = [rule for rule, count in enumerate(matches.counts) if count and self.uses[rule] < MOST_TURNS]
        rule = min(present, key=lambda rule: (rule != first, self.uses[rule]), default=None)
        return None if rule is None else (rule, matches[rule][int(rng.integers(matches.counts[rule]))])

    def rewrite(
        self, graph: Graph, rng: np.random.Generator, first: int | None = None, inputs: Sequence[Inputs] | None = None
    ) -> None:
        """Rewrite a graph a few times, by this rule first if it matches, and compare on drawn inputs or on these."""
        model = standalone_model(graph)
        applied: list[str] = []
        while len(applied) < STEPS and (action := self.next_action(graph, rng, None if applied else first)):
            rule, match = action
            graph = self.rewriter.apply(graph, match)
            applied.append(self.rules[rule].name)
            self.uses[rule] += 1
        if applied:
            self._compare(model, graph, applied, inputs)

    def _compare(self, model: ModelProto, graph: Graph, applied: list[str], inputs: Sequence[Inputs] | None) -> None:
        after = standalone_model(graph)
        check_model(after)
        seed = _COMPARISONS * self.seed + self.models
        report = verdict(model, after, seed=seed) if inputs is None else in_settings(model, after, inputs=inputs)
        self.models += 1
        self.informative += report.non_vacuous_draws > 0
        if report.equivalent:
            self.largest_error = max(self.largest_error, report.max_relative_error)
        elif fusions := fusions_to_blame(model, after, report, seed, inputs):
            self.fusions[" and ".join(fusions)] += 1
        else:
            self.differences.append(f"{' then '.join(applied)}: {report.summary}")


def fusions_to_blame(
    model: ModelProto, after: ModelProto, report: EquivalenceReport, seed: int, inputs: Sequence[Inputs] | None = None
) -> tuple[str, ...]:
    """Return the optimisers of ONNX Runtime that make a model wrong, or refuse it, which is right as written."""
    if report.worst_setting != "deployed":
        return ()
    known = reference_of(model, ("as_written",), draws=1, seed=seed, inputs=inputs)
    return to_blame(after, known.inputs, known.outputs, report.tolerance)


def in_settings(model: ModelProto, after: ModelProto, **drawn: Any) -> EquivalenceReport:
    """Compare in both settings, or as written alone where ONNX Runtime refuses the original itself as deployed."""
    try:
        return compare(model, after, **drawn)
    except RLFlowError:  # some fusions want an axis more, or forget a node that they still read
        return compare(model, after, **drawn, setting="as_written")


def verdict(
    model: ModelProto, after: ModelProto, seed: int, dimensions: Mapping[str, int] | None = None
) -> EquivalenceReport:
    """Compare at one input, and where that differs return the verdict of most of a few others."""
    compare_at = partial(in_settings, model, after, draws=1, dimensions=dimensions)
    report = compare_at(seed=seed)
    if report.equivalent:
        return report
    reports = [compare_at(seed=10**6 + draw) for draw in range(_DRAWS)]
    return sorted(reports, key=lambda report: report.equivalent)[_DRAWS // 2]
