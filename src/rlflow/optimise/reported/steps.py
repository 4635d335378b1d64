"""The substitutions on the way to a graph, and to the graphs inside it, in a report."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlflow.method import Effort
from rlflow.optimise.refusal import Refusal

_MOST_RULES = 5
_MOST_REASONS = 3


@dataclass(frozen=True)
class Step:
    """One substitution on the way to the best graph, and the graph's cost after it."""

    rule: str
    location: int
    cost_ms: float


@dataclass(frozen=True)
class SubgraphReport:
    """The attempt on a subgraph, which is an attribute of a node; the node goes by its name or its first output.

    The figures are those of an `OptimisationReport`, for the subgraph by itself. `left_because` says why it was left
    unchanged, and is "" where it was changed, by `steps` of its own or in subgraphs inside it alone.
    """

    node: str
    attribute: str
    left_because: str = ""
    steps: tuple[Step, ...] = ()
    cost_before_ms: float = 0.0
    cost_after_ms: float = 0.0
    optimisation_s: float = 0.0
    effort: Effort = field(default_factory=Effort)
    pinned_for: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def place(self) -> str:
        return f"the {self.attribute} of {self.node}"

    def to_json(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self).items() if name != "effort"}
        lists = {
            "steps": [vars(step) for step in self.steps],
            "pinned_for": list(self.pinned_for),
            "refusals": [refusal.to_json() for refusal in self.refusals],
        }
        return own | lists | self.effort.to_json()


def steps_words(steps: tuple[Step, ...], names: Mapping[str, str]) -> str:
    """The number of steps, and their rules; `names` by id."""
    if not steps:
        return "no substitution"
    noun = "substitution" if len(steps) == 1 else "substitutions"
    return f"{len(steps)} {noun} ({rules_words([step.rule for step in steps], names)})"


def subgraphs_words(subgraphs: Sequence[SubgraphReport], names: Mapping[str, str]) -> Iterator[str]:
    """A sentence on each subgraph that was changed, and one on all others."""
    for subgraph in subgraphs:
        if subgraph.steps:
            costs = f"predicted cost {subgraph.cost_before_ms:.3f} ms -> {subgraph.cost_after_ms:.3f} ms"
            yield f"In {subgraph.place}: {steps_words(subgraph.steps, names)}, {costs}."
    left = Counter(subgraph.left_because for subgraph in subgraphs if subgraph.left_because)
    if left:
        reasons = "; ".join(f"{reason} (x{count})" for reason, count in left.most_common(_MOST_REASONS))
        yield f"Other subgraphs are unchanged: {reasons}."


def rules_words(rules: Sequence[str], names: Mapping[str, str]) -> str:
    """The rules by name, with how often each is there; `names` by id."""
    counts = Counter(names.get(rule, rule) for rule in rules)
    shown = ", ".join(f"{rule} x{count}" for rule, count in counts.most_common(_MOST_RULES))
    return shown + (f" and {len(counts) - _MOST_RULES} more" if len(counts) > _MOST_RULES else "")
