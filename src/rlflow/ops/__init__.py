"""Operators: all that the library knows of each of them, in one place.

To add an operator, write one `Operator` (`schema.py`) into the file of its family, and one line into
`tests/ops/test_against_onnx_runtime.py`, which compares it with ONNX Runtime:

    elementwise, linear_algebra, convolution, pooling, reduction, views, data_movement, fused, microsoft, constant

An operator has types (`infer`), a meaning over floats and over a finite field (`evaluate`, in the algebra of
`domain.py` and `field.py`), a form in ONNX (`onnx_form.py`), and traits (`traits.py`), among them what its operands are
for (`use.py`). `registry.py` has all operators by name; `carried.py` has the traits of those that are only carried.

The invariant: no module outside of this package tells operators apart by their names, but for the few that
`tests/ops/test_traits.py` lists with a reason.
"""
