"""A quantised model that is slower than the same network in float32, for want of instructions for 8 bits."""

from __future__ import annotations

from collections.abc import Iterator

from rlflow.doctor.finding import Finding
from rlflow.doctor.subject import NotLookedFor, Subject
from rlflow.onnx_io.dequantised import dequantised
from rlflow.onnx_io.external_data import outside_bytes, write_mapped


def quantisation(subject: Subject) -> Iterator[Finding]:
    """Time the model beside the one without its pairs of QuantizeLinear and DequantizeLinear."""
    if outside_bytes(subject.model):
        raise NotLookedFor("its weights do not fit into memory at once")
    floats = dequantised(subject.model)
    if floats is None:
        return
    if subject.judgement.reference is None:
        raise NotLookedFor(subject.judgement.unjudgeable)
    change = subject.compared_with(write_mapped(floats, subject.file.with_name("floats.onnx")))
    if change.verdict.decision == "faster":
        yield Finding(
            "It is quantised, and the same network runs faster in float32 on this processor",
            "Deploy the float32 model here: it is nearer to the trained one as well, and its file is larger.",
            change,
        )
    else:
        yield Finding("It is quantised, and in float32 it is not faster on this processor", effect=change)
