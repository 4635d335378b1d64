"""The product: `rlflow.optimise`, from a model to a faster one that was checked and timed, or to the original.

In the order in which a model meets them:

- `api` puts method, library, prices and checks together;
- `specialise` says what may be assumed of the model: dimensions that its user names, a newer opset;
- `pipeline` optimises the subgraphs of If, Loop and Scan, each like a model of its own, then the model around them;
- `gate` lets nothing pass that computes something else, and calls nothing faster that is not faster beyond noise;
- `diagnose` finds the wrong step of a result that differs, and `reproducer` writes what shows it;
- `report` is what the user reads.

Importing this package loads neither numpy nor ONNX Runtime; calling `optimise` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto

    from rlflow.optimise.api import OptimiseConfig, Optimised
    from rlflow.optimiser import OnProgress


def optimise(
    model: ModelProto | Path | str,
    config: OptimiseConfig | None = None,
    *,
    output: str = "",
    on_progress: OnProgress | None = None,
) -> Optimised:
    """A model with the same interface and the same outputs within rounding that runs faster, or the original.

    The search sees the sizes that `config.shapes` names and, where the model can safely be raised to it, a newer opset.
    The result keeps its sizes open and its opset unless a rewrite needs more: then its inputs declare the sizes, at
    which alone it runs, or it has the first opset that will do, and the report says so.

    Bodies of If, Loop, Scan and SequenceMap are rewritten first, each like a model of its own, with a share of the
    budget (`rlflow.optimise.pipeline`).

    A model that cannot be judged (it does not run here, its outputs change from run to run or tell nothing, or its
    sizes are open) is returned as it is, with the reason.

    Raises `InputError` for what cannot be used (nothing is written), `EquivalenceError` naming the step, its rule and
    the values that it replaced if a result computes something else; where `output` is named, what shows the difference
    is written to the folder `<output>.reproducer`.
    """
    from rlflow.optimise.api import OptimiseConfig, optimise_model

    return optimise_model(model, config or OptimiseConfig(), output, on_progress)
