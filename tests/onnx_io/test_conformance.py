"""All of onnx's models, ten thousand damaged ones, and ten thousand damaged files of all kinds that commands read.

`make test MARK=fuzz ONLY=tests/onnx_io` writes data/results/conformance.json.
"""

from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
from studies.measurements import Conformance
from studies.published import publish
from support.conformance.backend import (
    KINDS,
    Survival,
    load_tests,
    survival_of_light_models,
    survival_of_light_models_with_drawn_weights,
    survival_of_tests,
)
from support.conformance.commands import Answers
from support.conformance.damage import Toll

from rlflow.rules.library import load

DAMAGED_FILES = 10_000


@pytest.mark.fuzz
def test_conformance(repository: Path) -> None:
    tallies = {kind: survival_of_tests(load_tests(kind)) for kind in KINDS}
    tallies["light"] = survival_of_light_models()
    tallies["light_with_drawn_weights"] = survival_of_light_models_with_drawn_weights()
    toll, answers = Toll(), Answers()
    toll.take(range(DAMAGED_FILES))
    answers.take(range(DAMAGED_FILES))
    publish(repository / "data/results/conformance.json", Conformance, document(tallies, toll, answers), __file__)
    assert [difference for tally in tallies.values() for difference in tally.differences] == []
    assert all(tally.survived == tally.run_by_onnx_runtime for tally in tallies.values())
    assert toll.failures == []
    assert answers.failures == []


def document(tallies: dict[str, Survival], toll: Toll, answers: Answers) -> dict[str, Any]:
    """As schema `conformance` describes it."""
    return {
        "library": load().hash,
        "onnx": onnx.__version__,
        "onnxruntime": onnxruntime.__version__,
        "kinds": {kind: tally.to_json() for kind, tally in tallies.items()},
        "damaged_files": toll.to_json(),
        "commands": answers.to_json(),
    }
