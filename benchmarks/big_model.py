"""Memory that `rlflow optimise` takes for a model above 2 GB, beside its weights, to data/results/big_model.json.

`python benchmarks/big_model.py`: a quarter of an hour, 3 GB of disk for the model and as much for the result.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, TensorProto, helper
from studies.measurements import Bench
from studies.published import publish

RESULT = Path("data/results/big_model.json")
WIDTH = 4096
LAYERS = 34
_DOUBLED = 2
"""The number of layers that add two products of one value; rules join the products, so new weights are computed."""
_SAMPLED_EVERY_S = 0.01
_OPTIMISE = "from rlflow.cli import main; main()"
_ALONE = """
import sys
import numpy as np, onnxruntime as ort
(model,) = sys.argv[1:]
session = ort.InferenceSession(model)
session.run(None, {i.name: np.ones(i.shape, np.float32) for i in session.get_inputs()})
"""
_KINDS = {"RssAnon": "memory of the process", "VmRSS": "memory of the process and of mapped files"}


def write_model(path: Path, width: int = WIDTH, layers: int = LAYERS) -> int:
    """A chain of dense layers whose weights lie in a file beside the model; the weights' bytes."""
    model = ModelProto(ir_version=10)
    model.opset_import.add(version=17)
    model.graph.name = "chain"
    rng = np.random.default_rng(0)
    with path.with_suffix(".data").open("wb") as file:
        for layer in range(layers):
            _add_layer(model.graph, layer, 2 if layer < _DOUBLED else 1)
        for name in _weights(model.graph):
            tensor = model.graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=[width, width])
            tensor.data_location = TensorProto.EXTERNAL
            weight = rng.standard_normal((width, width), dtype=np.float32) / np.float32(width**0.5)
            entries = {"location": file.name.rpartition("/")[2], "offset": file.tell(), "length": file.write(weight)}
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=str(value))
        size = file.tell()
    for values, name in ((model.graph.input, "x0"), (model.graph.output, f"x{layers}")):
        values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width]))
    onnx.save_model(model, path)
    return size


def _add_layer(graph: GraphProto, layer: int, products: int) -> None:
    names = [f"p{layer}_{place}" for place in range(products)]
    for name in names:
        graph.node.append(helper.make_node("MatMul", [f"x{layer}", f"w_{name}"], [name]))
    total = names[0]
    if products == 2:
        graph.node.append(helper.make_node("Add", names, [f"s{layer}"]))
        total = f"s{layer}"
    graph.node.append(helper.make_node("Relu", [total], [f"x{layer + 1}"]))


def _weights(graph: GraphProto) -> Iterator[str]:
    return (name for node in graph.node for name in node.input if name.startswith("w_"))


def peaks(command: list[str], folder: Path) -> dict[str, int]:
    """The most bytes that a command's process held, by kind; what it caches goes to the folder."""
    most = dict.fromkeys(_KINDS, 0)
    with subprocess.Popen(command, env=os.environ | {"XDG_CACHE_HOME": str(folder)}) as process:
        while process.poll() is None:
            status = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
            for kind in most:
                most[kind] = max(most[kind], 1024 * int(status.get(kind, "0 kB").split()[0]))
            time.sleep(_SAMPLED_EVERY_S)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return most


def rows(weights: int, optimised: dict[str, int], alone: dict[str, int]) -> list[dict[str, object]]:
    return [
        {
            "name": f"big model/{words}",
            "value": round(optimised[kind] / weights, 3),
            "unit": f"of {weights / 1e9:.2f} GB of weights, at most",
            "baseline": "ONNX Runtime alone, running the original once",
            "baseline_value": round(alone[kind] / weights, 3),
            "cases": 1,
        }
        for kind, words in _KINDS.items()
    ]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="rlflow-") as folder:
        model, result = Path(folder, "model.onnx"), Path(folder, "result.onnx")
        weights = write_model(model)
        alone = peaks([sys.executable, "-c", _ALONE, str(model)], model.parent)
        optimised = peaks([sys.executable, "-c", _OPTIMISE, "optimise", str(model), "-o", str(result)], model.parent)
    publish(RESULT, Bench, rows(weights, optimised, alone), __file__)


if __name__ == "__main__":
    main()
