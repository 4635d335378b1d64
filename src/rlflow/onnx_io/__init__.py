"""The ONNX boundary: models become graphs on the way in and models again on the way out."""

from rlflow.onnx_io.exporter import check_model as check_model
from rlflow.onnx_io.exporter import to_onnx as to_onnx
from rlflow.onnx_io.importer import from_onnx as from_onnx
from rlflow.onnx_io.importer import graph_of as graph_of
from rlflow.onnx_io.model_file import load_model as load_model
from rlflow.onnx_io.model_file import read_model as read_model
from rlflow.onnx_io.model_file import require_valid as require_valid
from rlflow.onnx_io.saving import copy_model as copy_model
from rlflow.onnx_io.saving import save_model as save_model
