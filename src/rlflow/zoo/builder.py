"""Write ONNX models node by node: unique names, seeded weights, and a checked model at the end.

    b = GraphBuilder("example", seed=0, opset=17)
    x = b.input("x", ("batch", 8))
    weight = b.parameter("linear/weight", (8, 4), std=0.1)
    b.output("y", b.node("MatMul", x, weight, scope="linear"), ("batch", 4))
    model = b.finish()

Tensors are handled by name: `node` returns the name of its output, which later nodes take as input.

The invariant: a parameter depends on the seed and on its own name alone, so the same call gives the same bytes, and two
graphs that name their parameters alike share their weights.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from rlflow.errors import InputError

IR_VERSION = 10
OLDEST_OPSET = 15
NEWEST_OPSET = 21
CONSTANTS = "constants/"
"""Initialisers under this prefix belong to the architecture (shapes, scales); all others are parameters."""

Dimension = int | str
"""A number, or the symbol of a dimension that is known only when the model runs."""

_SMALL_BYTES = 1024


class GraphBuilder:
    """A model under construction; `finish` returns it."""

    def __init__(self, name: str, *, seed: int, opset: int) -> None:
        if not OLDEST_OPSET <= opset <= NEWEST_OPSET:
            raise InputError(f"{name}: opset is {opset}; choose one from {OLDEST_OPSET} to {NEWEST_OPSET}.")
        self.name = name
        self.opset = opset
        self._seed = seed
        self._model = onnx.ModelProto(ir_version=IR_VERSION, producer_name="rlflow.zoo")
        self._model.opset_import.add(domain="", version=opset)
        self._graph = self._model.graph
        self._graph.name = name
        self._used_names: Counter[str] = Counter()
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def input(self, name: str, shape: Sequence[Dimension], element_type: int = TensorProto.FLOAT) -> str:
        """Add an input of the model and return its name."""
        self._graph.input.append(helper.make_tensor_value_info(name, element_type, shape))
        return name

    def output(self, name: str, tensor: str, shape: Sequence[Dimension]) -> None:
        """Make `tensor` (float32) the model's next output and rename it to `name`."""
        for node in self._graph.node:
            for names in (node.input, node.output):
                names[:] = [name if used == tensor else used for used in names]
        self._graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def declare(self, tensor: str, shape: Sequence[Dimension], element_type: int = TensorProto.FLOAT) -> None:
        """State a shape that shape inference cannot find, such as the symbol of a computed dimension."""
        self._graph.value_info.append(helper.make_tensor_value_info(tensor, element_type, shape))

    def random(self, name: str) -> np.random.Generator:
        """The random generator of the parameter `name`."""
        return np.random.default_rng([self._seed, *name.encode()])

    def initialiser(self, name: str, values: np.ndarray) -> str:
        """Add an initialiser with these values and return its name."""
        self._graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    def parameter(self, name: str, shape: Sequence[int], *, std: float, mean: float = 0.0) -> str:
        """Add a float32 initialiser drawn from Normal(mean, std) and return its name."""
        return self.initialiser(name, normal(self.random(name), shape, std=std, mean=mean))

    def constant(self, name: str, values: np.ndarray | np.generic) -> str:
        """Add an initialiser of the architecture and return its name; equal values are stored once."""
        array = np.asarray(values)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.initialiser(self._unique(f"{CONSTANTS}{name}"), array)
        return self._constants[key]

    def node(self, operator: str, *inputs: str, scope: str, **attributes: Any) -> str:
        """Append a node with one output and return its name: scope, operator, and a number if needed."""
        return self.multi_output_node(operator, *inputs, scope=scope, outputs=1, **attributes)[0]

    def multi_output_node(self, operator: str, *inputs: str, scope: str, outputs: int, **attributes: Any) -> list[str]:
        """Append a node with several outputs and return their names; those after the first carry their index."""
        name = self._unique(f"{scope}/{operator}")
        names = [name, *(f"{name}:{index}" for index in range(1, outputs))]
        self._graph.node.append(helper.make_node(operator, inputs, names, name=name, **attributes))
        return names

    def finish(self) -> onnx.ModelProto:
        """The model, checked by onnx.checker with full shape inference.

        The check sees large weights as typed inputs: it does not read their values and needs no copy of them.
        """
        onnx.checker.check_model(self._without_large_weights(), full_check=True)
        return self._model

    def _unique(self, name: str) -> str:
        self._used_names[name] += 1
        return name if self._used_names[name] == 1 else f"{name}_{self._used_names[name] - 1}"

    def _without_large_weights(self) -> onnx.ModelProto:
        graph = onnx.GraphProto(
            name=self._graph.name,
            node=self._graph.node,
            input=self._graph.input,
            output=self._graph.output,
            value_info=self._graph.value_info,
        )
        for weight in self._graph.initializer:
            if len(weight.raw_data) <= _SMALL_BYTES:
                graph.initializer.append(weight)
            else:
                graph.input.append(helper.make_tensor_value_info(weight.name, weight.data_type, list(weight.dims)))
        return onnx.ModelProto(
            ir_version=IR_VERSION,
            opset_import=self._model.opset_import,
            graph=graph,
            producer_name="rlflow.zoo",
        )


def normal(random: np.random.Generator, shape: Sequence[int], *, std: float, mean: float = 0.0) -> np.ndarray:
    """Float32 draws from Normal(mean, std), scaled in place: weights can be large."""
    values = random.standard_normal(tuple(shape), dtype=np.float32)
    values *= np.float32(std)
    values += np.float32(mean)
    return values


def lengths(*dimensions: Dimension) -> np.ndarray:
    """A Reshape target: a number for a known dimension, 0 (copy from the input) for a symbolic one."""
    return np.array([0 if isinstance(d, str) else d for d in dimensions], dtype=np.int64)
