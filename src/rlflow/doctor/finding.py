"""One finding about a model: what is there, what it costs on this machine, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto

from rlflow.optimise.reported.latency import LatencyChange


@dataclass(frozen=True)
class Finding:
    """A sentence on what was `found` and one of `advice`, which is empty if nothing is to be done.

    `effect` is the latency of the model as it is and of what is advised; `bytes_saved` what the file has less then.
    `remedy` is the model without what was found, where that computes the same.
    """

    found: str
    advice: str = ""
    effect: LatencyChange | None = None
    bytes_saved: int = 0
    remedy: ModelProto | None = None


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as in "3 weights"."""
    return f"{number} {noun if number == 1 else f'{noun}s'}"
