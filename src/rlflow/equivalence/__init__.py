"""Are two models equal? `rlflow.equivalence` runs both on the same drawn inputs and compares what they compute.

- `isolated` runs the comparison in a process of its own, which a model may crash;
- `drawing` draws inputs, and `reference` is what the original computes of them, as written and as deployed; `survey`
  counts the mutants of it, made by `mutation`, that these inputs tell apart;
- `compare` compares another model with that, and `report` is the verdict and what speaks for it;
- `fusions` finds the optimisers of ONNX Runtime that make a model compute something else as deployed;
- `interface` checks that both take and give the same tensors;
- `difference` measures how outputs differ, and `tolerance` how far they may, from float type and depth;
- `float64_check` decides where float32 is inconclusive, on models that `float64` has widened.

Inputs are drawn by `rlflow.runtime.revealing_inputs`, such as the operators that read them are made for, and where
these begin to compute something else.
Importing this package loads neither numpy nor ONNX Runtime; calling `equivalence` does. `rlflow.equivalence` is the
function, which hides the package of its name: import modules as in `from rlflow.equivalence import compare`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from onnx import ModelProto

    from rlflow.equivalence.report import EquivalenceReport
    from rlflow.runtime.isolation import Limits
    from rlflow.runtime.session import Setting


def equivalence(
    original: ModelProto | Path | str,
    candidate: ModelProto | Path | str,
    *,
    draws: int = 3,
    seed: int = 0,
    setting: Setting | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dimensions: Mapping[str, int] | None = None,
    inputs: Sequence[Mapping[str, np.ndarray]] | None = None,
    limits: Limits | None = None,
    mutants: int = 64,
    finite: bool = False,
) -> EquivalenceReport:
    """Report if `candidate` computes what `original` computes, within rounding, and with what evidence.

    Both run on `draws` inputs of the kind that the original is for, drawn from `seed`, or on `inputs` if these are
    given. Dynamic dimensions get small sizes, or those of `shapes` (whole shapes by the names of inputs) and
    `dimensions` (sizes by the names of dimensions). The tolerance follows from the original's float type and depth;
    where float32 is inconclusive, float64 decides. Both models run in another process within `limits`, in `setting` or,
    without one, both as written and as deployed: what the original computes as written is the yardstick for both.

    `mutants` of the original, with one fault each, are tried to see if these inputs tell them from it, and further ones
    are drawn where they do not. Models must agree on NaN and infinities among their inputs, too, unless `finite`.

    A candidate that does not run is not equivalent. Raises `InputError` for a file that is no ONNX model, for sizes
    that do not fit, and for an original that does not run here or draws random numbers.
    """
    from rlflow.equivalence.isolated import compare_isolated

    return compare_isolated(
        original,
        candidate,
        draws=draws,
        seed=seed,
        setting=setting,
        shapes=shapes or {},
        dimensions=dimensions or {},
        inputs=inputs,
        limits=limits,
        mutants=mutants,
        finite=finite,
    )
