"""Convolutions and pools, drawn with one to three spatial axes, in ONNX's spelling and in the canonical one."""

from collections.abc import Callable
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from rlflow.errors import TypeInferenceError
from rlflow.ops.registry import OPERATORS, infer
from support.applications import Application, array

Draw = st.DrawFn


def _numbers(draw: Draw, least: int, most: int, count: int) -> tuple[int, ...]:
    return tuple(draw(st.integers(least, most)) for _ in range(count))


def _window(draw: Draw, kernel: tuple[int, ...], *, dilated: bool) -> dict[str, Any]:
    """Strides, dilations, and pads given or left to auto_pad."""
    rank = len(kernel)
    auto_pad = draw(st.sampled_from(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    attributes: dict[str, Any] = {"auto_pad": auto_pad, "strides": _numbers(draw, 1, 3, rank)}
    if dilated:
        most = 1 if auto_pad.startswith("SAME") else 2
        attributes["dilations"] = _numbers(draw, 1, most, rank)
    if auto_pad == "NOTSET":
        attributes["pads"] = tuple(draw(st.integers(0, min(2, k - 1))) for k in kernel * 2)
    return attributes


def _drawn(op: str, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Application:
    case = Application(op, operands, {**OPERATORS[op].defaults, **attributes}, (), attributes)
    try:
        infer(op, case.attributes, case.types)
    except TypeInferenceError:
        assume(False)
    return case


def _conv(draw: Draw) -> Application:
    rank = draw(st.integers(1, 3))
    kernel = _numbers(draw, 1, 3, rank)
    group, channels, filters = _numbers(draw, 1, 3, 3)
    data = array(draw, (draw(st.integers(0, 2)), group * channels, *_numbers(draw, 1, 7, rank)))
    operands = [data, array(draw, (group * filters, channels, *kernel))]
    if draw(st.booleans()):
        operands.append(array(draw, (group * filters,)))
    attributes = {"group": group, **_window(draw, kernel, dilated=True)}
    if draw(st.booleans()):
        attributes["kernel_shape"] = kernel
    return _drawn("Conv", tuple(operands), attributes)


def _pool(op: str) -> Callable[[Draw], Application]:
    def make(draw: Draw) -> Application:
        rank = draw(st.integers(1, 3))
        kernel = _numbers(draw, 1, 3, rank)
        attributes = {"kernel_shape": kernel, "ceil_mode": draw(st.integers(0, 1))}
        attributes |= _window(draw, kernel, dilated=op == "MaxPool")
        if op == "AveragePool":
            attributes["count_include_pad"] = draw(st.integers(0, 1))
        shape = (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *_numbers(draw, 1, 7, rank))
        return _drawn(op, (array(draw, shape),), attributes)

    return make


def _global_average(draw: Draw) -> Application:
    shape = _numbers(draw, 1, 5, draw(st.integers(3, 5)))
    return Application("GlobalAveragePool", (array(draw, shape),))


DRAWN: dict[str, Callable[[Draw], Application]] = {
    "Conv": _conv,
    "MaxPool": _pool("MaxPool"),
    "AveragePool": _pool("AveragePool"),
    "GlobalAveragePool": _global_average,
}
