"""The cost of a graph, and the interface of a cost model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rlflow.errors import InputError
from rlflow.ir.graph import Graph

if TYPE_CHECKING:
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


def measuring_of(cost_model: CostModel) -> Measuring:
    """Return what a cost model has measured so far; one that has no attribute `measuring` measures nothing."""
    return getattr(cost_model, "measuring", _NOTHING_MEASURED)


@dataclass(frozen=True)
class CostContext:
    """The facts from which a cost model is made by its name; each uses those that it needs.

    `setting` is how the model will run, `dimensions` are the sizes of its dynamic dimensions by symbol, `prices` is the
    file of a price list, and `settings` are numbers of the cost model's own.
    """

    setting: Setting = "deployed"
    dimensions: Mapping[str, int] = field(default_factory=dict)
    prices: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def configure(self, kind: type[T]) -> T:
        """Make the dataclass `kind` from the settings. `InputError` if it has no such setting."""
        known = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
        for name in self.settings:
            if name not in known:
                raise InputError(f"this cost model has no setting {name!r}: choose from {', '.join(known)}")
        return kind(**self.settings)


CostModelFactory = Callable[[CostContext], CostModel]
