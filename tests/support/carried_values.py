"""Models with masks, dimensions of no elements and huge numbers, and the inputs for which they were made.

The first ones are built after public reports (iree#24175, pytorch#159973, onnx#8068), the others are their siblings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LOWEST = float(np.finfo(np.float32).min)
HIDING = (-1e4, -1e9, LOWEST, -np.inf)
Feeds = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Subject:
    """A model, and inputs for which it must compute the same after any rewrite."""

    model: onnx.ModelProto
    feeds: tuple[Feeds, ...]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-2.0, 2.0, shape).astype(np.float32)


def node(op: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), output.split(), **attributes)


def model(
    nodes: list[onnx.NodeProto],
    inputs: Mapping[str, list[int | str]],
    outputs: Mapping[str, list[int | str]],
    stored: Mapping[str, np.ndarray],
    opset: int = 17,
) -> onnx.ModelProto:
    values = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in group.items()]
        for group in (inputs, outputs)
    ]
    weights = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    graph = helper.make_graph(nodes, "g", *values, weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(made, full_check=True)
    return made


def hidden_rows(shape: tuple[int, ...], number: float) -> np.ndarray:
    """A mask whose first row is hidden altogether, and of whose others the last element is."""
    mask = np.zeros(shape, np.float32)
    mask[..., -1] = number
    mask[..., 0, :] = number
    return mask


def padded_rows() -> Subject:
    """Padding that is added to whole rows of scores: f3 itself."""
    nodes = [node("Add", "scores bias", "a"), node("Softmax", "a", "y", axis=-1)]
    bias = np.zeros((2, 5, 1), np.float32)
    bias[:, 3:] = 1.0
    feeds = tuple({"scores": floats(2, 5, 6), "bias": np.where(bias > 0, np.float32(n), bias)} for n in HIDING)
    return Subject(model(nodes, {"scores": [2, 5, 6], "bias": [2, 5, 1]}, {"y": [2, 5, 6]}, {}), feeds)


def attention(size: int | str, mask: np.ndarray | list[int | str] | None) -> Subject:
    """Attention in pieces: f3's second half, and with a mask that is stored, and with none, of no tokens too."""
    nodes = [
        node("MatMul", "q kt", "s"),
        node("Mul", "s c", "sc"),
        *([] if mask is None else [node("Add", "sc m", "sm")]),
        node("Softmax", "sc" if mask is None else "sm", "p", axis=-1),
        node("MatMul", "p v", "y"),
    ]
    inputs: dict[str, list[int | str]] = {"q": [1, 2, size, 8], "kt": [1, 2, 8, size], "v": [1, 2, size, 8]}
    stored = {"c": np.array(0.35, np.float32)}
    if isinstance(mask, np.ndarray):
        stored["m"] = mask
    elif mask is not None:
        inputs["m"] = mask

    def fed(tokens: int, number: float) -> dict[str, np.ndarray]:
        hidden = hidden_rows((1, 1, tokens, tokens), number) if tokens else np.zeros((1, 1, 0, 0), np.float32)
        feeds = {"q": floats(1, 2, tokens, 8), "kt": floats(1, 2, 8, tokens), "v": floats(1, 2, tokens, 8), "m": hidden}
        return {name: feeds[name] for name in inputs}

    feeds = [fed(6, number) for number in HIDING] + ([] if isinstance(size, int) else [fed(0, 0.0)])
    return Subject(model(nodes, inputs, {"y": [1, 2, size, 8]}, stored, opset=23), tuple(feeds))


def mask_of_ones_and_zeros() -> Subject:
    """BERT's: (1 - seen) * -1e9, of sequences of which one is padding altogether."""
    nodes = [
        node("Sub", "one seen", "hidden"),
        node("Mul", "hidden number", "mask"),
        node("MatMul", "x k", "scores"),
        node("Div", "scores root", "scaled"),
        node("Add", "scaled mask", "a"),
        node("Softmax", "a", "p", axis=-1),
        node("MatMul", "p v", "y"),
    ]
    stored = {"one": np.array(1.0, np.float32), "number": np.array(-1e9, np.float32), "root": np.array(2.8, np.float32)}
    seen = np.array([[[1, 1, 0, 0]], [[0, 0, 0, 0]]], np.float32)
    inputs: dict[str, list[int | str]] = {"seen": [2, 1, 4], "x": [2, 4, 8], "k": [2, 8, 4], "v": [2, 4, 8]}
    feeds = {"seen": seen, "x": floats(2, 4, 8), "k": floats(2, 8, 4), "v": floats(2, 4, 8)}
    return Subject(model(nodes, inputs, {"y": [2, 4, 8]}, stored), (feeds,))


def moved_mask() -> Subject:
    """A mask that is gathered, sliced and transposed before it hides, and shifted rows behind it."""
    nodes = [
        node("Gather", "m rows", "g", axis=0),
        node("Slice", "g starts ends axes", "s"),
        node("Transpose", "s", "t", perm=[1, 0]),
        node("Add", "x t", "a"),
        node("Add", "a shift", "b"),
        node("Softmax", "b", "y", axis=-1),
    ]
    stored = {"rows": np.array([2, 0, 1]), "starts": np.array([1]), "ends": np.array([5]), "axes": np.array([1])}
    feeds = [
        {"m": hidden_rows((3, 6), number).copy(), "x": floats(4, 3), "shift": np.full((4, 1), other, np.float32)}
        for number in HIDING
        for other in (0.5, number)
    ]
    inputs: dict[str, list[int | str]] = {"m": [3, 6], "x": [4, 3], "shift": [4, 1]}
    return Subject(model(nodes, inputs, {"y": [4, 3]}, stored), tuple(feeds))


def where_mask() -> Subject:
    """PyTorch's masked_fill, with minus infinity over whole rows, and the mean of what is attended to."""
    nodes = [
        node("Greater", "seen half", "c"),
        node("Where", "c x number", "a"),
        node("Softmax", "a", "p", axis=-1),
        node("Add", "v bias", "w"),
        node("MatMul", "p w", "y"),
        node("ReduceSum", "p last", "rows", keepdims=1),
    ]
    stored = {
        "half": np.array(0.5, np.float32),
        "number": np.array(-np.inf, np.float32),
        "last": np.array([-1]),
        "bias": floats(3),
    }
    seen = np.array([[1, 0, 1], [0, 0, 0]], np.float32)
    inputs: dict[str, list[int | str]] = {"seen": [2, 3], "x": [2, 3], "v": [3, 3]}
    made = model(nodes, inputs, {"y": [2, 3], "rows": [2, 1]}, stored)
    return Subject(made, ({"seen": seen, "x": floats(2, 3), "v": floats(3, 3)},))


def log_softmax() -> Subject:
    """Scores of a language model: what is hidden has no probability, in logarithms."""
    nodes = [
        node("Add", "x shift", "a"),
        node("Add", "a m", "b"),
        node("LogSoftmax", "b", "y", axis=-1),
        node("Softmax", "b", "p", axis=-1),
        node("Log", "p", "z"),
    ]
    feeds = [
        {"x": floats(3, 4), "shift": np.array([[0.1], [number], [0.3]], np.float32), "m": hidden_rows((3, 4), number)}
        for number in HIDING
    ]
    inputs: dict[str, list[int | str]] = {"x": [3, 4], "shift": [3, 1], "m": [3, 4]}
    return Subject(model(nodes, inputs, {"y": [3, 4], "z": [3, 4]}, {}), tuple(feeds))


def exponentials() -> Subject:
    """A softmax in pieces, in which what is hidden altogether is zero over zero."""
    nodes = [
        node("Add", "x m", "a"),
        node("Exp", "a", "e"),
        node("ReduceSum", "e last", "s", keepdims=1),
        node("Div", "e s", "y"),
    ]
    feeds = tuple({"x": floats(3, 4), "m": hidden_rows((3, 4), number)} for number in HIDING)
    made = model(nodes, {"x": [3, 4], "m": [3, 4]}, {"y": [3, 4]}, {"last": np.array([-1])})
    return Subject(made, feeds)


def means_of_nothing() -> Subject:
    """Means and sums along a dynamic axis that may have no elements, of sums and of softmaxes."""
    nodes = [
        node("Add", "x b", "a"),
        node("ReduceMean", "a", "mean", axes=[-1], keepdims=1),
        node("Sub", "b x", "d"),
        node("ReduceMean", "d", "other", axes=[-1], keepdims=1),
        node("Softmax", "x", "p", axis=-1),
        node("Mul", "p b", "q"),
        node("ReduceSum", "q last", "sum", keepdims=1),
    ]
    outputs: dict[str, list[int | str]] = {"mean": [2, 1], "other": [2, 1], "sum": [2, 1]}
    made = model(nodes, {"x": [2, "N"], "b": [2, 1]}, outputs, {"last": np.array([-1])})
    return Subject(made, tuple({"x": floats(2, n), "b": floats(2, 1)} for n in (0, 3)))


def empty_batch() -> Subject:
    """An image model whose batch may be empty: products in place of points, pools of parts, a Flatten."""
    nodes = [
        node("Conv", "x points", "c", kernel_shape=[1, 1]),
        node("Relu", "c", "r"),
        node("Concat", "r x", "j", axis=1),
        node("AveragePool", "j", "a", kernel_shape=[2, 2], count_include_pad=1),
        node("Split", "a sizes", "s t", axis=1),
        node("Reshape", "s flat", "u"),
        node("Flatten", "t", "v", axis=1),
        node("MatMul", "v w", "y"),
        node("ReduceMean", "j", "z", axes=[-2, -1], keepdims=1),
    ]
    stored = {"points": floats(4, 3, 1, 1), "sizes": np.array([4, 3]), "flat": np.array([0, 36]), "w": floats(27, 5)}
    outputs: dict[str, list[int | str]] = {"u": ["B", 36], "y": ["B", 5], "z": ["B", 7, 1, 1]}
    made = model(nodes, {"x": ["B", 3, 4, 4]}, outputs, stored)
    return Subject(made, tuple({"x": floats(n, 3, 4, 4)} for n in (0, 2)))


def huge_rows() -> Subject:
    """A layer normalisation of huge and of subnormal numbers, in pieces."""
    nodes = [
        node("ReduceMean", "x", "m", axes=[-1], keepdims=1),
        node("Sub", "x m", "c"),
        node("Pow", "c two", "q"),
        node("ReduceMean", "q", "n", axes=[-1], keepdims=1),
        node("Add", "n e", "o"),
        node("Sqrt", "o", "r"),
        node("Div", "c r", "d"),
        node("Mul", "d g", "s"),
        node("Add", "s b", "y"),
    ]
    stored = {"two": np.array(2.0, np.float32), "e": np.array(1e-5, np.float32), "g": floats(8), "b": floats(8)}
    made = model(nodes, {"x": [3, 8]}, {"y": [3, 8]}, stored)
    return Subject(made, tuple({"x": (floats(3, 8) * scale).astype(np.float32)} for scale in (1e17, 1.0, 1e-41)))


SUBJECTS: Mapping[str, Callable[[], Subject]] = {
    "padded-rows": padded_rows,
    "attention": lambda: attention("S", [1, 1, "S", "S"]),
    "attention-stored-mask": lambda: attention(6, hidden_rows((1, 1, 6, 6), LOWEST)),
    "attention-unmasked": lambda: attention("S", None),
    "ones-and-zeros": mask_of_ones_and_zeros,
    "moved-mask": moved_mask,
    "where": where_mask,
    "log-softmax": log_softmax,
    "exponentials": exponentials,
    "means-of-nothing": means_of_nothing,
    "empty-batch": empty_batch,
    "huge-rows": huge_rows,
}
