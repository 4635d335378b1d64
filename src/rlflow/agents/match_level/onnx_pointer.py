"""C over classes of matches as an ONNX model, which points at one of them where PyTorch is not installed.

    model = onnx_pointer(controller)

Its inputs are the parts of a `ClassesObserved` by their names, its output `logits` has one number for each class, then
that of terminate. A text beside it, `max_steps`, is the horizon of the controller's training.

The invariant: it computes what `PointerPolicy` makes of the observation that `TokenLayout` writes, up to the last
digits, and equal controllers give equal bytes.
"""

from __future__ import annotations

import numpy as np
from torch import nn

from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.pointer_policy import LEAST_SAVING, PointerPolicy
from rlflow.errors import InputError
from rlflow.onnx_io.network import Model, Network
from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.world_model.match_level.observation import BEYOND_AN_EDGE, LOGIT_SCALE, SAVING_SCALE

_FIRST, _LAST, _FLAT = np.array([0], np.int64), np.array([1], np.int64), np.array([-1], np.int64)


def onnx_pointer(controller: MatchLevelController) -> Model:
    """Write the policy of a controller. `InputError` for one that is no pointer, such as evolution makes."""
    policy = controller.policy
    if not isinstance(policy, PointerPolicy):
        raise InputError("only a controller that PPO has trained can be part of a policy: controller=pointer_ppo")
    network = _PointerNetwork(controller.arguments.embedding)
    texts = {"max_steps": str(controller.arguments.max_steps)}
    return network.model({"logits": network.logits(policy)}, ["choices"], texts)


class _PointerNetwork(Network):
    """A `PointerPolicy`, written step by step as it computes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = self.input("embedding", np.float32, ["classes", width])
        self.taken = self.input("taken", np.float32, ["classes"])
        self.saving = self.input("saving", np.float32, ["classes"])
        self.apart = self.input("apart", np.float32, ["classes"])
        self.near = self.input("near", np.float32, ["classes"])
        self.gained = self.input("gained", np.float32, [1, 1])

    def logits(self, policy: PointerPolicy) -> str:
        """Write `PointerPolicy.read` and `PointingPolicy.pointer`."""
        nearness = self.add("Sub", np.float32(1), self.add("Mul", self.near, np.float32(1 / FAR_AWAY)))
        scaled = (
            self._scaled(self.taken, LOGIT_SCALE),
            self._scaled(self.saving, SAVING_SCALE),
            self.add("Log", self.add("Add", self.apart, np.float32(1))),
            nearness,
        )
        seen = self.add("Concat", self.embedding, *map(self._column, scaled), axis=1)
        features = self._layers(policy.kind, seen)
        is_near = self.add("Cast", self._column(self.add("Greater", nearness, np.float32(BEYOND_AN_EDGE))), to=1)
        context = self.add(
            "Concat",
            self.add("ReduceMean", features, _FIRST),
            self.add("ReduceMax", features, _FIRST),
            self._mean_of(features, is_near),
            self._scaled(self.add("Asinh", self.gained), SAVING_SCALE),
            axis=1,
        )
        mixed = self.add("Add", self._layers(policy.of_kind, features), self._layers(policy.of_context, context))
        scores = self._flat(self._layers(policy.score, self.add("Tanh", mixed)))
        scores = self.add("Add", scores, self._prior(policy))
        return self.add("Concat", scores, self._flat(self._layers(policy.terminate, context)), axis=0)

    def _prior(self, policy: PointerPolicy) -> str:
        """Write the logits of greedy search and of an expert, as `PointerPolicy.read` weighs them."""
        greedy, expert = policy.prior.detach().numpy()
        saving = self.add("Mul", self.add("Sinh", self.saving), self.apart)
        best, likeliest = (self.add("ReduceMax", column, _FIRST) for column in (saving, self.taken))
        share = self.add("Div", saving, self.add("Max", best, np.float32(LEAST_SAVING)))
        share = self.add("Max", share, np.float32(-1))
        behind = self.add("Sub", self.taken, likeliest)
        return self.add("Add", self._scaled(share, greedy), self._scaled(behind, expert))

    def _mean_of(self, features: str, chosen: str) -> str:
        """(1, H): the mean of the chosen rows; 0 where there is none."""
        total = self.add("ReduceSum", self.add("Mul", features, chosen), _FIRST)
        return self.add("Div", total, self.add("Max", self.add("ReduceSum", chosen, _FIRST), np.float32(1)))

    def _layers(self, layer: nn.Module, rows: str) -> str:
        """Write a layer, or several one after another. `TypeError` for one of another kind than policies have."""
        if isinstance(layer, nn.Sequential):
            for part in layer:
                rows = self._layers(part, rows)
            return rows
        if isinstance(layer, nn.Linear):
            return self.add("Gemm", rows, *(weight.detach().numpy() for weight in layer.parameters()), transB=1)
        if isinstance(layer, nn.SiLU):
            return self.add("Mul", rows, self.add("Sigmoid", rows))
        if isinstance(layer, nn.Tanh):
            return self.add("Tanh", rows)
        raise TypeError(f"a layer of {type(layer).__name__} cannot be written")

    def _scaled(self, values: str, scale: float) -> str:
        return self.add("Mul", values, np.float32(scale))

    def _column(self, values: str) -> str:
        return self.add("Unsqueeze", values, _LAST)

    def _flat(self, values: str) -> str:
        return self.add("Reshape", values, _FLAT)
