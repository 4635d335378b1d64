"""V as an ONNX model, which reads match tokens where PyTorch is not installed.

    model = onnx_encoder(MatchLevelModel.load(folder))

Its inputs are the parts of a `TokenBatch` by their names. Its output `reading` has the columns `taken`, `gain`,
`saving` and `embedding` of a `TokenReading`. A text beside it, `vocabulary`, says in JSON what the numbers of operators
and the columns of features mean.

The invariant: it computes what `TokenEncoder` does, up to the last digits, and equal encoders give equal bytes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import cast

import numpy as np

from rlflow.agents.match_level.layers_network import LayersNetwork, weights_of
from rlflow.agents.match_level.token_reader import SCORES
from rlflow.nn.message_passing import MessagePassing
from rlflow.onnx_io.network import Model, element_of
from rlflow.representation.edit_graph import ADDED
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.token_encoder import LARGEST_CORRECTION, LARGEST_SAVING, TokenEncoder

_ZERO, _ONE = np.int64(0), np.array([1], np.int64)


def onnx_encoder(model: MatchLevelModel) -> Model:
    """Write V of a world model."""
    vocabulary = model.arguments.vocabulary
    network, columns = _EncoderNetwork(len(vocabulary.features)), SCORES + model.arguments.config.encoder_width
    reading = {"reading": network.reading(model.encoder)}
    return network.model(reading, ["tokens", columns], {"vocabulary": json.dumps(asdict(vocabulary))})


class _EncoderNetwork(LayersNetwork):
    """A `TokenEncoder`, written step by step as it computes."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.op = self.input("op", np.int64, ["nodes"])
        self.role = self.input("role", np.int64, ["nodes"])
        self.features = self.input("features", np.float32, ["nodes", num_features])
        self.price = self.input("price", np.float32, ["nodes"])
        self.is_after = self.input("is_after", np.bool_, ["nodes"])
        self.twin = self.input("twin", np.int64, ["nodes"])
        self.token = self.input("token", np.int64, ["nodes"])
        self.sender = self.input("sender", np.int64, ["edges"])
        self.receiver = self.input("receiver", np.int64, ["edges"])
        self.num_tokens = self.input("num_tokens", np.int64, [])
        self._num_nodes = self.add("Shape", self.op)

    def reading(self, encoder: TokenEncoder) -> str:
        """Write `TokenEncoder.forward`; return its columns side by side."""
        nodes = self._embedded(encoder)
        for block in encoder.blocks:
            nodes = self._passed(cast(MessagePassing, block), nodes)
        nodes = self.layers(encoder.norm, nodes)

        after = self._cast(self.column(self.is_after), np.float32)
        before = self.add("Sub", np.float32(1), after)
        sides = self._beside(self.add("Mul", nodes, before), self.add("Mul", nodes, after))
        embedding = self.layers(encoder.readout, self._per_token(sides))
        known = self.add("Asinh", self._known_saving(encoder, nodes))
        told = self._beside(embedding, known)
        correction, _ = self._two_columns(self.layers(encoder.saving, told))
        saving = self._clipped(self.add("Add", known, correction), LARGEST_SAVING)
        taken, gain = self._two_columns(self.layers(encoder.worth, told))
        return self._beside(taken, self._softplus(gain), saving, embedding)

    def _embedded(self, encoder: TokenEncoder) -> str:
        kind = [
            self.add("Gather", *weights_of(table), numbers)
            for table, numbers in ((encoder.operator, self.op), (encoder.role, self.role))
        ]
        return self.add("Sum", *kind, self.layers(encoder.features, self.features))

    def _passed(self, block: MessagePassing, nodes: str) -> str:
        """`MessagePassing.forward` over the edges and against them."""
        normed = self.layers(block.norm, nodes)
        senders = self._moved(self.layers(block.from_senders, normed), self.sender, self.receiver)
        receivers = self._moved(self.layers(block.from_receivers, normed), self.receiver, self.sender)
        return self.add("Add", nodes, self.layers(block.update, self._beside(normed, senders, receivers)))

    def _moved(self, values: str, source: str, target: str) -> str:
        """Sum of the rows at the sources of edges, at their targets."""
        return self._summed(self.add("Gather", values, source), target, self._num_nodes)

    def _known_saving(self, encoder: TokenEncoder, nodes: str) -> str:
        """`TokenEncoder._known_saving` as a column."""
        has_twin = self.column(self.add("GreaterOrEqual", self.twin, _ZERO))
        twin = self.add("Gather", nodes, self.add("Max", self.twin, _ZERO))
        change = self.add("Sub", nodes, self.add("Where", has_twin, twin, np.float32(0)))
        correction = self._clipped(self.layers(encoder.correction, self._beside(nodes, change)), LARGEST_CORRECTION)
        price = self.add("Mul", self.column(self.price), self.add("Exp", correction))
        signed = self.add("Where", self.column(self.is_after), self.add("Neg", price), price)
        is_changed = self.column(self.add("LessOrEqual", self.role, np.int64(ADDED)))
        return self._per_token(self.add("Where", is_changed, signed, np.float32(0)))

    def _per_token(self, nodes: str) -> str:
        """Sum of the rows of each token's nodes."""
        return self._summed(nodes, self.token, self.add("Reshape", self.num_tokens, _ONE))

    def _summed(self, values: str, place: str, size: str) -> str:
        """`scatter_sum` of rows."""
        width = self.add("Shape", values, start=1)
        zeros = self.add("ConstantOfShape", self.add("Concat", size, width, axis=0))
        return self.add("ScatterND", zeros, self.column(place), values, reduction="add")

    def _softplus(self, values: str) -> str:
        """Compute it in doubles: the last floats of an array ONNX Runtime rounds otherwise than the others."""
        return self._cast(self.add("Softplus", self._cast(values, np.float64)), np.float32)

    def _clipped(self, values: str, most: float) -> str:
        return self.add("Clip", values, np.float32(-most), np.float32(most))

    def _cast(self, values: str, dtype: type[np.generic]) -> str:
        return self.add("Cast", values, to=element_of(dtype))

    def _beside(self, *columns: str) -> str:
        return self.add("Concat", *columns, axis=1)

    def _two_columns(self, rows: str) -> tuple[str, str]:
        first, second = (self.add("Gather", rows, np.array([number]), axis=1) for number in range(2))
        return first, second
