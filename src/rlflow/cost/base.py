"""The cost of a graph, and the interface of a cost model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from rlflow.cost.exact_sum import Exact
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.preview import Preview

if TYPE_CHECKING:
    from rlflow.cost.work import Work
    from rlflow.runtime.session import Setting

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one inference of a graph.

    `launches` counts the nodes that run; `load_time_flops` the work on constant expressions, done once when the model
    is made.
    """

    runtime_ms: float
    flops: int
    bytes_moved: int
    launches: int
    load_time_flops: int

    @classmethod
    def of(cls, runtime_ms: float, work: Work) -> Cost:
        """Return what a graph takes, beside the work that it is taken for."""
        return cls(runtime_ms, work.flops, work.bytes_moved, work.launches, work.load_time_flops)

    def to_json(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Measuring:
    """The prices that a cost model has measured on the runtime so far, and the seconds that this took."""

    prices: int = 0
    seconds: float = 0.0


_NOTHING_MEASURED = Measuring()


class CostModel(Protocol):
    """A price for every graph; the same graph always gets the same cost."""

    @property
    def name(self) -> str: ...

    def runtime_ms(self, graph: Graph) -> float: ...

    def cost(self, graph: Graph) -> Cost: ...


class Surroundings(NamedTuple):
    """Everything in a graph on which the price of an edit depends.

    `key` is equal for edits that change the price by the same, and `nodes` are those of which it tells.
    """

    key: Hashable
    nodes: Collection[int]


class Part(NamedTuple):
    """Running nodes of a graph that are priced together, and their price."""

    nodes: tuple[int, ...]
    ms: float


@runtime_checkable
class LocalCostModel(CostModel, Protocol):
    """A cost model that is a sum over parts of a graph, so that an edit changes the price by what lies around it.

    A search asks such a model for the price of an edit once for all places that look alike. A class that inherits these
    methods and overrides `runtime_ms` without them is not taken for local: see `local`.
    """

    def exact_ms(self, graph: Graph) -> Exact:
        """Return the sum that `runtime_ms` rounds."""
        ...

    def surroundings(self, graph: Graph, edit: Preview) -> Surroundings:
        """Write down what the price of the edit depends on."""
        ...

    def disturbed(self, graph: Graph) -> Collection[int]:
        """Return the nodes of the graph, beside those that its last edit changed, whose surroundings that changed."""
        ...

    def parts(self, graph: Graph) -> Iterable[Part]:
        """List the parts of which the price is the sum, reorders of the blocked layout apart, in the graph's order.

        Every running node is in one of them.
        """
        ...

    def part_of(self, graph: Graph, node: int) -> Part:
        """Return the part that a running node belongs to."""
        ...


def local(cost_model: CostModel) -> LocalCostModel | None:
    """Return the cost model if the price of an edit can be told from what lies around it, else None."""
    if isinstance(cost_model, LocalCostModel):
        for kind in type(cost_model).__mro__:
            if "surroundings" in vars(kind):
                return cost_model
            if "runtime_ms" in vars(kind):
                return None
    return None


@runtime_checkable
class MeasuringCostModel(CostModel, Protocol):
    """A cost model that measures what it does not know, for several graphs together in far less time than one by one.

    Callers that will ask for the prices of many graphs may announce them. That changes no price.
    """

    def measure(self, graphs: Sequence[Graph], deadline: float | None = None) -> int:
        """Measure what the prices of the graphs need until `deadline`, a moment of `time.perf_counter`.

        Return how many prices are still missing.
        """
        ...


def measuring_of(cost_model: CostModel) -> Measuring:
    """Return what a cost model has measured so far; one that has no attribute `measuring` measures nothing."""
    return getattr(cost_model, "measuring", _NOTHING_MEASURED)


def least_change_ms(cost_model: CostModel, before: Graph, after: Graph) -> float:
    """Return what must lie between the prices of two graphs for the change to count.

    Cost models whose prices have noise define it as their method `least_change_ms`; for others any change counts.
    """
    told: Callable[[Graph, Graph], float] | None = getattr(cost_model, "least_change_ms", None)
    return 0.0 if told is None else told(before, after)


def far_share(cost_model: CostModel, graph: Graph) -> float | None:
    """Return the share of a graph's parts whose prices are far from what a cost model has learned from.

    None for cost models that have learned nothing; others tell it as their method `far_share`.
    """
    told: Callable[[Graph], float] | None = getattr(cost_model, "far_share", None)
    return None if told is None else told(graph)


@dataclass(frozen=True)
class CostContext:
    """The facts from which a cost model is made by its name; each uses those that it needs.

    `setting` is how the model will run, `dimensions` are the sizes of its dynamic dimensions by symbol, `prices` is the
    file of this machine's price list, `settings` are numbers of the cost model's own, and `published` is the file of a
    price list that may be another machine's.
    """

    setting: Setting = "deployed"
    dimensions: Mapping[str, int] = field(default_factory=dict)
    prices: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: Path | None = None

    def configure(self, kind: type[T]) -> T:
        """Make the dataclass `kind` from the settings. `InputError` if it has no such setting."""
        known = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
        for name in self.settings:
            if name not in known:
                raise InputError(f"this cost model has no setting {name!r}: choose from {', '.join(known)}")
        return kind(**self.settings)


CostModelFactory = Callable[[CostContext], CostModel]
