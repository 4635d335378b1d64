"""Values between nodes that are subnormal on drawn inputs, for which ONNX Runtime has an option with a trap.

The option works in the thread that opens a session if that is the first one of the process, and in threads that this
one starts afterwards. A later session sets it for its own workers alone (onnxruntime#7448).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import ValueInfoProto

from rlflow.doctor.finding import Finding, counted
from rlflow.doctor.subject import NotLookedFor, Subject
from rlflow.equivalence.drawing import Inputs
from rlflow.errors import RLFlowError
from rlflow.optimise.gate import limits_until
from rlflow.optimise.reported.latency import LatencyChange
from rlflow.optimise.timing import latency_change
from rlflow.runtime.isolation import ProcessTimeout, call_isolated
from rlflow.runtime.session import open_session, run, structure_of
from rlflow.runtime.timing.latency import Round
from rlflow.subnormal.numbers import subnormal

OPTION = "session.set_denormal_as_zero"
_LEAST_SHARE = 1e-3
"""The share of a value's numbers from which on it is reported."""
_ROUNDS, _RUNS = 2, 7
_NAMED = 3


def subnormal_activations(subject: Subject) -> Iterator[Finding]:
    """Run the model with every value an output, and time it with the option, each in a process of its own."""
    limits = limits_until(subject.config, subject.deadline)
    file = _with_every_value(subject.file)
    try:
        shares = call_isolated(limits, _shares, file, subject.reference.inputs, subject.config.threads)
    except ProcessTimeout:
        raise
    except RLFlowError as error:
        raise NotLookedFor(f"with every value an output it does not run: {error}") from None
    if not shares:
        return
    largest = sorted(shares, key=lambda name: -shares[name])
    named = ", ".join(f"{name} ({100 * shares[name]:.0f} %)" for name in largest[:_NAMED])
    yield Finding(
        found=f"On drawn inputs {counted(len(shares), 'value')} between nodes hold subnormal numbers: {named}",
        advice=f'Add the session option "{OPTION}" with the value "1" to every session, the very first of the process '
        "among them: that one alone sets it for the thread that opens it, later ones for their own workers; and numpy "
        "computes with it there, too.",
        effect=_effect(subject),
    )


def _with_every_value(file: Path) -> Path:
    """Write a model beside a file of which every value of the main graph is an output as well."""
    structure = structure_of(file)
    known = {output.name for output in structure.graph.output}
    values = (name for node in structure.graph.node for name in node.output if name and name not in known)
    structure.graph.output.extend(ValueInfoProto(name=name) for name in values)
    path = file.with_name("every_value.onnx")
    onnx.save(structure, path)
    return path


def _shares(file: Path, inputs: Sequence[Inputs], threads: int) -> dict[str, float]:
    """The largest share of subnormal numbers of each value that has some, as written."""
    session, shares = open_session(file, "as_written", threads), dict[str, float]()
    for each in inputs:
        for name, value in run(session, each).items():
            if isinstance(value, np.ndarray) and value.size:
                shares[name] = max(shares.get(name, 0.0), float(subnormal(value).mean()))
    return {name: share for name, share in shares.items() if share >= _LEAST_SHARE}


def _effect(subject: Subject) -> LatencyChange | None:
    """Time the model without and with the option, which no process loses again; None if there is no time for that."""
    entries: dict[str, Mapping[str, str]] = {"original": {}, "candidate": {OPTION: "1"}}
    entries |= {f"{name} again": entry for name, entry in entries.items()}
    rng, rounds = np.random.default_rng(subject.config.seed), list[Round]()
    with suppress(ProcessTimeout):
        while len(rounds) < _ROUNDS:
            order = rng.permutation(list(entries)).tolist()
            rounds.append(Round({name: _run_ms(subject, entries[name]) for name in order}))
    return latency_change(rounds, subject.config.belief) if rounds else None


def _run_ms(subject: Subject, entries: Mapping[str, str]) -> float:
    limits = replace(limits_until(subject.config, subject.deadline), workers=None)  # no session goes before the first
    return call_isolated(limits, _first_session_ms, subject.file, subject.inputs, dict(entries))


def _first_session_ms(file: Path, inputs: Inputs, entries: Mapping[str, str]) -> float:
    """The shortest of a few runs of the first session of a process."""
    session = open_session(file, "deployed", entries=entries)
    times = []
    for _ in range(_RUNS):
        begun = time.perf_counter()
        session.run(None, inputs)
        times.append(time.perf_counter() - begun)
    return 1e3 * min(times)
