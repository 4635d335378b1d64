"""Dimensions that the model leaves open and its user does not: ONNX Runtime folds more where it knows them."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from rlflow.doctor.finding import Finding
from rlflow.doctor.subject import NotLookedFor, Subject
from rlflow.onnx_io.shapes.inference import pin_dimensions
from rlflow.runtime.session import structure_of


def open_dimensions(subject: Subject) -> Iterator[Finding]:
    """Time the model at the sizes that its user names beside one that declares them."""
    sizes = subject.config.dimensions or {}
    if not sizes:
        return
    if subject.judgement.reference is None:
        raise NotLookedFor(subject.judgement.unjudgeable)
    pinned = structure_of(subject.file)
    pin_dimensions(pinned.graph, sizes)
    path = subject.file.with_name("pinned.onnx")
    onnx.save(pinned, path)
    change = subject.compared_with(path)
    if change.verdict.decision == "faster":
        overrides = "; ".join(f'add_free_dimension_override_by_name("{name}", {size})' for name, size in sizes.items())
        yield Finding(
            "It runs faster where ONNX Runtime knows the sizes of its dimensions when it opens it",
            f"Tell them to the options of its session, if it runs at no other: {overrides}.",
            change,
        )
