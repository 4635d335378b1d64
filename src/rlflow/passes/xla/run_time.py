"""The time that programs take, compiled by XLA as usual, each against the others.

As in `rlflow.runtime.timing.latency`, only times of one round are compared, and a round compiles every program anew, in
an order that is drawn: a program that is compiled twice runs at two speeds. XLA runs a program on threads of its own,
so that the clock is the one on the wall.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from jaxlib import _jax

from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.passes.xla.compiler import compiled, on_device
from rlflow.passes.xla.program_inputs import draw_program_inputs
from rlflow.runtime.timing.clock import shortest_ns


def times_ms(graph: Graph, programs: Sequence[bytes], *, rounds: int, runs: int, seed: int) -> dict[int, list[float]]:
    """Return the milliseconds of each round by the program's place, on inputs of `graph` drawn from `seed`.

    Raises `InputError` when there is nothing to time.
    """
    if not programs or rounds < 1 or runs < 1:
        raise InputError(f"nothing to time: {len(programs)} programs, {rounds} rounds, {runs} runs")
    rng = np.random.default_rng(seed)
    inputs = on_device(draw_program_inputs(graph, seed))
    times: dict[int, list[float]] = {place: [] for place in range(len(programs))}
    for _ in range(rounds):
        for place in rng.permutation(len(programs)).tolist():
            times[place].append(_shortest_run_ms(compiled(programs[place]), inputs, runs))
    return times


def _shortest_run_ms(executable: _jax.LoadedExecutable, inputs: list[_jax.Array], runs: int) -> float:
    _run_once(executable, inputs)  # which touches its memory for the first time
    times_ns = []
    for _ in range(runs):
        start = time.perf_counter_ns()
        _run_once(executable, inputs)
        times_ns.append(time.perf_counter_ns() - start)
    return shortest_ns(times_ns) / 1e6


def _run_once(executable: _jax.LoadedExecutable, inputs: list[_jax.Array]) -> None:
    for output in executable.execute(inputs):
        output.block_until_ready()
