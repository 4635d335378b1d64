"""The kernels of a model as ONNX Runtime deploys it, from one of its profiles."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from rlflow.doctor.subject import Subject
from rlflow.runtime.scratch import scratch_folder
from rlflow.runtime.session import open_session, run

_KERNEL = "_kernel_time"


class KernelRun(NamedTuple):
    """An operator that ran, and the microseconds that it took."""

    operator: str
    us: int


def kernel_runs(subject: Subject, switched_off: Collection[str] = (), runs: int = 1) -> list[KernelRun]:
    """Run the model as deployed, but for some optimisers, so many times, and list what ran."""
    with scratch_folder() as folder:
        prefix = str(folder / "profile")
        session = open_session(subject.file, "deployed", switched_off=switched_off, profile_prefix=prefix)
        for _ in range(runs):
            run(session, subject.inputs)
        events = json.loads(Path(session.end_profiling()).read_text())
    return [KernelRun(e["args"]["op_name"], e["dur"]) for e in events if e["name"].endswith(_KERNEL)]
