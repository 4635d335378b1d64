"""The kernels that run of a model as deployed, from ONNX Runtime's profiles, and the optimisers that choose them.

[each.operator for each in kernel_runs(file, inputs)]       ["FusedGemm"]
list(at_work(file, inputs))                                 ["MatMulAddFusion", "GemmActivationFusion"]
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rlflow.runtime.scratch import scratch_folder
from rlflow.runtime.session import open_session, run
from rlflow.runtime.transformers import OPTIMISERS

_KERNEL = "_kernel_time"


class KernelRun(NamedTuple):
    """An operator that ran, and the microseconds that it took."""

    operator: str
    us: int


def kernel_runs(
    file: Path, inputs: Mapping[str, np.ndarray], switched_off: Collection[str] = (), runs: int = 1
) -> list[KernelRun]:
    """Run a model as deployed, but for some optimisers, so many times, and list what ran."""
    with scratch_folder() as folder:
        prefix = str(folder / "profile")
        session = open_session(file, "deployed", switched_off=switched_off, profile_prefix=prefix)
        for _ in range(runs):
            run(session, inputs)
        events = json.loads(Path(session.end_profiling()).read_text())
    return [KernelRun(e["args"]["op_name"], e["dur"]) for e in events if e["name"].endswith(_KERNEL)]


def at_work(file: Path, inputs: Mapping[str, np.ndarray], is_over: Callable[[], bool] = lambda: False) -> Iterator[str]:
    """Yield the optimisers of ONNX Runtime without which other kernels run, until the time `is_over`."""
    usual = operators(file, inputs)

    def among(names: Sequence[str]) -> Iterator[str]:
        """Groups that change nothing are left out at once."""
        if not names or is_over() or operators(file, inputs, names) == usual:
            return
        if len(names) == 1:
            yield names[0]
            return
        half = len(names) // 2
        yield from among(names[:half])
        yield from among(names[half:])

    yield from among(OPTIMISERS)


def operators(file: Path, inputs: Mapping[str, np.ndarray], switched_off: Collection[str] = ()) -> Counter[str]:
    """The operators of a run, by how often each ran."""
    return Counter(each.operator for each in kernel_runs(file, inputs, switched_off))
