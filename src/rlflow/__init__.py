"""A learned, verified superoptimiser for ONNX models."""

from rlflow.onnx_io import from_onnx as from_onnx
from rlflow.onnx_io import to_onnx as to_onnx

__version__ = "0.1.0"
