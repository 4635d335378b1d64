"""The proof that a change of subnormal weights changes no output: the models are run beside each other.

    trial = Trial(model, file, reference)           `reference` is what the model computes of drawn inputs
    kept, report = harmless(found.weights, trial)

A model without the numbers must agree with the original on all inputs, as written and as deployed, within the tolerance
by which every rewritten model is judged. So must a model in which they are `MARGIN` times as large: what is not seen of
them then is not seen of their loss either, even where other inputs make a million times more of it. A weight of which
that is not so, because a constant after it is huge, is left as it is.

Each body of control flow is tried by itself as well: no drawn input may lead there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnx import ModelProto

from rlflow.delta_debugging import smallest_failing
from rlflow.equivalence.compare import compare
from rlflow.equivalence.drawing import Reference
from rlflow.equivalence.reference import reference_of
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import RLFlowError
from rlflow.onnx_io.external_data import write_mapped
from rlflow.onnx_io.subgraphs import subgraphs
from rlflow.runtime.inputs import symbolic_dimensions
from rlflow.runtime.isolation import Limits, ProcessTimeout, call_isolated
from rlflow.subnormal.flush import Decayed, multiplied

MARGIN = 2.0**24
"""How many times as large the numbers may be without a difference; they are normal then."""


@dataclass(frozen=True)
class Trial:
    """The original, its file, beside which others are written, and what it computes; sizes by the name of dimensions.

    `left_s` tells the seconds that are left.
    """

    model: ModelProto
    file: Path
    reference: Reference
    dimensions: Mapping[str, int] = field(default_factory=dict)
    threads: int = 1
    limits: Limits = field(default_factory=Limits)
    left_s: Callable[[], float] = lambda: math.inf

    def report(self, which: Collection[Decayed]) -> EquivalenceReport | None:
        """Compare the model without the numbers of these weights; None if it differs anywhere, or the larger ones do.

        Raises `ProcessTimeout` when the time is over.
        """
        others = [multiplied(self.model, which, factor) for factor in (0.0, MARGIN)]
        files = [
            write_mapped(other, self.file.with_name(f"{name}.onnx"), like=self.file)
            for name, other in zip(("flushed", "raised"), others, strict=True)
        ]
        reports = self._isolated(_reports, self.file, files, self.reference, self.dimensions, self.threads)
        if not _all_agree(reports):
            return None
        for own, *changed in zip(_bodies(self.model), *map(_bodies, others), strict=True):
            if own != changed[0] and not _all_agree(self._isolated(_reports_alone, own, changed, self.dimensions)):
                return None
        return reports[0]

    def _isolated(self, function: Callable[..., list[EquivalenceReport]], *args: object) -> list[EquivalenceReport]:
        """The reports of another process; none where that dies, or a model does not run in it."""
        left_s = self.left_s()
        try:
            return call_isolated(replace(self.limits, longest_s=min(self.limits.longest_s, left_s)), function, *args)
        except ProcessTimeout:
            raise
        except RLFlowError:
            return []


def harmless(which: Sequence[Decayed], trial: Trial) -> tuple[tuple[Decayed, ...], EquivalenceReport | None]:
    """Return the weights whose subnormal numbers no output depends on, and the report on the model without these.

    Raises `ProcessTimeout` when the time is over.
    """
    left = tuple(which)
    while left:
        report = trial.report(left)
        if report is not None:
            return left, report
        wrong = smallest_failing(left, lambda part: trial.report(part) is None)
        left = tuple(each for each in left if each not in wrong)
    return (), None


def error_of(report: EquivalenceReport) -> float:
    """Return the largest relative error as written: as deployed, fusions round in ways of their own."""
    return report.by_setting["as_written"].max_relative_error


def _all_agree(reports: Sequence[EquivalenceReport]) -> bool:
    return bool(reports) and all(report.equivalent and report.could_tell for report in reports)


def _reports(
    original: ModelProto | Path,
    others: Sequence[ModelProto | Path],
    reference: Reference,
    dimensions: Mapping[str, int],
    threads: int,
) -> list[EquivalenceReport]:
    return [compare(original, other, reference=reference, dimensions=dimensions, threads=threads) for other in others]


def _reports_alone(
    original: ModelProto, others: Sequence[ModelProto], dimensions: Mapping[str, int]
) -> list[EquivalenceReport]:
    """The reports on a body, of the sizes that it knows."""
    own = {name: dimensions[name] for name in symbolic_dimensions(original) if name in dimensions}
    return _reports(original, others, reference_of(original, dimensions=own), own, threads=1)


def _bodies(model: ModelProto) -> Iterator[ModelProto]:
    """The bodies of control flow, those inside others after them."""
    for subgraph in subgraphs(model):
        yield subgraph.model
        yield from _bodies(subgraph.model)
