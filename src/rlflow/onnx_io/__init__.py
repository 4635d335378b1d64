"""The ONNX boundary: models become graphs on the way in and models again on the way out."""

from rlflow.onnx_io.exporter import check_model as check_model
from rlflow.onnx_io.exporter import save_model as save_model
from rlflow.onnx_io.exporter import to_onnx as to_onnx
from rlflow.onnx_io.importer import from_onnx as from_onnx
from rlflow.onnx_io.model_file import load_model as load_model
