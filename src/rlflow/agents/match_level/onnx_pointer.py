"""C over classes of matches as an ONNX model, which points at one of them where PyTorch is not installed.

    model = onnx_pointer(controller)

Its inputs are the parts of a `ClassesObserved` by their names, its output `logits` has one number for each class, then
that of terminate. A text beside it, `max_steps`, is the horizon of the controller's training.

The invariant: it computes what the policy makes of the observation that `TokenLayout` writes, up to the last digits,
and equal controllers give equal bytes.
"""

from __future__ import annotations

import numpy as np

from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.layers_network import LayersNetwork
from rlflow.agents.match_level.linear_pointer import LinearPointer
from rlflow.agents.match_level.pointer_policy import LEAST_SAVING, PointerPolicy
from rlflow.onnx_io.network import Model
from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.world_model.match_level.observation import BEYOND_AN_EDGE, LOGIT_SCALE, SAVING_SCALE

_FIRST, _LAST, _FLAT = np.array([0], np.int64), np.array([1], np.int64), np.array([-1], np.int64)


def onnx_pointer(controller: MatchLevelController) -> Model:
    """Write the policy of a controller, which PPO has trained or evolution has made."""
    policy, network = controller.policy, _PointerNetwork(controller.arguments.embedding)
    logits = network.linear_logits(policy) if isinstance(policy, LinearPointer) else network.logits(policy)
    return network.model({"logits": logits}, ["choices"], {"max_steps": str(controller.arguments.max_steps)})


class _PointerNetwork(LayersNetwork):
    """A `PointerPolicy` or a `LinearPointer`, written step by step as it computes."""

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
        nearness = self._nearness()
        features = self.layers(policy.kind, self._seen(nearness))
        is_near = self.add("Cast", self.column(self.add("Greater", nearness, np.float32(BEYOND_AN_EDGE))), to=1)
        context = self.add(
            "Concat",
            self.add("ReduceMean", features, _FIRST),
            self.add("ReduceMax", features, _FIRST),
            self._mean_of(features, is_near),
            self._cost(),
            axis=1,
        )
        mixed = self.add("Add", self.layers(policy.of_kind, features), self.layers(policy.of_context, context))
        scores = self._flat(self.layers(policy.score, self.add("Tanh", mixed)))
        scores = self.add("Add", scores, self._prior(policy))
        return self.add("Concat", scores, self._flat(self.layers(policy.terminate, context)), axis=0)

    def linear_logits(self, policy: LinearPointer) -> str:
        """Write `LinearPointer.distribution`."""
        kind, context, bias = (weights.detach().numpy() for weights in (policy.kind, policy.context, policy.bias))
        seen = self._seen(self._nearness())
        whole = self.add("Concat", self.add("ReduceMean", seen, _FIRST), self._cost(), axis=1)
        terminate = self.add("Add", self.add("MatMul", whole, context), bias)
        return self.add("Concat", self.add("MatMul", seen, kind), terminate, axis=0)

    def _seen(self, nearness: str) -> str:
        """(K, W + 4): what `TokenLayout` has of each class."""
        scaled = (
            self._scaled(self.taken, LOGIT_SCALE),
            self._scaled(self.saving, SAVING_SCALE),
            self.add("Log", self.add("Add", self.apart, np.float32(1))),
            nearness,
        )
        return self.add("Concat", self.embedding, *map(self.column, scaled), axis=1)

    def _nearness(self) -> str:
        return self.add("Sub", np.float32(1), self._scaled(self.near, 1 / FAR_AWAY))

    def _cost(self) -> str:
        return self._scaled(self.add("Asinh", self.gained), SAVING_SCALE)

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

    def _scaled(self, values: str, scale: float) -> str:
        return self.add("Mul", values, np.float32(scale))

    def _flat(self, values: str) -> str:
        return self.add("Reshape", values, _FLAT)
