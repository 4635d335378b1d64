"""`rlflow.optimise` as a pass of Olive, `RLFlow`, for models of ONNX on a CPU.

    python -m rlflow.integrations.olive > packages.json             # Olive's passes, and this one
    olive run --config workflow.json --package-config packages.json

A workflow names the pass as any other, `{"passes": {"faster": {"type": "RLFlow", "budget_s": 60}}}`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import rlflow
from rlflow.extras import needs
from rlflow.optimise import DEFAULT_BUDGET_S, DEFAULT_METHOD

with needs("olive", "rlflow.integrations.olive"):
    from olive.hardware import AcceleratorSpec
    from olive.model import ONNXModelHandler
    from olive.model.utils import resolve_onnx_path
    from olive.package_config import OlivePackageConfig
    from olive.passes import Pass
    from olive.passes.pass_config import PassConfigParam


class RLFlow(Pass):
    """A faster model that computes the same, or the model as it is. A composite model is optimised part by part."""

    @classmethod
    def _default_config(cls, accelerator_spec: AcceleratorSpec) -> dict[str, PassConfigParam]:
        return {
            "budget_s": PassConfigParam(
                type_=float, default_value=DEFAULT_BUDGET_S, description="Wall time of search, checks and timing."
            ),
            "method": PassConfigParam(type_=str, default_value=DEFAULT_METHOD, description="A method of RLFlow."),
            "shapes": PassConfigParam(
                type_=dict[str, list[int]],
                default_value={},
                description="Shapes of inputs with dynamic dimensions, by name.",
            ),
        }

    def _run_for_config(self, model: ONNXModelHandler, config: Any, output_model_path: str) -> ONNXModelHandler:
        optimised = rlflow.optimise(
            model.model_path, budget_s=config.budget_s, method=config.method, shapes=config.shapes
        )
        path = Path(resolve_onnx_path(output_model_path))
        optimised.save(path)
        return ONNXModelHandler(str(path.parent), onnx_file_name=path.name)


def package_config() -> dict[str, Any]:
    """Return a package configuration of Olive: the passes of the Olive that is installed, and this one."""
    config: dict[str, Any] = json.loads(Path(OlivePackageConfig.get_default_config_path()).read_text())
    config["passes"][RLFlow.__name__] = {
        "module_path": f"rlflow.integrations.olive.{RLFlow.__name__}",
        "supported_providers": ["CPUExecutionProvider"],
        "supported_accelerators": ["cpu"],
        "supported_precisions": ["*"],
    }
    return config


if __name__ == "__main__":
    json.dump(package_config(), sys.stdout, indent=1)
