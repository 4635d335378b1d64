"""What becomes of exported models: imported and exported, rewritten at random, optimised."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from rlflow import schemas
from rlflow.cost.pricing import PricingConfig
from rlflow.equivalence.compare import compare
from rlflow.equivalence.report import EquivalenceReport
from rlflow.equivalence.tolerance import draws_at_random
from rlflow.errors import ModelFormatError, RLFlowError
from rlflow.ir import Graph
from rlflow.ir.tensor_type import Dimension
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.optimise import optimise
from rlflow.optimise.gate import GateConfig
from rlflow.runtime.inputs import required_inputs, symbolic_dimensions
from rlflow.runtime.session import open_session, run
from rlflow.schemas.optimise import OptimiseReport
from support.conformance.backend import Walk
from support.drawn_inputs import drawn_inputs
from support.exports.exporting import Export
from support.kernels import all_close, rounding_of_export
from support.onnx_models import interface

REWRITES = 20
_DRAWS = 2
_BUDGET_S = 30.0
_HALVES = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})
_RANDOM = "it draws random numbers"
_HALF = "equal within rounding: where half precision is rounded depends on who else reads a value"
_FOLDED = "equal within rounding: what it computes of weights alone is computed once, in another order"


@dataclass
class ExportSurvival:
    """What became of the models of one kind. `differences` and `failures` have one sentence each; `exceptions` say of a
    model why it could not be judged, or not bit for bit.
    """

    models: int = 0
    refused_by_exporter: int = 0
    run_by_onnx_runtime: int = 0
    survived: int = 0
    with_matches: int = 0
    rewritten: int = 0
    rewrites: int = 0
    tried: int = 0
    optimised: int = 0
    differences: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    exceptions: dict[str, str] = field(default_factory=dict)

    @cached_property
    def walk(self) -> Walk:
        return Walk(least_rules=1)

    def take(self, export: Export) -> bool:
        """Whether the model is one that can be judged at all."""
        self.models += 1
        trial = Trial.of(export)
        if isinstance(trial, str):
            self.exceptions[export.name] = trial
            return False
        self.run_by_onnx_runtime += 1
        try:
            graph = from_onnx(trial.model)
            self.import_and_export(trial, graph)
            self._rewrite(trial, graph)
        except RLFlowError as error:
            self.differences.append(f"{export.name}: {error}")
        return True

    def import_and_export(self, trial: "Trial", graph: Graph) -> None:
        after = to_onnx(graph)
        check_model(after)
        if not _same_outside(trial.model, after):
            self.differences.append(f"{trial.name}: another interface")
        elif trial.is_random or trial.is_same(after, graph):
            self.survived += 1
        elif trial.is_half or any(node.constant and node.inputs for node in graph.nodes.values()):
            self._note(trial, trial.compared(after), "import and export")
            self.exceptions[trial.name] = _HALF if trial.is_half else _FOLDED
        else:
            self.differences.append(f"{trial.name}: other bits")
        if trial.is_random:
            self.exceptions[trial.name] = _RANDOM

    def _rewrite(self, trial: "Trial", graph: Graph) -> None:
        self.walk.rng = np.random.default_rng(0)
        self.with_matches += any(self.walk.rewriter.matches(graph).counts)
        graph, done = self.walk.on(graph, REWRITES)
        self.rewritten += done > 0
        self.rewrites += done
        if done and not trial.is_random:
            after = to_onnx(graph)
            check_model(after)
            self._note(trial, trial.compared(after), f"{done} rewrites")

    def _note(self, trial: "Trial", report: EquivalenceReport, done: str) -> None:
        if not report.equivalent:
            self.differences.append(f"{trial.name}: {report.summary} after {done}")

    def optimise(self, export: Export, prices: Path) -> None:
        """A model or a reason comes back, never anything else."""
        self.tried += 1
        try:
            found = optimise(export.model, **_settings(export, prices))
            check_model(found.model)
            schemas.validate(OptimiseReport, found.report.to_json())
            proper = found.equivalence.equivalent and found.reason and "\n" not in found.reason
            kept = _same_outside(export.model, found.model) or found.report.pinned  # and says so
            if not proper or not kept:
                self.failures.append(f"{export.name}: {found.reason}")
                return
            self.optimised += 1
        except Exception as error:  # which nobody may see
            self.failures.append(f"{export.name}: {type(error).__name__}: {error}")

    def to_json(self) -> dict[str, object]:
        """As schema `exports` describes a kind."""
        counted = {"differences": len(self.differences), "failures": len(self.failures)}
        listed = [{"model": name, "reason": reason} for name, reason in sorted(self.exceptions.items())]
        return asdict(self) | counted | {"exceptions": listed, "rules_fired": self.walk.rules_fired}


@dataclass(frozen=True)
class Trial:
    """A model that ONNX Runtime runs, with what it is fed and what comes out."""

    name: str
    model: onnx.ModelProto
    sizes: dict[str, int]
    feeds: Sequence[dict[str, np.ndarray]]
    expected: Sequence[dict[str, np.ndarray]]

    @classmethod
    def of(cls, export: Export) -> "Trial | str":
        """Why ONNX Runtime does not run it, or onnx does not accept it, in one sentence."""
        sizes = _sizes(export)
        try:
            session = open_session(export.model, "as_written")
            feeds = drawn_inputs(export.model, draws=_DRAWS, dimensions=sizes)
            expected = [run(session, each) for each in feeds]
            from_onnx(export.model)
        except ModelFormatError as error:
            return f"onnx's checker: {error}"
        except RLFlowError as error:
            return str(error)
        return cls(export.name, export.model, sizes, feeds, expected)

    @property
    def is_random(self) -> bool:
        return draws_at_random(self.model)

    @property
    def is_half(self) -> bool:
        return any(tensor.data_type in _HALVES for tensor in self.model.graph.initializer)

    def is_same(self, after: onnx.ModelProto, graph: Graph) -> bool:
        """Whether what `graph` was exported to computes the same, bit for bit but for sums that were folded."""
        session, rounding = open_session(after, "as_written"), rounding_of_export(graph, self.model)
        pairs = zip(self.feeds, self.expected, strict=True)
        return all(all_close(out, run(session, feeds), rounding) for feeds, out in pairs)

    def untrue_types(self, graph: Graph) -> list[str]:
        """Values that have another shape, as the model runs, than the graph says: another number, or for a symbol not
        the number that it has elsewhere. Outputs are left out, of which exporters declare what they like.
        """
        kinds = {n: k for node in graph.nodes.values() for n, k in zip(node.names, node.types, strict=True) if n and k}
        computed = {name for node in self.model.graph.node for name in node.output}
        told = sorted(kinds.keys() & computed - {output.name for output in self.model.graph.output})
        exposed = onnx.ModelProto()
        exposed.CopyFrom(self.model)
        exposed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in told)
        values = run(open_session(exposed, "as_written"), self.feeds[0])
        known: dict[object, int] = dict(self.sizes)
        return [f"{name}: {kinds[name]}" for name in told if not _is_told(values[name], kinds[name].shape, known)]

    def compared(self, after: onnx.ModelProto) -> EquivalenceReport:
        return compare(self.model, after, draws=_DRAWS, dimensions=self.sizes)


def _is_told(value: object, shape: Sequence[Dimension] | None, known: dict[object, int]) -> bool:
    """Whether an array has this shape; `known` gathers the numbers of symbols."""
    if shape is None or not isinstance(value, np.ndarray):
        return True
    pairs = zip(shape, value.shape, strict=False)
    return len(shape) == value.ndim and all(
        size == (d if isinstance(d, int) else size if d is None else known.setdefault(d, size)) for d, size in pairs
    )


def _sizes(export: Export) -> dict[str, int]:
    known = set(symbolic_dimensions(export.model))
    return {name: size for name, size in export.sizes.items() if name in known}


def _same_outside(before: onnx.ModelProto, after: onnx.ModelProto) -> bool:
    """The same inputs and outputs, with their documentation, and the same metadata."""
    return interface(before) == interface(after) and list(before.metadata_props) == list(after.metadata_props)


def _settings(export: Export, prices: Path) -> dict[str, Any]:
    sizes = _sizes(export)
    shapes = {
        value.name: tuple(d.dim_value or sizes[d.dim_param] for d in value.type.tensor_type.shape.dim)
        for value in required_inputs(export.model)
        if any(d.dim_param for d in value.type.tensor_type.shape.dim)
    }
    return dict(
        method="greedy",
        budget_s=_BUDGET_S,
        setting="as_written",
        shapes=shapes,
        prices=prices,
        pricing=PricingConfig(sessions=2, turns=1, slow_pace=math.inf),
        gate=GateConfig(draws=_DRAWS, rounds=2, runs_per_round=1),
    )
