"""The images that ONNX Runtime keeps in blocks of channels on the CPU, and where it reorders them.

Convolutions are fastest on images whose channels lie in blocks (NCHWc, 8 channels on AVX2 and 16 on AVX-512). At its
highest level ONNX Runtime blocks what convolutions and pools make, keeps it so through whatever works on either layout,
and puts a reorder where the two layouts meet, one for each image however many read it:

    image -> Conv -> Relu -> MaxPool -> Conv -> Flatten            reordered: what Flatten reads
    image -> Conv -> Exp -> Conv -> Flatten                        as well: what Exp reads, and what it makes

Whether an image is blocked follows from the nodes before it alone, and a reorder from that and from its readers.

The invariant: the reorders are those of ONNX Runtime's own optimised model (tests/cost/test_blocked_layout.py), of
version 1.32. It is not followed into fusions of more than two operators: a Gelu or a scaled SiLU that is spelled out
stays blocked there and is reordered here, as is a Clip at 0 behind a Relu. A constant shift is taken up by the
convolution before it in either order of the operands here, there if it is the second one. Resize and Upsample are taken
for operators of plain images.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple, Protocol

from rlflow.ir.node import Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.blocking import BLOCKING, Blocking

_ALIGNED = 4  # ONNX Runtime reorders images whose number of channels is a multiple of this
_CHANNEL_AXIS = -3  # of images, as the library counts
CHANNELS_FIRST, _CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
STARTING = frozenset(
    name for name, part in BLOCKING.items() if part in {Blocking.CONVOLUTION, Blocking.POOL, Blocking.GLOBAL_POOL}
)
"""Operators that may block an image which no other has blocked."""

PADS = frozenset(name for name, part in BLOCKING.items() if part is Blocking.PAD)
"""Operators that read their operand in the layout in which it is read from them."""

_WITHOUT_ATTRIBUTES = {Blocking.FUNCTION, Blocking.TAKEN_UP, Blocking.GLOBAL_POOL}


class Layout(IntEnum):
    """The layout of a node's result; OPEN is blocked by a convolution that can still take up what comes after it."""

    PLAIN = 0
    BLOCKED = 1
    OPEN = 2


class Reorder(NamedTuple):
    """A value that is brought from one layout to the other, and its type."""

    value: Ref
    from_blocked: bool
    type: TensorType | None


class Scene(Protocol):
    """A graph as far as the layout depends on it, perhaps one that was not made."""

    def node(self, identifier: int) -> Node:
        """Return a node whose operands are `operands`."""
        ...

    def operands(self, identifier: int) -> tuple[Ref | None, ...]: ...

    def readers(self, identifier: int) -> Collection[int]: ...

    def is_input(self, identifier: int) -> bool:
        """Return True for an input of the model."""
        ...

    def is_output(self, value: Ref) -> bool: ...

    def layout(self, identifier: int) -> int: ...


def laid_out(scene: Scene, identifier: int, block: int) -> Layout:
    """Return the layout of a node's result from those of its operands."""
    node = scene.node(identifier)
    part = _part(node)
    return Layout.PLAIN if part is None else _RULES[part](_Place(scene, identifier, node, block))


def reorders(scene: Scene, identifier: int, block: int) -> Iterator[Reorder]:
    """List the reorders of a node's results."""
    node = scene.node(identifier)
    if node.constant or _is_taken_up(scene, identifier, node):
        return
    is_blocked, all_readers = scene.layout(identifier) > Layout.PLAIN, scene.readers(identifier)
    for index, tensor_type in enumerate(node.types):
        value, readers = Ref(identifier, index), all_readers
        if len(node.types) > 1:
            readers = [r for r in readers if value in scene.operands(r)]
        taken = [_takes_blocked(scene, r, block, from_blocked=is_blocked) for r in readers]
        stays = scene.is_output(value) or not all(taken)
        # a reorder may transpose as well, for a reader alone
        is_one_with_it = is_permutation(node, CHANNELS_FIRST) and not stays and len(readers) == 1
        if stays if is_blocked else any(taken) and not is_one_with_it:
            yield Reorder(value, is_blocked, tensor_type)


def is_permutation(node: Node, permutation: tuple[int, ...]) -> bool:
    """Return True for a Transpose by this permutation."""
    return _part(node) is Blocking.PERMUTATION and node.attributes["perm"] == permutation


def _part(node: Node) -> Blocking | None:
    part = BLOCKING.get(node.op)
    if part is None or (node.is_opaque and part not in _WITHOUT_ATTRIBUTES):
        return None
    return part


class _Place(NamedTuple):
    """A node where it stands."""

    scene: Scene
    identifier: int
    node: Node
    block: int

    def operand_layout(self, index: int = 0) -> int:
        ref = self.scene.operands(self.identifier)[index]
        return Layout.PLAIN if ref is None or ref.index else self.scene.layout(ref.node)

    def type_of(self, index: int) -> TensorType | None:
        ref = self.scene.operands(self.identifier)[index]
        return None if ref is None else self.scene.node(ref.node).types[ref.index]

    def shape(self, index: int) -> tuple[object, ...]:
        """Return the shape of an operand of float32, () where that is not known."""
        tensor_type = self.type_of(index)
        return () if tensor_type is None or tensor_type.dtype != "float32" else tensor_type.shape or ()

    def is_constant(self, index: int) -> bool:
        ref = self.scene.operands(self.identifier)[index]
        return ref is not None and self.scene.node(ref.node).constant

    @property
    def varying(self) -> list[int]:
        return [i for i in range(len(self.node.inputs)) if not self.is_constant(i)]

    def is_sole_reader(self, index: int) -> bool:
        """Return True if nobody else reads this operand."""
        ref = self.scene.operands(self.identifier)[index]
        return ref is not None and len(self.scene.readers(ref.node)) == 1 and not self.scene.is_output(ref)


def _convolution(place: _Place) -> Layout:
    """Filters of two spatial axes and a bias, both constant, whose channels ONNX Runtime can reorder."""
    filters, operands = place.shape(1), place.scene.operands(place.identifier)
    if len(filters) != 4 or len(place.shape(0)) != 4 or place.varying != [0] or len(operands) > 3:
        return Layout.PLAIN
    made, read, group = filters[0], filters[1], place.node.attributes["group"]
    assert isinstance(made, int)
    assert isinstance(read, int)
    assert isinstance(group, int)
    if group == 1:
        fits = read < place.block or read % _ALIGNED == 0
    elif read == 1 and made == group:
        fits = made % _ALIGNED == 0
    else:
        fits = read % place.block == 0 and made // group % place.block == 0
    if not fits:
        return Layout.PLAIN
    return Layout.BLOCKED if "activation" in place.node.attributes else Layout.OPEN


def _reads_plain(place: _Place) -> bool:
    """Return True for a convolution of so few channels that it reads a plain image and makes a blocked one."""
    read = place.shape(1)[1]
    return place.node.attributes["group"] == 1 and isinstance(read, int) and read < place.block


def _fills_blocks(place: _Place, index: int) -> bool:
    shape = place.shape(index)
    return len(shape) == 4 and isinstance(shape[1], int) and shape[1] % place.block == 0


def _pool(place: _Place) -> Layout:
    return Layout.BLOCKED if _fills_blocks(place, 0) and len(place.node.types) == 1 else Layout.PLAIN


def _global_pool(place: _Place) -> Layout:
    """Blocked after a blocked image, and after an input of the model, of which ONNX Runtime does not ask."""
    ref = place.scene.operands(place.identifier)[0]
    is_input = ref is not None and place.scene.is_input(ref.node)
    return _pool(place) if is_input or place.operand_layout() else Layout.PLAIN


def _function(place: _Place) -> Layout:
    return Layout(min(place.operand_layout(), Layout.BLOCKED)) if len(place.node.types) == 1 else Layout.PLAIN


def _taken_up(place: _Place) -> Layout:
    is_open = place.operand_layout() == Layout.OPEN and place.is_sole_reader(0)
    return Layout.BLOCKED if is_open else Layout.PLAIN


def _normalisation(place: _Place) -> Layout:
    """A convolution takes it up, or it becomes one itself."""
    if place.varying != [0]:
        return Layout.PLAIN
    return _scaled(place, 0)


def _scaled(place: _Place, index: int) -> Layout:
    before = place.operand_layout(index)
    if before == Layout.OPEN and place.is_sole_reader(index):
        return Layout.OPEN
    return Layout(min(before, Layout.BLOCKED))


def _sum(place: _Place) -> Layout:
    varying = place.varying
    if len(varying) == 1 and len(place.node.inputs) == 2:
        taken_up = _scaled(place, varying[0]) if _is_by_channel(place, 1 - varying[0]) else Layout.PLAIN
        return taken_up if taken_up == Layout.OPEN else Layout.PLAIN
    channels = {place.shape(i)[1:2] for i in varying}
    return Layout.BLOCKED if _all_blocked(place) and len(channels) == 1 else Layout.PLAIN


def _product(place: _Place) -> Layout:
    varying = place.varying
    if len(varying) == 1:
        taken_up = _scaled(place, varying[0])
        if _is_by_channel(place, 1 - varying[0]):
            return taken_up
        return taken_up if taken_up == Layout.OPEN and _is_scalar(place, 1 - varying[0]) else Layout.PLAIN
    shapes = {place.shape(i) for i in varying}
    return Layout.BLOCKED if _all_blocked(place) and len(shapes) == 1 else Layout.PLAIN


def _joint(place: _Place) -> Layout:
    fits = place.node.attributes["axis"] == _CHANNEL_AXIS and all(
        _fills_blocks(place, i) for i in range(len(place.node.inputs))
    )
    return Layout.BLOCKED if fits and _all_blocked(place) else Layout.PLAIN


def _all_blocked(place: _Place) -> bool:
    return all(place.operand_layout(i) for i in range(len(place.node.inputs)))


def _is_by_channel(place: _Place, index: int) -> bool:
    """Return True for a constant (C, 1, 1) or (1, C, 1, 1)."""
    made = place.node.types[0]
    channels = None if made is None or made.shape is None or len(made.shape) != 4 else made.shape[1]
    return place.shape(index) in ((channels, 1, 1), (1, channels, 1, 1))


def _is_scalar(place: _Place, index: int) -> bool:
    tensor_type = place.type_of(index)
    return tensor_type is not None and tensor_type.shape == ()


def _pad(place: _Place) -> Layout:
    is_taken_up = _is_taken_up(place.scene, place.identifier, place.node)
    return Layout(min(place.operand_layout(), Layout.BLOCKED)) if is_taken_up else Layout.PLAIN


def _is_taken_up(scene: Scene, identifier: int, node: Node) -> bool:
    """Return True for a Pad that becomes one with the window that reads it."""
    if node.op not in PADS or scene.is_output(Ref(identifier)):
        return False
    readers = scene.readers(identifier)
    return len(readers) == 1 and all(takes_up_pad(scene.node(r), node) for r in readers)


def takes_up_pad(window: Node, pad: Node) -> bool:
    """Return True if a Pad becomes one with a window, its only reader."""
    if pad.is_opaque:
        return False
    pads = pad.attributes["pads"]
    assert isinstance(pads, tuple)
    is_plain = len(pads) == 8 and not any((*pads[:2], *pads[4:6])) and not pad.attributes["constant_value"]
    return is_plain and _takes_up_pads(window)


def _takes_up_pads(node: Node) -> bool:
    """Return True for a window over whose pads nothing else is said."""
    part = _part(node)
    if part is Blocking.POOL:
        return node.attributes.get("count_include_pad") is not None
    return part is Blocking.CONVOLUTION


def _takes_blocked(scene: Scene, identifier: int, block: int, *, from_blocked: bool) -> bool:
    """Return True if a node reads its image blocked."""
    node = scene.node(identifier)
    part = _part(node)
    if part is Blocking.PERMUTATION:
        return from_blocked and is_permutation(node, _CHANNELS_LAST)
    if part is Blocking.PAD and _is_taken_up(scene, identifier, node):
        (reader,) = scene.readers(identifier)
        return _takes_blocked(scene, reader, block, from_blocked=from_blocked)
    if not scene.layout(identifier):
        return False
    return part is not Blocking.CONVOLUTION or not _reads_plain(_Place(scene, identifier, node, block))


_RULES: Mapping[Blocking, Callable[[_Place], Layout]] = {
    Blocking.CONVOLUTION: _convolution,
    Blocking.POOL: _pool,
    Blocking.GLOBAL_POOL: _global_pool,
    Blocking.FUNCTION: _function,
    Blocking.NORMALISATION: _normalisation,
    Blocking.TAKEN_UP: _taken_up,
    Blocking.SUM: _sum,
    Blocking.PRODUCT: _product,
    Blocking.JOINT: _joint,
    Blocking.PAD: _pad,
    Blocking.PERMUTATION: lambda place: Layout.PLAIN,
}
