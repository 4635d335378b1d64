"""The names of actions: those of every library, apart from each other, and the ones that never make a program grow."""

from __future__ import annotations

import pytest

from rlflow.passes.backend import PassError
from rlflow.passes.onnx.actions import CONTRIB, CONTRIB_PIPELINES, PIPELINES, SIMPLIFIERS, STANDARD
from rlflow.passes.onnx.backend import OnnxBackend

LIBRARIES = {"onnxoptimizer", "onnx_ir", "onnxscript", "onnxslim", "onnxruntime"}
SOURCES = ("detours/bert?layers=1&layer_norm=decomposed", "detours/squeezenet1_1?width=2", "detours/resnet18?width=2")


def test_names_tell_the_library() -> None:
    assert {name.partition(":")[0] for name in STANDARD} == LIBRARIES
    assert all(len(name.split(":")) == 2 for name in (*STANDARD, *CONTRIB))


def test_no_name_means_two_things() -> None:
    tables = (STANDARD, CONTRIB, PIPELINES, CONTRIB_PIPELINES)

    assert len({name for table in tables for name in table}) == sum(map(len, tables))


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_simplifiers_never_make_a_program_grow(source: str) -> None:
    """A round of them, one after another: it shortens these programs, and at least one of the others does not."""
    backend = OnnxBackend()
    program = backend.load(source)
    start = program.facts.operations
    for name in SIMPLIFIERS:
        try:
            after = backend.apply(program.payload, name)
        except PassError:
            continue
        assert after.facts.operations <= program.facts.operations, name
        program = after

    assert program.facts.operations < start


def test_the_passes_that_are_left_out_do() -> None:
    backend = OnnxBackend()
    program = backend.load("zoo/resnet18?width=2")

    after = backend.apply(program.payload, "onnxoptimizer:fuse_bn_into_conv")

    assert "onnxoptimizer:fuse_bn_into_conv" not in SIMPLIFIERS
    assert after.facts.operations > program.facts.operations
