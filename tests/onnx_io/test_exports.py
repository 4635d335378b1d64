"""Exports of architectures that the zoo has not: each survives, is rewritten and optimised, or says why not.

With every run of the tests go a few of each kind; `make test MARK=fuzz ONLY=tests/onnx_io` takes all of them, to
data/results/exports.json.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
import transformers
from studies.measurements import Exports
from studies.published import publish
from support.exports import classics, converted, from_transformers, handmade
from support.exports.architecture import Architecture
from support.exports.exporting import EXPORTERS, NEW_AND_OPEN, OLD, OPEN, Export, Exporter, RefusedError
from support.exports.survival import ExportSurvival, Trial

from rlflow.ir import Graph
from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io import from_onnx
from rlflow.rules.library import load

ARCHITECTURES = {a.name: a for a in (*classics.ARCHITECTURES, *from_transformers.ARCHITECTURES)}
TRIED = 5
"""One model in so many is optimised: most of the time goes into pricing."""
SLICE: Sequence[tuple[str, Exporter]] = (
    ("unet", OLD[2]),
    ("lstm", OPEN),
    ("wavenet", OPEN),
    ("deeplab", OPEN),
    ("shufflenet", NEW_AND_OPEN),
    ("detection_head", OLD[0]),
    ("branching", OLD[4]),
    ("mlp_mixer", OLD[1]),
    ("bert", OPEN),
    ("llama", OPEN),
    ("clip", OLD[1]),
    ("t5", OLD[5]),
    ("swin", OLD[5]),
    ("resnet", OPEN),
    ("mamba", OLD[6]),
)
PLACES_AT_LEAST = {"bert": 90, "llama": 70, "wavenet": 7, "deeplab": 5, "mlp_mixer": 70, "swin": 100, "resnet": 12}
"""For rules, of which there are none around what the importer does not understand."""


@cache
def exported(name: str, exporter: Exporter) -> Export:
    return exporter(ARCHITECTURES[name])


def places(tally: ExportSurvival, graph: Graph) -> int:
    return sum(tally.walk.rewriter.matches(graph).counts)


@pytest.mark.parametrize(("name", "exporter"), SLICE, ids=lambda part: getattr(part, "name", part))
def test_an_export_survives(name: str, exporter: Exporter) -> None:
    tally = ExportSurvival()
    assert tally.take(exported(name, exporter))
    assert tally.differences == []
    assert tally.survived == 1
    assert tally.rewritten == 1
    assert places(tally, from_onnx(exported(name, exporter).model)) >= PLACES_AT_LEAST.get(name, 1)


@pytest.mark.parametrize(("name", "exporter"), SLICE, ids=lambda part: getattr(part, "name", part))
def test_what_the_graph_says_of_shapes_is_so(name: str, exporter: Exporter) -> None:
    """Sizes differ, so that one symbol for two of them shows."""
    export = exported(name, exporter)
    (trial,) = (t for t in [Trial.of(export)] if not isinstance(t, str))
    graph = from_onnx(export.model)
    assert trial.untrue_types(graph) == []
    first = graph.nodes[graph.order[0]]
    assert first.types[0] is not None
    wrong = replace(first, types=(TensorType(first.types[0].dtype, (*first.types[0].shape, 1)),))
    assert trial.untrue_types(replace(graph, nodes={**graph.nodes, graph.order[0]: wrong})) != []


def test_handmade_models_survive() -> None:
    tally = taken(handmade.exports())
    assert tally.differences == []
    assert tally.exceptions == {}
    assert tally.survived == tally.models >= 26
    assert tally.rewritten >= 15


@pytest.mark.parametrize(
    ("conversion", "name", "fired"),
    [("qdq", "unet", set()), ("dynamic", "lstm", {"float32"}), ("half", "bert", {"float16", "int64"})],
)
def test_a_converted_export_survives(conversion: str, name: str, fired: set[str]) -> None:
    """Rules fire on elements of these types, and on no others."""
    tally = ExportSurvival()
    assert tally.take(converted.converted(conversion, exported(name, OPEN)))
    assert tally.differences == []
    assert {*tally.walk.rules_fired} == fired


@pytest.mark.slow
@pytest.mark.parametrize(("name", "exporter"), SLICE[:4], ids=lambda part: getattr(part, "name", part))
def test_an_export_is_optimised(name: str, exporter: Exporter, tmp_path: Path) -> None:
    tally = ExportSurvival()
    tally.optimise(exported(name, exporter), tmp_path / "prices.json")
    assert tally.failures == []
    assert tally.optimised == 1


def test_a_difference_is_found() -> None:
    """So the tests above can fail: other numbers, another interface, a model that does not run."""
    export = exported("lstm", OPEN)
    (trial,) = (t for t in [Trial.of(export)] if not isinstance(t, str))
    tally = ExportSurvival()
    other = onnx.ModelProto()
    other.CopyFrom(export.model)
    other.graph.initializer[0].raw_data = bytes(len(other.graph.initializer[0].raw_data))
    tally.import_and_export(trial, from_onnx(other))
    assert len(tally.differences) == 1
    other.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "other"
    tally.import_and_export(trial, from_onnx(other))
    assert tally.differences[1].endswith("another interface")
    other.graph.node[0].op_type = "Unheard"
    assert not tally.take(Export("unheard", other, {}))
    assert "Unheard" in tally.exceptions["unheard"]


@pytest.mark.fuzz
def test_exports(repository: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    tallies = {exporter.name: of_exporter(exporter, prices) for exporter in EXPORTERS}
    tallies["handmade"] = taken(handmade.exports(), prices)
    for kind in converted.CONVERSIONS:
        names = {name for names in converted.CONVERSIONS[kind].values() for name in names}
        tallies[kind] = taken(converted.exports(kind, {name: exported(name, OPEN) for name in names}), prices)
    publish(repository / "data/results/exports.json", Exports, document(tallies), __file__)
    assert [difference for tally in tallies.values() for difference in tally.differences] == []
    assert [failure for tally in tallies.values() for failure in tally.failures] == []
    assert all(tally.models <= tally.survived + len(tally.exceptions) for tally in tallies.values())


def of_exporter(exporter: Exporter, prices: Path) -> ExportSurvival:
    """All small architectures, and of the transformers package every one with open sizes, and each one once with one
    of the others.
    """
    others = [e for e in EXPORTERS if e != OPEN]
    named = [
        *classics.ARCHITECTURES,
        *(
            architecture
            for place, architecture in enumerate(from_transformers.ARCHITECTURES)
            if exporter in (OPEN, others[place % len(others)])
        ),
    ]
    tally = ExportSurvival()
    return taken(_exported(named, exporter, tally), prices, tally)


def _exported(named: Iterable[Architecture], exporter: Exporter, tally: ExportSurvival) -> Iterable[Export]:
    for architecture in named:
        try:
            yield exporter(architecture)
        except RefusedError:
            tally.refused_by_exporter += 1


def taken(exports: Iterable[Export], prices: Path | None = None, tally: ExportSurvival | None = None) -> ExportSurvival:
    """What becomes of all of these; with a price list, one in `TRIED` is optimised."""
    tally = tally or ExportSurvival()
    for number, export in enumerate(exports):
        if tally.take(export) and prices is not None and number % TRIED == 0:
            tally.optimise(export, prices)
    return tally


def document(tallies: dict[str, ExportSurvival]) -> dict[str, Any]:
    """As schema `exports` describes it."""
    return {
        "library": load().hash,
        "onnxruntime": onnxruntime.__version__,
        "torch": torch.__version__.partition("+")[0],
        "transformers": transformers.__version__,
        "kinds": {kind: tally.to_json() for kind, tally in tallies.items()},
    }
