"""The compiler, stopped in the middle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlflow.passes.backend import PassError
from rlflow.passes.xla.compiler import as_stablehlo, compiled, hlo_after, module_of, on_device, run
from rlflow.passes.xla.lowering import Program, lowered, tensor
from rlflow.passes.xla.pass_names import disabled_for

_PRODUCT = lowered(Program(lambda x, y: x.T @ y, (tensor(3, 2), tensor(3, 4))))


def _opcodes(hlo: bytes) -> list[str]:
    return [i.opcode.name for computation in module_of(hlo).computations() for i in computation.instructions()]


def test_one_pass_runs_and_no_other() -> None:
    """The transposition is there until the product has taken it in, and dce alone does not take it away."""
    assert "kTranspose" in _opcodes(hlo_after(_PRODUCT, disabled_for(())))
    assert "kTranspose" in _opcodes(hlo_after(_PRODUCT, disabled_for(("dce",))))
    assert "kTranspose" not in _opcodes(hlo_after(_PRODUCT, disabled_for(("transpose-folding",))))


def test_jax_compiles_as_ever_beside_it() -> None:
    """The transform is called for every compilation of the process."""
    hlo_after(_PRODUCT, disabled_for(()))
    assert jax.jit(lambda x: jnp.sin(x) * 3)(0.0) == 0.0


def test_a_program_goes_to_stablehlo_and_back() -> None:
    hlo = hlo_after(_PRODUCT, disabled_for(("algsimp",)))
    again = hlo_after(as_stablehlo(hlo), disabled_for(()))
    assert sorted(_opcodes(again)) == sorted(_opcodes(hlo))


def test_a_compiled_program_runs_with_the_types_that_it_declares() -> None:
    """Of 64 bits, which jax would narrow."""
    source = b"""func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
      %y = stablehlo.add %x, %x : tensor<2xi64>
      return %y : tensor<2xi64>
    }"""
    inputs = on_device([np.array([1, 2**40])])
    (output,) = run(compiled(source), inputs)
    assert output.dtype == np.int64
    assert output.tolist() == [2, 2**41]


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(PassError, match="XLA refused the program"):
        hlo_after(b"no program", disabled_for(()))
    with pytest.raises(PassError, match="could not compile"):
        compiled(b"no program")
    with pytest.raises(PassError, match="could not write"):
        as_stablehlo(b"no graph")
