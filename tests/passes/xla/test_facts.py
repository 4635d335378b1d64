"""Facts of graphs: keys that tell programs apart, counts by hand."""

import numpy as np
import pytest

from rlflow.passes.xla.compiler import hlo_after
from rlflow.passes.xla.facts import TRIVIAL, facts_of, opcodes
from rlflow.passes.xla.lowering import Program, lowered, tensor
from rlflow.passes.xla.pass_names import disabled_for


def _facts_of(text: bytes):
    return facts_of(hlo_after(text, disabled_for(())))


def _adds(values: list[float], name: str = "x") -> bytes:
    numbers = ", ".join(f"{value:.9e}" for value in values)
    return f"""func.func @main(%{name}: tensor<{len(values)}xf32>) -> tensor<{len(values)}xf32> {{
      %c = stablehlo.constant dense<[{numbers}]> : tensor<{len(values)}xf32>
      %y = stablehlo.add %{name}, %c : tensor<{len(values)}xf32>
      return %y : tensor<{len(values)}xf32>
    }}""".encode()


def test_names_do_not_matter_and_the_computation_does() -> None:
    key = _facts_of(_adds([1.0, 2.0])).key
    assert _facts_of(_adds([1.0, 2.0], name="other")).key == key
    assert _facts_of(_adds([1.0, 2.0]).replace(b"add", b"multiply")).key != key


@pytest.mark.parametrize("size", [2, 64])
def test_constants_belong_to_the_key_to_the_last_bit(size: int) -> None:
    """XLA's fingerprints leave out what is in constants that are no scalars."""
    values = [0.1] * size
    changed = [*values[:-1], float(np.nextafter(np.float32(0.1), np.float32(1)))]
    assert _facts_of(_adds(values)).key != _facts_of(_adds(changed)).key


def test_counts_are_of_what_computes() -> None:
    program = Program(lambda x, y: (x @ y).sum() * 2.0, (tensor(2, 3), tensor(3, 4)))
    facts = _facts_of(lowered(program))
    # the reduction adds by a computation of its own
    assert facts.counts == (("add", 1), ("dot", 1), ("multiply", 1), ("reduce", 1))
    assert facts.operations == 4
    assert facts.cost.flops == 2 * 2 * 3 * 4 + (2 * 4 - 1) + 1
    assert facts.cost.transcendentals == 0
    assert facts.cost.bytes_accessed > 4 * (6 + 12)


def test_opcodes_are_spelled_as_they_are_counted() -> None:
    assert {"dot", "dynamic-update-slice", "batch-norm-training", "while"} <= set(opcodes())
    assert not TRIVIAL & set(opcodes())
