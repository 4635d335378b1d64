"""The time that programs take, compiled by XLA as usual, each against the others.

As in `rlflow.runtime.timing.latency`, only times of one round are compared, and a round compiles every program anew, in
an order that is drawn: a program that is compiled twice runs at two speeds. A round in which the machine was slow is
taken again. XLA runs a program on threads of its own,
so that the clock is the one on the wall.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from jaxlib import _jax

from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.passes.xla.compiler import compiled, on_device
from rlflow.passes.xla.program_inputs import draw_program_inputs
from rlflow.runtime.timing.clock import clock_ns, shortest_ns
from rlflow.runtime.timing.latency import Take, undisturbed
from rlflow.runtime.timing.pace import pace_ms

_THREADS = 2  # or more: what matters to the clock is that it is not one


def times_ms(graph: Graph, programs: Sequence[bytes], *, rounds: int, runs: int, seed: int) -> dict[int, list[float]]:
    """Return the milliseconds of each round by the program's place, on inputs of `graph` drawn from `seed`.

    Raises `InputError` when there is nothing to time.
    """
    if not programs or rounds < 1 or runs < 1:
        raise InputError(f"nothing to time: {len(programs)} programs, {rounds} rounds, {runs} runs")
    rng = np.random.default_rng(seed)
    inputs = on_device(draw_program_inputs(graph, seed))

    def takes() -> Iterator[Take]:
        while True:
            taken, paces_ms = {}, [pace_ms(_THREADS)]
            for place in rng.permutation(len(programs)).tolist():
                taken[str(place)] = _shortest_run_ms(compiled(programs[place]), inputs, runs)
                paces_ms.append(pace_ms(_THREADS))
            yield Take(taken, tuple(paces_ms))

    done = list(islice(undisturbed(takes()), rounds))
    return {place: [each.times_ms[str(place)] for each in done] for place in range(len(programs))}


def _shortest_run_ms(executable: _jax.LoadedExecutable, inputs: list[_jax.Array], runs: int) -> float:
    _run_once(executable, inputs)  # which touches its memory for the first time
    times_ns = []
    for _ in range(runs):
        start = clock_ns(_THREADS)
        _run_once(executable, inputs)
        times_ns.append(clock_ns(_THREADS) - start)
    return shortest_ns(times_ns) / 1e6


def _run_once(executable: _jax.LoadedExecutable, inputs: list[_jax.Array]) -> None:
    for output in executable.execute(inputs):
        output.block_until_ready()
