"""The documents of `evaluate`: what each method makes of a graph, by which rules and through which states."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, UnsetType

from experiment.documents.contradictions import disagreeing_saving, lacking
from rlflow.schemas.figures import (
    DIGITS,
    EQUAL,
    NOT_EMPTY,
    TIMING,
    Count,
    Document,
    Error,
    Hash,
    Interval,
    Milliseconds,
    Percent,
    Ratio,
    Seconds,
    Seeds,
    Share,
    Text,
    Written,
)


class Result(Document):
    """The graph that one method makes of a graph: its price, its latency, and the effort."""

    cost_before_ms: Annotated[Milliseconds, EQUAL]
    """Cost model's runtime of the original graph."""
    cost_after_ms: Annotated[Milliseconds, EQUAL]
    """Cost model's runtime of the best graph."""
    improvement_percent: Annotated[Percent, EQUAL]
    """Drop from cost_before_ms to cost_after_ms."""
    latency_ratio_as_written: Annotated[Ratio, TIMING]
    """Measured latency, original over optimised, graph optimisation off; of the method `original`: two sessions of
    the same model, the noise floor.
    """
    latency_ratio_as_written_ci95: Annotated[Interval, TIMING]
    latency_ratio_deployed: Annotated[Ratio, TIMING]
    """The same at ORT_ENABLE_ALL."""
    latency_ratio_deployed_ci95: Annotated[Interval, TIMING]
    peak_memory_ratio: Annotated[Ratio, EQUAL]
    flops_ratio: Annotated[Ratio, EQUAL]
    launches_ratio: Annotated[Ratio, EQUAL]
    max_relative_error: Annotated[Error, DIGITS]
    """Largest difference over largest absolute reference value, over the drawn inputs."""
    optimisation_s: Seconds
    """Wall time of the search or of the trained agent's episodes."""
    training_s: Seconds
    """Wall time of rollouts, world model and controller; 0 for methods that do not learn."""
    real_interactions: Count
    """Rewrites carried out: steps of the real environment, training included; not the lessons of the policy that the
    experiment's own agent goes on from, which the row of that policy tells.
    """
    seeds: Seeds
    far_share: Annotated[Share | UnsetType, EQUAL] = UNSET
    """Of predicted prices: the share of the best graph's regions that are far from what the price model has learned
    from.
    """
    prices_asked: Count | UnsetType = UNSET
    """Prices that the search asked for, remembered ones as well."""
    prices_measured: Count | UnsetType = UNSET
    """Prices that had to be measured on the runtime."""
    rewriting_s: Seconds | UnsetType = UNSET
    """Time of the rewrites that the search carried out."""
    pricing_s: Seconds | UnsetType = UNSET
    """Time of the prices, without measuring_s."""
    measuring_s: Seconds | UnsetType = UNSET
    """Time of the measurements."""
    tolerance: Annotated[Error | UnsetType, EQUAL] = UNSET
    """Largest relative error that rounding explains."""
    non_vacuous_draws: Count | UnsetType = UNSET
    """Drawn inputs that could have told a wrong model from a right one."""
    steps: Count | UnsetType = UNSET
    """Substitutions that lead to the best graph."""
    distinct_rules: Count | UnsetType = UNSET
    """Rules that were applied at least once on the way to the best graph."""
    latency_as_written_ms: Annotated[Milliseconds | UnsetType, TIMING] = UNSET
    """Median latency of the optimised model, graph optimisation off."""
    latency_deployed_ms: Annotated[Milliseconds | UnsetType, TIMING] = UNSET
    """The same at ORT_ENABLE_ALL."""
    untrained_percent: Annotated[Percent | UnsetType, DIGITS] = UNSET
    """Of the learned controller alone: improvement_percent of the same before its training."""
    delivered: Annotated[Written | UnsetType, TIMING] = UNSET
    """Of the learned method: the model that the experiment leaves, its own or the original."""
    delivered_because: Annotated[Text | UnsetType, TIMING] = UNSET
    """Of the learned method: the measurement that decides it."""
    trajectory: Hash | UnsetType = UNSET
    """Digest of the record of the substitutions that lead to the best graph: rules, locations, graphs and their
    prices.
    """

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        yield from disagreeing_saving(document)


class Methods(Document):
    """Method -> its result; `original` is the trivial baseline."""

    OTHERS: ClassVar[Mapping[str, Any]] = {r".*": Result}

    original: Result
    rlflow: Annotated[Result | UnsetType, DIGITS] = UNSET
    """The agent, whose search goes by what was trained on the graph: whatever it does follows from floats."""
    rlflow_alone: Annotated[Result | UnsetType, DIGITS] = UNSET
    """Its controller in one episode of its most probable actions, as in the paper."""

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        if "rlflow" in document:
            for _, problem in lacking(document["rlflow"], ("delivered", "delivered_because")):
                yield "rlflow", problem


Evaluate = Annotated[dict[str, Methods], NOT_EMPTY]
"""Graph -> method -> figures. Every ratio is old over new, above 1 is better. `original` is the trivial baseline."""


Applied = dict[str, Count]


class AppliedByMethod(Document):
    """Method -> stable rule id -> times applied on the way to the best graph."""

    OTHERS: ClassVar[Mapping[str, Any]] = {r".*": Applied}

    rlflow: Annotated[Applied | UnsetType, DIGITS] = UNSET
    """The trained policy: whatever it does follows from floats."""

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        if not document:
            yield "", "there is no method"


RulesApplied = Annotated[dict[str, AppliedByMethod], NOT_EMPTY]
"""Graph -> method -> stable rule id -> times applied on the way to the best graph."""


class SourceStates(Document):
    """The states that one source visited: a method on its way, the rollouts, or the policy; a graph each.

    Of rollouts over match classes, graphs within a choice are not kept.
    """

    states: Count
    alone: Count
    """States that no other source visited."""
    best_saved_percent: Annotated[Percent, EQUAL]
    rewrites_to_best: Count | None
    """The fewest that lead from the start to the best of them, of any source; null if none of these ways does."""
    shared: dict[str, Count]
    """Other source -> states that both visited."""


class StateGraph(Document):
    """All that was visited on one graph; a method's way is that to its result."""

    states: Count
    edges: Count
    """From a state to another, by one rewrite or, in rollouts over match classes, by one choice."""
    sources: Annotated[dict[str, Annotated[SourceStates, DIGITS]], NOT_EMPTY]


States = Annotated[dict[str, StateGraph], NOT_EMPTY]
"""Graph -> the states that rollouts, policy and methods visited, and how many of them they share."""
