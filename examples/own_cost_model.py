"""A cost model of your own: memory traffic alone, for a machine whose arithmetic is free.

Give an object to `rlflow.optimise`, as below; or let your package announce a function that makes one:

    [project.entry-points."rlflow.cost_models"]
    traffic = "own_cost_model:traffic"

In RLFlow itself it is a module in `cost/`, a line in `cost/models.py` and a test in `tests/cost/`; for the experiment,
an option `conf/cost/traffic.yaml` with `kind: traffic` and its settings.
"""

from dataclasses import dataclass

import rlflow
from rlflow import zoo
from rlflow.cost.base import Cost, CostContext
from rlflow.cost.work import WorkCounter
from rlflow.ir.graph import Graph


@dataclass(frozen=True)
class TrafficConfig:
    """The bandwidth of the machine."""

    gbytes_per_s: float = 20.0


class Traffic:
    """Prices a graph by the bytes that it moves. The same graph always gets the same price."""

    name = "traffic"

    def __init__(self, config: TrafficConfig) -> None:
        self.config = config
        self._work = WorkCounter()

    def runtime_ms(self, graph: Graph) -> float:
        return self._work.graph(graph).bytes_moved / self.config.gbytes_per_s / 1e6

    def cost(self, graph: Graph) -> Cost:
        work = self._work.graph(graph)
        return Cost(self.runtime_ms(graph), work.flops, work.bytes_moved, work.launches, work.load_time_flops)


def traffic(context: CostContext) -> Traffic:
    """Make the cost model from its settings; an unknown setting is refused in a sentence."""
    return Traffic(context.configure(TrafficConfig))


if __name__ == "__main__":
    model = Traffic(TrafficConfig(gbytes_per_s=50.0))
    optimised = rlflow.optimise(zoo.build("tiny_chain"), method="greedy", cost_model=model)
    print(optimised.report.summary())
