"""Take random walks through the passes of each compiler: are outputs right, do processes last, does memory grow?

    python benchmarks/pass_walks.py [--steps 10000] [--backends onnx xla]

Prints JSON rows of schemas/bench.schema.json: steps a second with and without what the cache answers, its share, wrong
outputs at the ends of walks, processes that were lost, and the memory of the compiler's process after the last tenth of
the walk over that after the first. Walks go through small programs of all families in turn.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil

from rlflow.passes.transitions import Transitions
from rlflow.passes.worker import WorkerBackend

WALK_STEPS = 20
SOURCES_PER_FAMILY = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--backends", nargs="+", default=["onnx", "xla"])
    arguments = parser.parse_args()
    json.dump([row for name in arguments.backends for row in rows(name, arguments.steps)], sys.stdout, indent=1)
    sys.stdout.write("\n")


def rows(name: str, steps: int) -> Iterator[dict[str, Any]]:
    """Walk, and tell what became of it."""
    draw = np.random.default_rng(0)
    wrong = failed = walks = 0
    stepping_s, memory_mb = 0.0, list[float]()
    with WorkerBackend(name) as backend:
        transitions = Transitions(backend)
        sources, passes = sources_of(backend), backend.catalogue().passes
        while transitions.hits + transitions.misses < steps:
            start = transitions.start(sources[walks % len(sources)])
            facts, walks = start, walks + 1
            for number in draw.integers(len(passes), size=WALK_STEPS):
                began = time.perf_counter()
                outcome = transitions.step(facts.key, passes[number])
                stepping_s += time.perf_counter() - began
                facts, failed = outcome.facts, failed + bool(outcome.error)
            original, program = transitions.payload(start.key), transitions.payload(facts.key)
            wrong += bool(backend.check(original, program, seed=walks))
            memory_mb.append(psutil.Process(backend.process_id).memory_info().rss / 2**20)
        done, share = transitions.hits + transitions.misses, transitions.hits / (transitions.hits + transitions.misses)
        tenth = max(len(memory_mb) // 10, 1)
        grown = float(np.median(memory_mb[-tenth:]) / np.median(memory_mb[tenth : 2 * tenth] or memory_mb))
        yield row(
            f"{name}: steps", done / stepping_s, "steps/s", "without the cache", transitions.misses / stepping_s, done
        )
        yield row(f"{name}: share of steps that the cache answers", share, "share", "without the cache", 0.0, done)
        yield row(f"{name}: wrong outputs", wrong, "walks", "promised", 0.0, walks)
        yield row(f"{name}: passes that failed", failed, "steps", "trivial", None, done)
        yield row(f"{name}: lost processes", backend.deaths, "processes", "promised", 0.0, done)
        yield row(
            f"{name}: memory at the end over that of the second tenth", grown, "ratio", "promised at most", 1.1, walks
        )


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
