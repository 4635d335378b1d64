"""Olive runs RLFlow as a pass by its own command, from a model to a faster one that computes the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from support.onnx_models import save

from rlflow.equivalence.compare import compare

pytest.importorskip("olive", reason="olive-ai is not installed")
pytestmark = pytest.mark.slow


def python(*arguments: str, folder: Path) -> str:
    """What Python prints; Olive reports nothing to its makers where CI is set."""
    environment = os.environ | {"CI": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    path = tmp_path / "packages.json"
    path.write_text(python("rlflow.integrations.olive", folder=tmp_path))
    return path


def test_olive_knows_its_own_passes_beside_this_one(packages: Path) -> None:
    from olive.package_config import OlivePackageConfig

    known = OlivePackageConfig.parse_file_or_obj(packages)
    assert set(known.passes) == {*OlivePackageConfig.load_default_config().passes, "rlflow"}
    assert known.import_pass_module("RLFlow").__name__ == "RLFlow"
    assert known.passes["rlflow"].supported_accelerators == {"cpu"}


def test_a_workflow_makes_a_faster_model(packages: Path, tmp_path: Path) -> None:
    """A chain of four products, which is one of a folded weight; a pass of Olive's own comes after it."""
    original = save(tmp_path / "chain.onnx", "tiny_chain")
    workflow = {
        "input_model": {"type": "ONNXModel", "model_path": str(original)},
        "passes": {
            "faster": {"type": "RLFlow", "budget_s": 30, "method": "greedy"},
            "named": {"type": "AddOliveMetadata", "graph_name": "chain"},
        },
        "output_dir": str(tmp_path / "out"),
    }
    (tmp_path / "workflow.json").write_text(json.dumps(workflow))
    python("olive", "run", "--config", "workflow.json", "--package-config", packages.name, folder=tmp_path)
    (made,) = (tmp_path / "out").rglob("*.onnx")
    assert [node.op_type for node in onnx.load(str(made)).graph.node] == ["MatMul"]
    assert onnx.load(str(made)).graph.name == "chain"
    agreement = compare(original, made, draws=2, seed=7)
    assert agreement.equivalent, agreement.reason


def test_a_composite_model_and_settings_that_cannot_be_used(tmp_path: Path) -> None:
    """Each part is a model of its own; a wrong setting is refused by Olive, a wrong value by RLFlow."""
    from olive.hardware import DEFAULT_CPU_ACCELERATOR
    from olive.model import CompositeModelHandler, ONNXModelHandler
    from olive.passes.olive_pass import create_pass_from_dict
    from pydantic import ValidationError

    from rlflow.errors import InputError
    from rlflow.integrations.olive import RLFlow

    parts = [ONNXModelHandler(str(save(tmp_path / f"{name}.onnx", name))) for name in ("mlp", "tiny_scale")]
    given = CompositeModelHandler(parts, ["first", "second"])

    def made(**settings: object) -> CompositeModelHandler:
        found = create_pass_from_dict(RLFlow, settings, disable_search=True, accelerator_spec=DEFAULT_CPU_ACCELERATOR)
        return found.run(given, str(tmp_path / "out"))

    components = dict(made(budget_s=20.0, method="greedy").get_model_components())
    assert set(components) == {"first", "second"}
    for before, after in zip(parts, components.values(), strict=True):
        assert compare(Path(before.model_path), Path(after.model_path), draws=2, seed=7).equivalent
    with pytest.raises(ValidationError, match="budget_s"):
        made(budget_s="soon")
    with pytest.raises(InputError, match="greedyy"):
        made(method="greedyy")
