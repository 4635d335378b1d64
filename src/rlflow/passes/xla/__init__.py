"""XLA behind the pass-ordering gym: its passes one at a time, on programs written in jax or converted from ONNX."""

from rlflow.passes.xla.probe import require_jax

require_jax()
