"""Cost models for tests of searches: region prices without a clock, and models that are asked about whole graphs."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from onnx import ModelProto

from rlflow.cost.base import Cost, CostModel
from rlflow.cost.measured import MeasuredCost
from rlflow.cost.price_list import Price, PriceList
from rlflow.ir.graph import Graph
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.batches import BatchConfig, FragmentTiming


class DrawnPrices(PriceList):
    """Answers to every signature with a price of its own, so that nothing has to be timed."""

    def get(self, setting: str, signature: str) -> Price:
        return Price(random.Random(setting + signature).uniform(0.001, 3.0), signature)


@dataclass
class DrawnTimings:
    """Stands for the clock of `rlflow.runtime.timing.batches`: a timing that is drawn from what the model is.

    The probe takes `probe_ms`, of a batch what `slow` says of its number, if anything. `batches` are those timed.
    """

    probe_ms: float = 1.0
    slow: dict[int, float] = field(default_factory=dict)
    batches: list[list[ModelProto]] = field(default_factory=list)

    def time_batch(self, models: Sequence[ModelProto], **settings: Any) -> list[FragmentTiming]:
        if not models:
            return []
        self.batches.append(list(models))
        probe_ms = self.slow.get(len(self.batches), self.probe_ms)
        draws = [random.Random(model.SerializeToString(deterministic=True)) for model in models]
        return [FragmentTiming(draw.uniform(0.001, 3.0), draw.uniform(0.0, 0.1), probe_ms) for draw in draws]

    def time_launch(self, config: BatchConfig) -> FragmentTiming:
        return FragmentTiming(0.001, 0.0001, self.probe_ms)

    def time_probe_ms(self, config: BatchConfig) -> float:
        return self.probe_ms


def drawn_prices(setting: Setting = "deployed") -> MeasuredCost:
    """Region prices that have nothing to do with each other: two fragments cost the same only if they are the same."""
    return MeasuredCost(setting, DrawnPrices("none", "none"), None)


@dataclass(frozen=True)
class AsAWhole:
    """A cost model of which nothing is known but prices of whole graphs: every rewrite is carried out to be priced."""

    inner: CostModel

    @property
    def name(self) -> str:
        return self.inner.name

    def runtime_ms(self, graph: Graph) -> float:
        return self.inner.runtime_ms(graph)

    def cost(self, graph: Graph) -> Cost:
        return self.inner.cost(graph)


@dataclass(frozen=True)
class WithNoise(AsAWhole):
    """A cost model whose prices are known to a share of the earlier graph's price."""

    share: float = 0.0

    def least_change_ms(self, before: Graph, after: Graph) -> float:
        return self.share * self.inner.runtime_ms(before)
