"""The small real models of the runtime's tests."""

from runtime.conftest import float_pair, make_dense, make_model

__all__ = ["float_pair", "make_dense", "make_model"]
