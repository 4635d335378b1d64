"""Inputs of If, Loop and Scan, with the subgraphs that they run, which hand values on."""

from typing import Any

import numpy as np
from onnx import GraphProto, helper

from support.opset_changes.drawing import Draw, Value, code_of, element_of, integers


def _body(inputs: list[Any], outputs: list[Any], pairs: dict[str, str], name: str = "body") -> GraphProto:
    """A subgraph that hands values on, each output the input that `pairs` names."""
    nodes = [helper.make_node("Identity", [source], [target]) for target, source in pairs.items()]
    return helper.make_graph(nodes, name, inputs, outputs)


def _declared(name: str, dtype: str, shape: Any) -> Any:
    if dtype.startswith("seq "):
        return helper.make_tensor_sequence_value_info(name, code_of(element_of(dtype)), None)
    return helper.make_tensor_value_info(name, code_of(dtype), shape)


def conditional(d: Draw) -> list[Value]:
    """Branches that make a number each; they read nothing of the graph around them."""
    for branch in ("then_branch", "else_branch"):
        names = [f"{branch}{place}" for place in range(len(d.outputs))]
        nodes = [
            helper.make_node(
                "Constant", [], [n], value=helper.make_tensor("v", 1, [2], d.rng.standard_normal(2).astype(np.float32))
            )
            for n in names
        ]
        d.attributes[branch] = helper.make_graph(nodes, branch, [], [_declared(n, "float32", [2]) for n in names])
    return [np.array(d.numbers.random() < 0.5) if d.chance() else np.array([True])]


def repeated_body(d: Draw) -> list[Value]:
    """A loop that hands on the values that it carries, and keeps each of its iterations."""
    carried, scanned = d.one_of((0, 1, 2, 9)), d.count(0, 1)
    dtypes = [d.type_of(2)] * carried
    d.outputs = [f"o{place}" for place in range(carried + scanned)]
    if not d.outputs:
        d.outputs, scanned = ["o0"], 1
    inputs = [_declared("i", "int64", []), _declared("c", "bool", [])]
    inputs += [_declared(f"v{place}", dtype, None) for place, dtype in enumerate(dtypes)]
    outputs = [_declared("c_out", "bool", []), *(_declared(f"w{p}", t, None) for p, t in enumerate(dtypes))]
    outputs += [_declared("s", "int64", [])] * scanned
    pairs = {"c_out": "c", **{f"w{p}": f"v{p}" for p in range(carried)}} | ({"s": "i"} if scanned else {})
    d.attributes["body"] = _body(inputs, outputs, pairs)
    limit, condition = integers(d.count(0, 3)).reshape(()), np.array(d.chance(0.8))
    return [limit, condition if d.chance() else None, *(d.tensor(2, d.shape) for _ in range(carried))]


def scanned(d: Draw) -> list[Value]:
    """A scan of states, which are handed on, and of inputs, of which the outputs consist."""
    d.raise_rank(3)
    d.attributes = {k: v for k, v in d.attributes.items() if not k.startswith("scan_")}
    dtype, batched = d.type_of(0 if d.schema.since_version > 8 else 1), d.schema.since_version == 8
    states, number = d.one_of((0, 1, 2, 7)), d.one_of((1, 2, 3))
    for kind in () if batched else ("input", "output"):
        if d.chance(0.3):
            d.attributes[f"scan_{kind}_axes"] = [d.one_of((0, 1, -1))] * number
        if d.chance(0.3):
            d.attributes[f"scan_{kind}_directions"] = [d.one_of((0, 1)) for _ in range(number)]
    read = [f"v{place}" for place in range(states)] + [f"x{place}" for place in range(number)]
    inputs, outputs = ([_declared(side + name, dtype, None) for name in read] for side in ("in_", "out_"))
    d.outputs = [f"o{place}" for place in range(len(read))]
    pairs = {f"out_{name}": f"in_{name}" for name in read}
    d.attributes |= {"body": _body(inputs, outputs, pairs), "num_scan_inputs": number}
    held = d.counts(1, 2, d.count(0, 3))
    before = [d.values((d.shape[0], *held) if batched else held, dtype) for _ in range(states)]
    return [*([None] if batched else []), *before, *(d.values(d.shape, dtype) for _ in range(number))]
