"""Damage to ONNX files: to their bytes, to the fields that protobuf finds there, and to what the model says."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import numpy as np
import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

NUMBERS = (-(2**63), -2, -1, 0, 1, 2, 3, 7, 99, 2**16, 2**31, 2**32 + 1, 2**40, 2**62, 2**63 - 1)
TEXTS = ("", "nowhere", "two\nlines", "é", "x" * 5000, "../x", "Relu", "Loop", "ai.onnx.ml", "com.microsoft")
LOCATIONS = (
    "weights.bin",
    "../weights.bin",
    "../../../../../../../../etc/passwd",
    "/etc/passwd",
    "/dev/zero",
    "folder/../../weights.bin",
    ".",
    "",
    "two\nlines",
    "x" * 5000,
)
_LONGEST_RANGE = 64
_ENDLESS = (b"\xff" * 9 + b"\x01", b"\xff\xff\xff\xff\x0f", b"\xff\xff\x7f", b"\x80" * 10)  # varints
_LENGTH_DELIMITED = 2

Mutation = Callable[[Random, Any], Any]


def mutated(random: Random, content: bytes) -> tuple[str, bytes]:
    """A file after one to three mutations, whose names come first."""
    names: list[str] = []
    wanted = random.choice((1, 1, 2, 3))
    while len(names) < wanted:
        mutation = random.choice((*OF_BYTES, *OF_MODELS))
        try:
            content = mutation(random, content) if mutation in OF_BYTES else _in_model(mutation, random, content)
        except (LookupError, TypeError, ValueError, DecodeError, EncodeError):
            continue  # there is nothing of the kind, it cannot hold that, or protobuf reads nothing any more
        names.append(mutation.__name__)
    return " and ".join(names), content


def mutated_bytes(random: Random, content: bytes) -> tuple[str, bytes]:
    """Any file after one mutation of its bytes."""
    while True:
        mutation = random.choice(OF_BYTES)
        with suppress(LookupError, TypeError, ValueError):  # where it looks for fields, which other files have not
            return mutation.__name__, mutation(random, content)


def _in_model(mutation: Mutation, random: Random, content: bytes) -> bytes:
    model = ModelProto.FromString(content)
    mutation(random, model)
    return model.SerializeToString()


def _place(random: Random, content: bytes) -> int:
    """Where a field begins, more often than not: most bytes of a model belong to weights, which may have any value."""
    anywhere = random.random() < 0.3
    return random.randrange(len(content)) if anywhere else random.choice([f.start for f in fields(content)])


def _range(random: Random, content: bytes) -> slice:
    start = _place(random, content)
    return slice(start, start + random.randint(1, random.choice((2, _LONGEST_RANGE))))


def flip_a_bit(random: Random, content: bytes) -> bytes:
    place = _place(random, content)
    return content[:place] + bytes([content[place] ^ 1 << random.randrange(8)]) + content[place + 1 :]


def overwrite_a_range(random: Random, content: bytes) -> bytes:
    part = _range(random, content)
    return content[: part.start] + random.randbytes(part.stop - part.start) + content[part.stop :]


def delete_a_range(random: Random, content: bytes) -> bytes:
    part = _range(random, content)
    return content[: part.start] + content[part.stop :]


def repeat_a_range(random: Random, content: bytes) -> bytes:
    part = _range(random, content)
    return content[: part.stop] + content[part] * random.randint(1, 8) + content[part.stop :]


def truncate(random: Random, content: bytes) -> bytes:
    return content[: _place(random, content)]


def insert_an_endless_number(random: Random, content: bytes) -> bytes:
    part = _range(random, content)
    return content[: part.start] + random.choice(_ENDLESS) + content[part.start :]


class Field(NamedTuple):
    """Where a field lies in the file: its key begins at `start`, its content at `body`, the next field at `end`."""

    start: int
    body: int
    end: int
    number: int
    wire_type: int


def fields(
    content: bytes, start: int = 0, end: int | None = None, kind: Any = ModelProto.DESCRIPTOR
) -> Iterator[Field]:
    """Every field of a model's file, those of messages inside it too. LookupError where the file is no model."""
    place, end = start, len(content) if end is None else end
    while place < end:
        key, body = _varint(content, place)
        number, wire_type = key >> 3, key & 7
        known = kind.fields_by_number[number]
        stop = body + {1: 8, 5: 4}.get(wire_type, 0)
        if wire_type == 0:
            stop = _varint(content, body)[1]
        elif wire_type == _LENGTH_DELIMITED:
            length, body = _varint(content, body)
            stop = body + length
            if known.message_type is not None:
                yield from fields(content, body, stop, known.message_type)
        yield Field(place, body, stop, number, wire_type)
        place = stop


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """The number that begins here, and where the next thing does."""
    number = shift = 0
    while content[place] & 0x80:
        number |= (content[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return number | content[place] << shift, place + 1


def renumber_a_field(random: Random, content: bytes) -> bytes:
    """It becomes another field of the same wire type."""
    field = random.choice([f for f in fields(content) if f.number < 16])
    key = bytes([random.randint(1, 15) << 3 | field.wire_type])
    return content[: field.start] + key + content[field.start + 1 :]


def change_a_wire_type(random: Random, content: bytes) -> bytes:
    field = random.choice(list(fields(content)))
    key = bytes([content[field.start] & 0xF8 | random.randrange(8)])
    return content[: field.start] + key + content[field.start + 1 :]


def change_a_length(random: Random, content: bytes) -> bytes:
    field = random.choice([f for f in fields(content) if f.wire_type == _LENGTH_DELIMITED])
    last = bytes([random.randrange(128)])
    return content[: field.body - 1] + last + content[field.body :]


def swap_two_fields(random: Random, content: bytes) -> bytes:
    """One is written where the other was, whatever messages they belong to."""
    first, second = sorted(random.sample(list(fields(content)), 2))
    if second.start < first.end:
        raise LookupError("one lies in the other")
    parts = (content[first.start : first.end], content[second.start : second.end])
    between = content[first.end : second.start]
    return content[: first.start] + parts[1] + between + parts[0] + content[second.end :]


def _graphs(model: ModelProto) -> list[GraphProto]:
    inner = [g for n in model.graph.node for a in n.attribute for g in (a.g, *a.graphs) if g.node]
    return [model.graph, *inner]


def _nodes(model: ModelProto) -> list[NodeProto]:
    return [node for graph in _graphs(model) for node in graph.node]


def _tensors(model: ModelProto) -> list[TensorProto]:
    held = [a.t for n in _nodes(model) for a in n.attribute if a.type == AttributeProto.TENSOR]
    return [*held, *(tensor for graph in _graphs(model) for tensor in graph.initializer)]


def _attributes(model: ModelProto) -> list[AttributeProto]:
    return [attribute for node in _nodes(model) for attribute in node.attribute]


def _values(model: ModelProto) -> list[onnx.ValueInfoProto]:
    return [v for graph in _graphs(model) for v in (*graph.input, *graph.output, *graph.value_info)]


def read_another_value(random: Random, model: ModelProto) -> None:
    """One that does not exist, that is computed later (a cycle), or that has another type."""
    node = random.choice([n for n in _nodes(model) if n.input])
    names = [name for other in _nodes(model) for name in (*other.input, *other.output)]
    node.input[random.randrange(len(node.input))] = random.choice((*TEXTS, *names))


def write_another_value(random: Random, model: ModelProto) -> None:
    """Two of one name, or nothing under a name that is read."""
    node = random.choice(_nodes(model))
    names = [name for other in _nodes(model) for name in (*other.input, *other.output)]
    node.output[random.randrange(len(node.output))] = random.choice((*TEXTS, *names))


def add_or_drop_operands(random: Random, model: ModelProto) -> None:
    node = random.choice(_nodes(model))
    place = random.choice((node.input, node.output))
    if random.random() < 0.5:
        place.append(random.choice((*TEXTS, *place)))
    else:
        del place[random.randrange(len(place))]


def change_an_operator(random: Random, model: ModelProto) -> None:
    node = random.choice(_nodes(model))
    node.op_type = random.choice((*TEXTS, *(n.op_type for n in _nodes(model)), *onnx_operators()))


def onnx_operators() -> list[str]:
    return sorted({schema.name for schema in onnx.defs.get_all_schemas()})


def change_a_domain(random: Random, model: ModelProto) -> None:
    random.choice(_nodes(model)).domain = random.choice(TEXTS)


def change_an_opset(random: Random, model: ModelProto) -> None:
    random.choice(model.opset_import).version = random.choice((*range(1, 27), *NUMBERS))


def change_the_version_of_the_format(random: Random, model: ModelProto) -> None:
    model.ir_version = random.choice((*range(1, 14), *NUMBERS))


def exchange_nodes(random: Random, model: ModelProto) -> None:
    graph = random.choice(_graphs(model))
    first, second = random.sample(range(len(graph.node)), 2)
    kept = [NodeProto.FromString(graph.node[k].SerializeToString()) for k in (second, first)]
    graph.node[first].CopyFrom(kept[0])
    graph.node[second].CopyFrom(kept[1])


def repeat_an_element(random: Random, model: ModelProto) -> None:
    """A node, weight, input, output, opset or attribute comes twice."""
    graph = random.choice(_graphs(model))
    places = (graph.node, graph.initializer, graph.input, graph.output, model.opset_import, _nodes(model)[0].attribute)
    place = random.choice([p for p in places if len(p)])
    place.add().CopyFrom(random.choice(place))


def delete_an_element(random: Random, model: ModelProto) -> None:
    graph = random.choice(_graphs(model))
    node = random.choice(_nodes(model))
    places = (graph.node, graph.initializer, graph.input, graph.output, node.attribute)
    place = random.choice([p for p in places if len(p)])
    del place[random.randrange(len(place))]


def change_a_declared_dimension(random: Random, model: ModelProto) -> None:
    value = random.choice([v for v in _values(model) if v.type.tensor_type.shape.dim])
    dimension = random.choice(value.type.tensor_type.shape.dim)
    if random.random() < 0.3:
        dimension.dim_param = random.choice(TEXTS)
    else:
        dimension.dim_value = random.choice(NUMBERS)


def change_a_declared_type(random: Random, model: ModelProto) -> None:
    value = random.choice(_values(model))
    if random.random() < 0.5:
        value.type.tensor_type.elem_type = random.choice((*range(28), *(n for n in NUMBERS if abs(n) < 2**31)))
    elif random.random() < 0.5:
        value.type.sequence_type.elem_type.tensor_type.elem_type = 1
    else:
        value.ClearField("type")


def change_a_dimension_of_a_weight(random: Random, model: ModelProto) -> None:
    tensor = random.choice(_tensors(model))
    if tensor.dims and random.random() < 0.7:
        tensor.dims[random.randrange(len(tensor.dims))] = random.choice(NUMBERS)
    else:
        tensor.dims.append(random.choice(NUMBERS))


def change_the_type_of_a_weight(random: Random, model: ModelProto) -> None:
    random.choice(_tensors(model)).data_type = random.choice((*range(28), *(n for n in NUMBERS if abs(n) < 2**31)))


def change_the_values_of_a_weight(random: Random, model: ModelProto) -> None:
    """Shapes, axes and indices among them; missing, too few, or of another kind."""
    tensor = random.choice([t for t in _tensors(model) if t.data_location != TensorProto.EXTERNAL])
    values = numpy_helper.to_array(tensor).copy()
    if random.random() < 0.3:
        tensor.ClearField("raw_data")
        tensor.float_data.extend([1.0] * random.choice((0, 1, values.size)))
    elif values.dtype.kind == "i":
        values.flat[random.randrange(values.size)] = random.choice(NUMBERS) % np.iinfo(values.dtype).max
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    else:
        values.flat[random.randrange(values.size)] = random.choice((np.nan, np.inf, 0, -1))
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def move_a_weight_outside(random: Random, model: ModelProto) -> None:
    """To a place that does not exist, that is none of the model's business, or that has no end."""
    tensor = random.choice(_tensors(model))
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=random.choice(LOCATIONS))
    for key in random.sample(("offset", "length", "checksum"), random.randrange(4)):
        tensor.external_data.add(key=key, value=random.choice(("", "x", *map(str, NUMBERS))))


def change_the_value_of_an_attribute(random: Random, model: ModelProto) -> None:
    attribute = random.choice(_attributes(model))
    if attribute.type == AttributeProto.INTS:
        values = [*attribute.ints, random.choice(NUMBERS)]
        del attribute.ints[:]
        attribute.ints.extend(random.sample(values, random.randint(0, len(values))))
    else:
        attribute.i = random.choice(NUMBERS)
        attribute.f = random.choice((float("nan"), float("inf"), -1.0, 0.0, 1e38))
        attribute.s = random.choice((b"", b"SAME_UPPER", b"nowhere", b"\xff\xfe", b"two\nlines"))


def change_the_type_of_an_attribute(random: Random, model: ModelProto) -> None:
    random.choice(_attributes(model)).type = random.randrange(16)


def rename_an_attribute(random: Random, model: ModelProto) -> None:
    attribute = random.choice(_attributes(model))
    attribute.name = random.choice((*TEXTS, *(a.name for a in _attributes(model)), "axis", "perm", "value_ints"))


def add_an_attribute(random: Random, model: ModelProto) -> None:
    node = random.choice(_nodes(model))
    name = random.choice(("axis", "axes", "perm", "pads", "strides", "kernel_shape", "to", "split", "body", "value"))
    value = random.choice((random.choice(NUMBERS), [random.choice(NUMBERS)] * random.randint(1, 5), 0.5, "text"))
    node.attribute.append(helper.make_attribute(name, value))


def name_nothing(random: Random, model: ModelProto) -> None:
    """A value, a weight or the graph under a name that is empty, huge or has two lines."""
    random.choice([*_values(model), *_tensors(model), *_nodes(model), model.graph]).name = random.choice(TEXTS)


def nest_deeply(random: Random, model: ModelProto) -> None:
    """Types inside types, deeper than protobuf reads, or nearly."""
    kind = random.choice(model.graph.input).type
    for _ in range(random.choice((5, 40, 48, 60))):
        kind = kind.sequence_type.elem_type
    kind.tensor_type.elem_type = 1


OF_BYTES: tuple[Mutation, ...] = (
    flip_a_bit,
    overwrite_a_range,
    delete_a_range,
    repeat_a_range,
    truncate,
    insert_an_endless_number,
    renumber_a_field,
    change_a_wire_type,
    change_a_length,
    swap_two_fields,
)
OF_MODELS: tuple[Mutation, ...] = (
    read_another_value,
    write_another_value,
    add_or_drop_operands,
    change_an_operator,
    change_a_domain,
    change_an_opset,
    change_the_version_of_the_format,
    exchange_nodes,
    repeat_an_element,
    delete_an_element,
    change_a_declared_dimension,
    change_a_declared_type,
    change_a_dimension_of_a_weight,
    change_the_type_of_a_weight,
    change_the_values_of_a_weight,
    move_a_weight_outside,
    change_the_value_of_an_attribute,
    change_the_type_of_an_attribute,
    rename_an_attribute,
    add_an_attribute,
    name_nothing,
    nest_deeply,
)
