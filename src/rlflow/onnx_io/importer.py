"""ONNX model -> graph. Nothing is skipped: what is not understood is carried verbatim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper

from rlflow.errors import InputError, ModelFormatError, TypeInferenceError
from rlflow.ir.graph import Graph, Header, make_graph
from rlflow.ir.node import INPUT, WEIGHT, AttributeValue, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.element_type import dtype_name
from rlflow.onnx_io.external_data import copy_fields, is_outside, tensors_in
from rlflow.onnx_io.opset import AXIS_ATTRIBUTES, FLATTENING_BEFORE, IGNORABLE_VALUES, IGNORED_ATTRIBUTES, PARAMETERS
from rlflow.onnx_io.payload import FilledPayload, InitializerPayload, OpaquePayload, SparsePayload
from rlflow.onnx_io.shapes import symbolic
from rlflow.onnx_io.shapes.folding import MOST_ELEMENTS, computed, read_shape
from rlflow.onnx_io.shapes.inference import (
    declares_weights,
    infer_node_types,
    infer_types,
    is_small,
    pin_dimensions,
    without_large_weights,
)
from rlflow.onnx_io.window_attributes import WINDOWED, written_out
from rlflow.ops import registry
from rlflow.ops.schema import ints

ONNX_DOMAINS = ("", "ai.onnx")
_MOST_FILLED = 2**28
"""Elements: a constant is evaluated when an expression of it is exported, which must not fill the memory."""
_ZERO = numpy_helper.from_array(np.zeros(1, np.float32))
_ROUNDED = frozenset({"Erf", "Exp", "Gelu", "Log", "Pow", "Sigmoid", "Softmax", "Tanh"})
"""Functions whose last bit is another one in every library: what they make of constants is left to the runtime."""
_LARGEST_DIMENSION = 2**63 - 1
_LONGEST_REASON = 240  # characters: with the file's name it is still one sentence


def load_model(path: str | Path) -> onnx.ModelProto:
    """Read a model, leaving external data where it is. `InputError` or `ModelFormatError` in one sentence."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, not an ONNX file")
    try:
        model = onnx.load(str(path), format="protobuf", load_external_data=False)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"there is no file {path}") from None
    except PermissionError:
        raise InputError(f"{path} may not be read: check its permissions") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (DecodeError, UnicodeDecodeError, ValueError) as error:
        raise ModelFormatError(f"{path} is not an ONNX model, or is truncated ({_brief(error)})") from None
    _check(model, str(path), where=str(path))
    return model


def _check(model: onnx.ModelProto, checked: str | onnx.ModelProto, where: str) -> None:
    if not model.opset_import or not model.HasField("graph"):
        raise ModelFormatError(f"{where} is not an ONNX model: it holds no graph or names no opset")
    try:
        onnx.checker.check_model(checked)
    except (onnx.checker.ValidationError, RuntimeError, ValueError) as error:
        raise ModelFormatError(f"{where} is not a valid ONNX model: {_brief(error)}") from None


def from_onnx(source: str | Path | onnx.ModelProto, dimensions: Mapping[str, int] | None = None) -> Graph:
    """The graph of a model. Weights are referenced, external data stays on disk until it is needed.

    Symbolic dimensions named in `dimensions` are pinned: the graph, and what is exported of it, is for these sizes
    alone. Its nodes have the numbers that they have in the graph without pins.

    Raises `InputError` if the file cannot be read and `ModelFormatError` if it is not a valid model.
    """
    if isinstance(source, onnx.ModelProto):
        require_valid(source)
        return graph_of(source, dimensions)
    return _imported(load_model(source), Path(source).absolute().parent, dimensions or {}, where=str(source))


def require_valid(model: onnx.ModelProto) -> None:
    """`ModelFormatError` in one sentence if a model in memory is not valid ONNX."""
    _check(model, without_large_weights(model), where="the model")


def graph_of(model: onnx.ModelProto, dimensions: Mapping[str, int] | None = None) -> Graph:
    """Do what `from_onnx` does with a model in memory that has been checked already."""
    return _imported(model, None, dimensions or {}, where="the model")


def _imported(model: onnx.ModelProto, folder: Path | None, dimensions: Mapping[str, int], where: str) -> Graph:
    """What the checker lets through and no model can be made of is found on the way."""
    try:
        return _Importer(model, folder, dimensions).graph()
    except UnicodeDecodeError:
        raise ModelFormatError(f"{where} is not a valid ONNX model: a text in it is not UTF-8") from None
    except ModelFormatError as error:
        raise ModelFormatError(f"{where} is not a valid ONNX model: {_brief(error)}") from None


def _brief(error: Exception) -> str:
    """The first line that says something; a name in it may be as long as the file."""
    line = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).strip()
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]} ..."


class _Importer:
    """The state of one import: values by name, nodes by id."""

    def __init__(self, model: onnx.ModelProto, folder: Path | None, dimensions: Mapping[str, int]) -> None:
        self.model = model
        self.folder = folder
        opsets = {o.domain: o.version for o in model.opset_import}
        self.opset = next((opsets[d] for d in ONNX_DOMAINS if d in opsets), 0)
        own = {f.domain for f in model.functions}
        domains = {d: version for d, version in opsets.items() if d not in ONNX_DOMAINS and d not in own}
        interface = _stripped(model, folder)
        pin_dimensions(interface.graph, dimensions)
        self.header = Header(self.opset, interface, domains)
        self.functions = {(f.domain, f.name) for f in model.functions}
        self.nodes: dict[int, Node] = {}
        self.values: dict[str, Ref] = {}
        self.open_sizes: dict[Ref, np.ndarray] = {}
        self.known_types = infer_types(model, dimensions)

    def graph(self) -> Graph:
        proto = self.model.graph
        defaults = {} if declares_weights(self.model) else {t.name: t for t in proto.initializer}
        inputs = [self._add_input(i, defaults.get(i.name)) for i in interface_inputs(self.model)]
        for tensor in proto.initializer:
            if tensor.name not in self.values:
                self._add_weight(tensor)
        for sparse in proto.sparse_initializer:
            if sparse.values.name not in self.values:
                kind = self.known_types.get(sparse.values.name)
                self._add(Node(WEIGHT, (), {}, (kind,), (sparse.values.name,), True, SparsePayload(sparse)))
        for node in proto.node:
            self._add_node(node)
        try:
            outputs = [self.values[o.name] for o in proto.output]
        except KeyError as error:
            raise ModelFormatError(f"its output {error} is computed by no node") from None
        return make_graph(self.nodes, inputs, outputs, [o.name for o in proto.output], self.header)

    def _add(self, node: Node) -> int:
        if not all(isinstance(name, str) for name in (node.label, *node.names)):
            raise ModelFormatError(f"a name beside {node.op!r} is not UTF-8")  # protobuf hands such names out as bytes
        identifier = len(self.nodes)
        self.nodes[identifier] = node
        for index, name in enumerate(node.names):
            if name:
                self.values[name] = Ref(identifier, index)
        return identifier

    def _add_input(self, value: onnx.ValueInfoProto, default: onnx.TensorProto | None) -> int:
        """An input with a default may be given another value when the model runs: it is no weight."""
        attributes: dict[str, AttributeValue] = {}
        if default is not None:
            payload = InitializerPayload(default, self.folder)
            payload.check()
            attributes["default"] = payload.digest
        return self._add(Node(INPUT, (), attributes, (self.known_types[value.name],), (value.name,)))

    def _add_weight(self, tensor: onnx.TensorProto) -> int:
        kind = TensorType(dtype_name(tensor.data_type), tuple(int(d) for d in tensor.dims))
        payload = InitializerPayload(tensor, self.folder)
        payload.check()
        return self._add(Node(WEIGHT, (), {}, (kind,), (tensor.name,), True, payload))

    def _add_node(self, proto: onnx.NodeProto) -> None:
        if proto.op_type == "Constant" and proto.domain in ONNX_DOMAINS:
            tensor = constant_tensor(proto)
            if tensor is not None:
                self._add_weight(tensor)
                return
        sizes = self._known_sizes(proto)
        if sizes is not None:
            self._add_weight(numpy_helper.from_array(sizes, proto.output[0]))
            return
        if proto.op_type == "ConstantOfShape" and self._is_standard(proto):
            filled = self._filled(proto)
            if filled is not None:
                self._add(filled)
                return
        node = None if (proto.domain, proto.op_type) in self.functions else self._understood(proto)
        sizes = self._open_sizes(proto, node)
        if sizes is not None and sizes.dtype != object:
            self._add_weight(numpy_helper.from_array(sizes, proto.output[0]))
            return
        identifier = self._add(node if node is not None else self._opaque(proto))
        if sizes is not None:
            self.open_sizes[Ref(identifier)] = sizes

    def _known_sizes(self, proto: onnx.NodeProto) -> np.ndarray | None:
        """The node's output, where it is whole numbers that follow from known shapes."""
        if not self._is_standard(proto):
            return None
        refs = {name: ref for name in proto.input if (ref := self._ref(name, proto)) is not None}
        if proto.op_type == "Shape":
            return read_shape(proto, self._type(list(refs.values()), 0))
        operands = {name: array for name, ref in refs.items() if (array := self._few_numbers(ref)) is not None}
        return computed(proto, operands, self.opset) if refs and len(operands) == len(refs) else None

    def _filled(self, proto: onnx.NodeProto) -> Node | None:
        """A constant of one number, None where its shape is not known or it would fill the memory."""
        ref = self._ref(proto.input[0], proto)
        shape = None if ref is None else self._constant_array(ref)
        value = next((a.t for a in proto.attribute if a.name == "value"), _ZERO)
        if shape is None or min(shape, default=0) < 0 or prod(map(int, shape)) > _MOST_FILLED or prod(value.dims) != 1:
            return None
        payload = FilledPayload(value, _int_tuple(shape))
        InitializerPayload(value).check()
        kind = TensorType(dtype_name(value.data_type), payload.shape)
        return Node(WEIGHT, (), {}, (kind,), tuple(proto.output), True, payload)

    def _open_sizes(self, proto: onnx.NodeProto, node: Node | None) -> np.ndarray | None:
        """The node's output, as far as it is made of the dimensions of other values."""
        if not self._is_standard(proto) or self.opset < symbolic.SINCE:
            return None
        refs = [self._ref(name, proto) for name in proto.input] if node is None else list(node.inputs)
        if proto.op_type == "Shape":
            return symbolic.of_shape(proto, self._type(refs, 0))
        if all(ref not in self.open_sizes for ref in refs):
            return None
        operands = [None if ref is None else self._numbers(ref) for ref in refs]
        known = [array for array in operands if array is not None]
        kind = self._type(refs, -1) if node is None else node.types[0]
        if kind is None or len(known) < len(operands):
            return None
        return symbolic.computed(proto, node, kind.dtype, known)

    def _is_standard(self, proto: onnx.NodeProto) -> bool:
        return proto.domain in ONNX_DOMAINS and (proto.domain, proto.op_type) not in self.functions

    def _numbers(self, ref: Ref) -> np.ndarray | None:
        """Numbers and sizes."""
        return self.open_sizes[ref] if ref in self.open_sizes else self._few_numbers(ref)

    def _few_numbers(self, ref: Ref) -> np.ndarray | None:
        """The values of a weight that is small."""
        kind = self._type([ref], 0)
        few = kind is not None and kind.is_static and kind.elements <= MOST_ELEMENTS
        return self._constant_array(ref) if few else None

    def _ref(self, name: str, reader: onnx.NodeProto) -> Ref | None:
        if not name:
            return None
        if name not in self.values:
            raise ModelFormatError(
                f"node {reader.name or reader.op_type!r} reads {name!r}, which no earlier node computes"
            )
        return self.values[name]

    def _understood(self, proto: onnx.NodeProto) -> Node | None:
        """The node in canonical form, or None where its operator, opset, types or parameters are not
        understood.
        """
        op = _qualified_name(proto)
        flattens = self.opset < FLATTENING_BEFORE.get(op, 0)
        if op not in registry.OPERATORS or not (flattens or self.header.offers(registry.versions([op]))):
            return None
        operands = [self._ref(name, proto) for name in proto.input]
        attributes = self._attributes(op, proto, operands)
        if attributes is None:
            return None
        data = [r for r in operands[: _data_operands(op, len(operands), self.opset)]]
        while data and data[-1] is None:
            data.pop()
        if any(r is None for r in data):
            return None
        types = [self.nodes[r.node].types[r.index] for r in data if r is not None]
        outputs = [name for name in proto.output]
        try:
            _from_the_end(op, attributes, types[0].rank if types and types[0] else None)
            inferred = registry.infer(op, attributes, types)
        except (TypeInferenceError, KeyError):
            return None
        if flattens and (attributes["axis"] != -1 or not any(a.name == "axis" for a in proto.attribute)):
            return None
        while len(outputs) > len(inferred) and not outputs[-1]:
            outputs.pop()
        if len(outputs) != len(inferred) or not all(map(_can_be_written, inferred)):
            return None
        if op == "Reshape" and inferred[0].is_static and 0 not in (inferred[0].shape or ()):
            attributes["shape"] = inferred[0].shape  # type: ignore[assignment]
        exact = op not in _ROUNDED and not any(map(_is_half, inferred))
        constant = exact and all(self.nodes[r.node].constant for r in data if r is not None)
        final = tuple(self._refined(kind, name) for kind, name in zip(inferred, outputs, strict=True))
        return Node(
            op,
            tuple(data),
            attributes,
            final,
            tuple(outputs),
            constant,
            label=proto.name,
            remarks=_remarks(proto),
        )

    def _refined(self, inferred: TensorType, name: str) -> TensorType:
        """Our inference, with dimensions that only ONNX's own could tell."""
        return _merged(inferred, self.known_types.get(name)) or inferred

    def _attributes(
        self, op: str, proto: onnx.NodeProto, operands: Sequence[Ref | None]
    ) -> dict[str, AttributeValue] | None:
        written = {a.name: _attribute_value(a) for a in proto.attribute}
        for name, default in ((n, v) for (owner, n), v in IGNORABLE_VALUES.items() if owner == op):
            if written.pop(name, default) != default:
                return None
        for name in IGNORED_ATTRIBUTES.get(op, ()):
            written.pop(name, None)
        given = {name: value for name, value in written.items() if value is not None}
        if len(given) < len(written) or not all(isinstance(name, str) for name in given):
            return None
        attributes: dict[str, AttributeValue] = {**registry.OPERATORS[op].defaults, **given}
        zero_is_zero = attributes.pop("allowzero", 0)
        if op == "Reshape" and (target := self._open_target(operands)) is not None:
            return attributes | {"shape": target}
        for parameter in PARAMETERS.get(op, ()):
            if self.opset < parameter.since:
                continue
            ref = operands[parameter.operand] if parameter.operand < len(operands) else None
            if ref is None:
                if parameter.required:
                    return None
                continue
            array = self._constant_array(ref)
            if array is None or not (
                self._is_scalar_of(array, operands[0]) if parameter.scalar else _is_integer(array)
            ):
                return None
            attributes[parameter.name] = float(array.item()) if parameter.scalar else _int_tuple(array)
        if zero_is_zero and 0 in ints(attributes["shape"]):
            return None
        if op == "Cast":
            attributes["to"] = dtype_name(int(attributes["to"]))  # type: ignore[arg-type]
        return self._completed(op, len(proto.output), attributes, operands)

    def _completed(
        self, op: str, results: int, attributes: dict[str, AttributeValue], operands: Sequence[Ref | None]
    ) -> dict[str, AttributeValue] | None:
        """Parameters whose default depends on the operand: equal Split sizes, all axes, a reversing
        Transpose, the pads of a window, Attention's scale.
        """
        kind = self._type(operands, 0)
        if kind is None or kind.shape is None:
            return None
        rank = len(kind.shape)
        if op == "Transpose":
            attributes.setdefault("perm", tuple(reversed(range(rank))))
        if op == "Squeeze" and not attributes.get("axes"):
            return None
        if op in ("ReduceSum", "ReduceMean"):
            keep_all = attributes.pop("noop_with_empty_axes", 0)
            if not attributes.get("axes"):
                if keep_all:
                    return None
                attributes["axes"] = tuple(range(rank))
        if op == "Attention" and "scale" not in attributes:
            width = kind.shape[-1] if kind.shape else None
            if not isinstance(width, int) or not width:
                return None
            attributes["scale"] = float(1 / np.sqrt(np.float32(width)))
        if op == "Slice":
            starts = attributes["starts"]
            assert isinstance(starts, tuple)
            attributes.setdefault("axes", tuple(range(len(starts))))
            attributes.setdefault("steps", (1,) * len(starts))
        if op == "Split" and "split" not in attributes:
            sizes = _equal_parts(kind, attributes["axis"], results)
            if sizes is None:
                return None
            attributes["split"] = sizes
        if op == "Pad" and "axes" in attributes:
            pads = _pads_of_all_axes(ints(attributes["pads"]), ints(attributes.pop("axes")), rank)
            if pads is None:
                return None
            attributes["pads"] = pads
        if op in WINDOWED:
            try:
                return written_out(op, attributes, kind, self._type(operands, 1))
            except (TypeInferenceError, KeyError):
                return None
        return attributes

    def _open_target(self, operands: Sequence[Ref | None]) -> tuple[int, ...] | None:
        """Of a Reshape to sizes that are computed of open dimensions."""
        kind, sizes = self._type(operands, 0), operands[1] if len(operands) > 1 else None
        if kind is None or kind.shape is None or sizes not in self.open_sizes:
            return None
        return symbolic.target(self.open_sizes[sizes], kind.shape)

    def _type(self, operands: Sequence[Ref | None], place: int) -> TensorType | None:
        ref = operands[place] if place < len(operands) else None
        return None if ref is None else self.nodes[ref.node].types[ref.index]

    def _is_scalar_of(self, array: np.ndarray, operand: Ref | None) -> bool:
        """Whether an array of one element neither widens nor deepens the operand that it meets."""
        kind = None if operand is None else self.nodes[operand.node].types[operand.index]
        if kind is None or kind.rank is None:
            return False
        return array.size == 1 and array.ndim <= kind.rank and array.dtype.name == kind.dtype

    def _constant_array(self, ref: Ref) -> np.ndarray | None:
        node = self.nodes[ref.node]
        return node.payload.array() if isinstance(node.payload, InitializerPayload) and node.op == WEIGHT else None

    def _opaque(self, proto: onnx.NodeProto) -> Node:
        for tensor in tensors_in(proto):
            if is_outside(tensor):
                InitializerPayload(tensor, self.folder).check()
        captures = tuple(n for n in dict.fromkeys(_captured_names(proto)) if n in self.values)
        refs = [self._ref(name, proto) for name in (*proto.input, *captures)]
        return Node(
            op=_qualified_name(proto),
            inputs=tuple(refs),
            attributes={},
            types=self._opaque_types(proto),
            names=tuple(proto.output),
            payload=OpaquePayload(proto, captures, self.folder),
            label=proto.name,
        )

    def _opaque_types(self, proto: onnx.NodeProto) -> tuple[TensorType | None, ...]:
        """As ONNX infers them from the model; where that leaves a size open, from what is known of the operands."""
        known = tuple(self.known_types.get(name) for name in proto.output)
        if all(kind is None or kind.is_static for kind in known) and any(known):
            return known
        refs = {name: self.values[name] for name in proto.input if name}
        types = {name: kind for name, ref in refs.items() if (kind := self._type([ref], 0)) is not None}
        constants = {
            name: payload.proto
            for name, ref in refs.items()
            if isinstance(payload := self.nodes[ref.node].payload, InitializerPayload) and is_small(payload.proto)
        }
        if len(types) < len(refs):
            return known
        inferred = infer_node_types(proto, self.model, types, constants)
        merged = [_merged(inferred.get(name), kind) for name, kind in zip(proto.output, known, strict=True)]
        return (_merged(self._type_by_sizes(proto), merged[0]), *merged[1:])

    def _type_by_sizes(self, proto: onnx.NodeProto) -> TensorType | None:
        """What is known of a first result because of open sizes among the operands."""
        refs = [self._ref(name, proto) for name in proto.input]
        kind = self._type(refs, 0)
        if kind is None or not self._is_standard(proto) or all(ref not in self.open_sizes for ref in refs):
            return None
        return symbolic.typed(proto, kind, [None if ref is None else self._numbers(ref) for ref in refs])


def _merged(kind: TensorType | None, other: TensorType | None) -> TensorType | None:
    """What two inferences tell of a value: of a dimension a number before a symbol, and a symbol before nothing."""
    if kind is None or other is None or kind.rank != other.rank:
        return kind if other is None or (kind is not None and kind.shape is not None) else other
    if kind.shape is None or other.shape is None:
        return kind
    pairs = zip(kind.shape, other.shape, strict=True)
    return TensorType(kind.dtype, tuple(o if k is None or isinstance(o, int) else k for k, o in pairs))


def _remarks(proto: onnx.NodeProto) -> onnx.NodeProto | None:
    """What the node says of itself that nobody computes with."""
    if not proto.doc_string and not proto.metadata_props:
        return None
    remarks = onnx.NodeProto()
    remarks.CopyFrom(proto)  # whole, as a text that is not UTF-8 cannot be assigned
    for field in {f.name for f, _ in proto.ListFields()} - {"doc_string", "metadata_props"}:
        remarks.ClearField(field)
    return remarks


def _qualified_name(proto: onnx.NodeProto) -> str:
    """As operators are called here: with the domain in front, but for ai.onnx."""
    domain = "" if proto.domain in ONNX_DOMAINS else f"{proto.domain}."
    return f"{domain}{proto.op_type}"


def _data_operands(op: str, given: int, opset: int) -> int:
    """How many of the operands carry data rather than parameters."""
    operands = [p.operand for p in PARAMETERS.get(op, ()) if opset >= p.since]
    return min([given, *operands])


def _is_half(kind: TensorType) -> bool:
    """Of what is computed in half precision only the runtime knows where it rounds: it is not computed here."""
    return kind.dtype in ("float16", "bfloat16")


def _can_be_written(kind: TensorType) -> bool:
    """ONNX has 64 bits for a dimension; sizes that a model merely declares may multiply to more."""
    return all(d <= _LARGEST_DIMENSION for d in kind.shape or () if isinstance(d, int))


def _from_the_end(op: str, attributes: dict[str, AttributeValue], rank: int | None) -> None:
    name = AXIS_ATTRIBUTES.get(op)
    if name is None:
        return
    if rank is None:
        raise TypeInferenceError(f"{op}: an operand of unknown rank")
    value = attributes[name]
    axes = value if isinstance(value, tuple) else (value,)
    if any(not isinstance(a, int) or not -rank <= a < rank for a in axes):
        raise TypeInferenceError(f"{op}: axes {axes} of a tensor of rank {rank}")
    moved = tuple(a % rank - rank for a in axes if isinstance(a, int))
    attributes[name] = moved if isinstance(value, tuple) else moved[0]


def interface_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that a caller may feed."""
    if not declares_weights(model):
        return list(model.graph.input)
    weights = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in weights]


def _equal_parts(kind: TensorType, axis: AttributeValue, parts: int) -> tuple[int, ...] | None:
    """Parts of equal size, the last one smaller if need be; None where that is not possible or not known."""
    shape = kind.shape or ()
    size = shape[axis] if isinstance(axis, int) and -len(shape) <= axis < len(shape) else None
    if not isinstance(size, int) or not parts:
        return None
    part = -(-size // parts)
    last = size - part * (parts - 1)
    return (*(part,) * (parts - 1), last) if last >= 0 else None


def _pads_of_all_axes(pads: tuple[int, ...], axes: tuple[int, ...], rank: int) -> tuple[int, ...] | None:
    """Pads that were given for some axes; None where these are not so many distinct axes."""
    places = [axis + rank if axis < 0 else axis for axis in axes]
    if len(pads) != 2 * len(axes) or len(set(places)) < len(axes) or any(not 0 <= p < rank for p in places):
        return None
    full = [0] * 2 * rank
    for given, place in enumerate(places):
        full[place], full[rank + place] = pads[given], pads[len(axes) + given]
    return tuple(full)


def _is_integer(array: np.ndarray) -> bool:
    return array.dtype.kind in "iu"


def _int_tuple(array: np.ndarray) -> tuple[int, ...]:
    return tuple(int(v) for v in array.reshape(-1))


def _attribute_value(proto: onnx.AttributeProto) -> AttributeValue | None:
    """None for what no known operator has: tensors, graphs, references to a function's attributes."""
    if proto.ref_attr_name:
        return None
    value = helper.get_attribute_value(proto)
    match proto.type:
        case onnx.AttributeProto.FLOAT | onnx.AttributeProto.INT:
            return value
        case onnx.AttributeProto.STRING:
            return value.decode()
        case onnx.AttributeProto.INTS | onnx.AttributeProto.FLOATS:
            return tuple(value)
    return None


def constant_tensor(proto: onnx.NodeProto) -> onnx.TensorProto | None:
    """What a Constant node holds, named as its output; None where that is no tensor of numbers."""
    attribute = next(iter(proto.attribute), None)
    if attribute is None or attribute.ref_attr_name:
        return None
    match attribute.name:
        case "value":
            tensor = onnx.TensorProto()
            tensor.CopyFrom(attribute.t)
        case "value_float":
            tensor = numpy_helper.from_array(np.array(attribute.f, dtype=np.float32))
        case "value_int":
            tensor = numpy_helper.from_array(np.array(attribute.i, dtype=np.int64))
        case "value_floats":
            tensor = numpy_helper.from_array(np.array(attribute.floats, dtype=np.float32))
        case "value_ints":
            tensor = numpy_helper.from_array(np.array(attribute.ints, dtype=np.int64))
        case _:
            return None
    tensor.name = proto.output[0]
    return tensor


def _captured_names(proto: onnx.NodeProto) -> Iterator[str]:
    """Names that the node's subgraphs read and do not define themselves."""
    for attribute in proto.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from free_names(graph)


def free_names(graph: onnx.GraphProto) -> Iterator[str]:
    """Names that a subgraph takes from outside, in the order of their first use."""
    defined = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    defined |= {t.values.name for t in graph.sparse_initializer}
    for node in graph.node:
        for name in (*node.input, *_captured_names(node)):
            if name and name not in defined:
                yield name
        defined.update(node.output)
    for output in graph.output:
        if output.name not in defined:
            yield output.name


def _stripped(model: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    """Everything but the computation: opsets, functions, metadata, inputs and outputs; defaults of inputs
    stay.
    """
    stripped = onnx.ModelProto()
    copy_fields(model, stripped, skipped={"graph"})
    computation = {"node", "input", "initializer", "sparse_initializer", "value_info"}
    copy_fields(model.graph, stripped.graph, skipped=computation)
    stripped.graph.input.extend(interface_inputs(model))
    overridable = {i.name for i in stripped.graph.input}
    for tensor in model.graph.initializer:
        if tensor.name in overridable:
            stripped.graph.initializer.add().CopyFrom(InitializerPayload(tensor, folder).self_contained())
    return stripped
