"""Take random walks through the passes of each compiler: are outputs right, do processes last, does memory grow?

    python benchmarks/pass_walks.py [--steps 10000] [--backends onnx xla]       to data/results/pass_walks.json

Rows of schemas/bench.schema.json: steps a second, beside those that the compiler itself answered; the share that the
cache answered; wrong outputs at the ends of walks; processes that were lost; and the memory of the compiler's process
in the last tenth of the walks over that in the second one. Walks go through small programs of all families in turn.
Wants a quiet machine for the steps a second, and for these alone.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from studies.measurements import Bench
from studies.published import publish

from rlflow.cli.progress import progress_bar
from rlflow.method import OnProgress
from rlflow.passes.backend import PassError
from rlflow.passes.transitions import Transitions
from rlflow.passes.worker import WorkerBackend

RESULT = Path("data/results/pass_walks.json")
BACKENDS = ("onnx", "onnx-contrib", "xla", "xla-onnx")
WALK_STEPS = 20
SOURCES_PER_FAMILY = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    for name in arguments.backends:
        with progress_bar(f"random passes of {name}") as on_progress:
            found += rows(name, arguments.steps, on_progress)
    publish(RESULT, Bench, found, __file__)


def rows(name: str, steps: int, on_progress: OnProgress) -> Iterator[dict[str, Any]]:
    """Walk, and tell what became of it."""
    draw = np.random.default_rng(0)
    wrong = failed = walks = 0
    stepping_s, memory_mb = 0.0, list[float]()
    with WorkerBackend(name) as backend:
        transitions = Transitions(backend)
        sources, passes = sources_of(backend), backend.catalogue().passes
        while (done := transitions.hits + transitions.misses) < steps:
            on_progress(done / steps, f"{done} of {steps}")
            start = transitions.start(sources[walks % len(sources)])
            facts, walks = start, walks + 1
            for number in draw.integers(len(passes), size=WALK_STEPS):
                began = time.perf_counter()
                outcome = transitions.step(facts.key, passes[number])
                stepping_s += time.perf_counter() - began
                facts, failed = outcome.facts, failed + bool(outcome.error)
            wrong += differs(transitions, start.key, facts.key, seed=walks)
            if backend.process_id is not None:  # a process that was lost in the check is started by the next step
                memory_mb.append(psutil.Process(backend.process_id).memory_info().rss / 2**20)
        tenth = max(len(memory_mb) // 10, 1)
        grown = float(np.median(memory_mb[-tenth:]) / np.median(memory_mb[tenth : 2 * tenth] or memory_mb))
        by_compiler = transitions.misses / stepping_s
        yield row(f"{name}: steps", done / stepping_s, "steps/s", "by the compiler itself", by_compiler, done)
        share = transitions.hits / done
        yield row(f"{name}: share of steps that the cache answers", share, "share", "without the cache", 0.0, done)
        yield row(f"{name}: wrong outputs", wrong, "walks", "promised", 0.0, walks)
        yield row(f"{name}: passes that failed", failed, "steps", "trivial", None, done)
        yield row(f"{name}: lost processes", backend.deaths, "processes", "promised", 0.0, done)
        yield row(
            f"{name}: memory at the end over that of the second tenth", grown, "ratio", "promised at most", 1.1, walks
        )


def differs(transitions: Transitions, original: str, program: str, *, seed: int) -> bool:
    """True if the program computes something else than the original, or cannot be compared."""
    try:
        return bool(transitions.backend.check(transitions.payload(original), transitions.payload(program), seed=seed))
    except PassError:
        return True


def sources_of(backend: WorkerBackend) -> list[str]:
    """The first programs of each family."""
    taken: dict[str, list[str]] = {}
    for source in backend.sources():
        names = taken.setdefault(source.family, [])
        if len(names) < SOURCES_PER_FAMILY:
            names.append(source.name)
    return [name for names in taken.values() for name in names]


def row(name: str, value: float, unit: str, baseline: str, baseline_value: float | None, cases: int) -> dict[str, Any]:
    return dict(name=name, value=value, unit=unit, baseline=baseline, baseline_value=baseline_value, cases=cases)


if __name__ == "__main__":
    main()
