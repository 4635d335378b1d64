"""The documents of the six stages, and of `pipelines/verify_repro.py --json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from rlflow.schemas.figures import (
    DIGITS,
    EQUAL,
    NOT_EMPTY,
    TIMING,
    Cases,
    Count,
    Document,
    Error,
    Figure,
    Hash,
    Interval,
    Kind,
    Milliseconds,
    Percent,
    Positive,
    Ratio,
    Seconds,
    Seed,
    Seeds,
    Share,
    Text,
    Written,
)

PERCENT_POINTS = 0.05
"""Published numbers are rounded; percentages agree with the costs beside them to this many points."""


def lacking(document: dict[str, Any], keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield a problem for each of the keys that a document lacks though it has others that go with them."""
    yield from (("", f"{key!r} is a required key beside the others") for key in keys if key not in document)


def disagreeing_saving(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a problem if the published percents are not what the published costs give, beyond their rounding."""
    before, after, stated = (document[key] for key in ("cost_before_ms", "cost_after_ms", "improvement_percent"))
    expected = 100 * (before - after) / before if before else 0.0
    if abs(expected - stated) > PERCENT_POINTS:
        yield "improvement_percent", f"{stated:.2f}, but the costs give {expected:.2f}"


class Family(Document):
    """One family of rules, from the enumeration to the verified ones."""

    operators: Annotated[list[Text], NOT_EMPTY]
    """Operators that the enumeration uses."""
    max_operators: Cases
    """Most operators in one graph."""
    graphs_enumerated: Count
    distinct_fingerprints: Count
    candidate_pairs: Count
    """Pairs of graphs with one fingerprint."""
    after_renaming: Count
    """Pairs left after removing renamings of one another."""
    after_common_subgraph: Count
    """Pairs left after removing those that follow from smaller ones."""
    verified: Count
    rejected: Count
    rules: Count
    """What was verified, in every direction that is sound."""
    cpu_s: Seconds


class Declared(Document):
    """The rules that are written by hand."""

    rules: Count
    verified: Count
    rejected: Count


class Library(Document):
    """The library that was written."""

    rules: Count
    selected: dict[str, Count]
    """Graph -> rules that an agent acts with on it; empty where it acts with all rules."""
    hash: Hash


class GenerateRules(Document):
    """The generator's enumeration, its pruning, and what verification let through."""

    generated: Annotated[dict[str, Family], NOT_EMPTY]
    """Family of rules -> what came of it."""
    declared: Declared
    library: Library
    unsound_rules_accepted: Annotated[Figure, EQUAL]
    """Planted unsound rules that verification lets pass; baseline: all of them, unchecked."""
    shapes_checked: Count
    """Shape assignments over all rules."""
    float_checks: Count
    """Rules executed in ONNX Runtime."""
    generation_s: Seconds
    seed: Seed
    generation_cpu_s: Seconds
    """Enumeration, pruning and verification of all families and of the declared rules."""


class Rollouts(Document):
    """The episodes of one graph; figures of match tokens stand where these are what the world model sees."""

    episodes: Cases
    steps: Cases
    rules_available: Count
    """Rules with a match in some visited graph."""
    rules_applied: Count
    """Rules that were applied at least once."""
    mean_improvement_percent: Annotated[Figure, EQUAL]
    """Mean over episodes of the improvement from their first graph to their last; baseline: do_nothing."""
    best_improvement_percent: Annotated[Figure, EQUAL]
    """Best graph met; baseline: do_nothing."""
    steps_per_s: Annotated[Positive, TIMING]
    """Real environment steps a second."""
    wall_time_s: Seconds
    seed: Seed
    evaluations: Cases | UnsetType = UNSET
    """Match tokens: rewrites carried out to know what every match saves."""
    states: Cases | UnsetType = UNSET
    """Match tokens: graphs in which every match was labelled, each as often as it was visited."""
    distinct_tokens: Cases | UnsetType = UNSET
    """Match tokens: matches that differ in what they do, or in what is around them."""
    labels: Cases | UnsetType = UNSET
    """Match tokens: matches of all states, each with what it saves."""
    distinct_graphs: Cases | UnsetType = UNSET
    terminated: Count | UnsetType = UNSET
    """Episodes that the agent ended."""
    truncated: Count | UnsetType = UNSET
    """Episodes that the horizon ended."""
    matches_beyond_limit: Count | UnsetType = UNSET
    """Matches masked because a rule had more than L."""
    measurements: Annotated[Count | UnsetType, TIMING] = UNSET
    """Reward end_to_end: graphs that were timed."""
    measuring_s: Seconds | UnsetType = UNSET
    """Reward end_to_end: what that took."""
    rewards_measured: Annotated[Count | UnsetType, TIMING] = UNSET
    """Reward end_to_end: rewards that compared two graphs."""
    rewards_noise: Annotated[Count | UnsetType, TIMING] = UNSET
    """Reward end_to_end: those that were 0 because of noise."""

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        of_tokens = ("states", "distinct_tokens", "labels")
        of_graphs = ("distinct_graphs", "terminated", "truncated", "matches_beyond_limit")
        yield from lacking(document, of_tokens if "evaluations" in document else of_graphs)


CollectRollouts = Annotated[dict[str, Annotated[Rollouts, DIGITS]], NOT_EMPTY]
"""Graph -> what the agent that collected the episodes met. Figures of match tokens stand where these are what
the world model sees.
"""


class OpenLoop(Document):
    """The error of a prediction so many steps ahead."""

    target: Literal["z", "counts", "cost", "reward", "return"]
    horizon: Cases
    """Steps predicted without looking."""
    error: Annotated[Figure, DIGITS]
    """Mean absolute error on held-out episodes; baseline: copy, for rewards mean, and over match tokens the mean of
    each rule; return: the sum of the rewards up to the horizon.
    """


class Regret(Document):
    """The loss from trying only what V likes best."""

    kinds: Cases
    """Kinds of matches among which the best is taken, those that V says save most."""
    regret: Annotated[Figure, DIGITS]
    """Share of a state's best saving that is missed; baseline: by the mean of each rule, or random."""


class Calibration(Document):
    """The share of V's errors within a multiple of its sigma."""

    nominal_percent: Annotated[Percent, EQUAL]
    """Of all errors, if they were normal with V's sigma."""
    share: Annotated[Figure, DIGITS]
    """Of errors that are as small, on tokens of held-out episodes that no other one shows, each half by the factor
    of the other; baseline: without a factor.
    """


class KeptTrack(Document):
    """The likeness of a dream and the real episode that it is led through."""

    target: Literal["alive", "near"]
    horizon: Cases
    """Steps predicted without looking."""
    share: Annotated[Figure, DIGITS]
    """alive: of the next real rewrites, those that the dream still has; near: F1 of the kinds near the last
    rewrite; baseline: copy, a dream in which nothing changes.
    """


class ReturnCorrelation(Document):
    """The dreamed and the real return of the same rewrites."""

    horizon: Cases
    """Steps predicted without looking."""
    correlation: Annotated[Figure, DIGITS]
    """Of the dreamed and the real return of the same rewrites; baseline: mean, any constant."""


class Fit(Document):
    """The fit of V and M to the rollouts of one graph; every figure on held-out episodes."""

    training_episodes: Cases
    held_out_episodes: Count
    parameters: Cases
    epochs: Cases
    losses: Annotated[dict[str, float], DIGITS, NOT_EMPTY]
    """Final value of each loss."""
    open_loop: Annotated[list[OpenLoop], NOT_EMPTY]
    training_s: Seconds
    seed: Seed
    rule_mask_accuracy: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Baseline: majority."""
    terminated_accuracy: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Baseline: majority."""
    saving_r2: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Match tokens: share of the variance of what matches save, in percent of the start's price, that V explains;
    baseline: the mean of the match's rule.
    """
    saving_r2_new_tokens: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Match tokens: saving_r2 of the tokens that no training episode shows, each in one state; baseline: the mean
    of the match's rule.
    """
    saving_rank_correlation: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Match tokens: mean over states of the rank correlation of what kinds save and what V says; baseline: the mean
    of the kind's rule.
    """
    saving_correlation_within_rules: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Match tokens: correlation of what matches save and what V says, after the means of each rule were taken off
    both; that of the rules' means is 0.
    """
    saving_correlation_within_rules_new_tokens: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Match tokens: saving_correlation_within_rules of the tokens that no training episode shows, each in one
    state; that of the rules' means is 0.
    """
    regrets: list[Regret] | UnsetType = UNSET
    """Match tokens: how much is lost by trying only what V likes best."""
    calibration: list[Calibration] | UnsetType = UNSET
    """Match tokens: does V know its errors?"""
    kept_track: list[KeptTrack] | UnsetType = UNSET
    """Match tokens: dreams that are led through real episodes."""
    return_correlation: list[ReturnCorrelation] | UnsetType = UNSET
    """Match tokens: dreams that are led through real episodes."""

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        of_tokens = ("calibration", "kept_track", "return_correlation")
        of_graphs = ("rule_mask_accuracy", "terminated_accuracy")
        yield from lacking(document, of_tokens if "regrets" in document else of_graphs)


FitWorldModel = Annotated[dict[str, Fit], NOT_EMPTY]
"""Graph -> the fit of V and M to its rollouts; every figure on held-out episodes."""


class Training(Document):
    """The controller of one graph, trained in the dream."""

    updates: Cases
    dream_steps: Cases
    dream_steps_per_s: Annotated[Positive, TIMING]
    """With PPO updates."""
    temperature: Annotated[Positive, EQUAL]
    """Tau of the dream."""
    dream_score_percent: Annotated[Figure, DIGITS]
    """Mean return of an episode in the dream after training, from the original; baseline: untrained or random."""
    real_score_percent: Annotated[Figure, DIGITS]
    """Improvement by a whole episode in the real environment, which may be longer than a dream; baseline: random."""
    real_interactions: Annotated[Count, DIGITS]
    """Steps of the real environment by which the best snapshot of the controller is chosen; a dream uses none."""
    training_s: Seconds
    seed: Seed


TrainController = Annotated[dict[str, Training], NOT_EMPTY]
"""Graph -> its controller, trained in the dream."""


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
    """Of the learned method: improvement_percent of the same, greedy search included, with the controller as it was
    before its training.
    """
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
    """The trained policy: whatever it does follows from floats."""

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


class Point(Document):
    """Controllers trained in the dream at one temperature."""

    temperature: Annotated[Positive, EQUAL]
    """Tau."""
    dream_score_percent: Annotated[Percent, DIGITS]
    """Mean return of an episode in the dream, from the original; of several seeds the median."""
    real_score_percent: Annotated[Percent, DIGITS]
    """The same of an episode on the graph, as long as a dream and by the same, most probable actions."""
    episodes: Cases
    """Real episodes behind the score."""
    seeds: Seeds
    dream_score_percents: Annotated[list[Percent], DIGITS]
    """Of each seed, in their order; `dream_score_percent` is the median."""
    real_score_percents: Annotated[list[Percent], DIGITS]
    """Of each seed, in their order; `real_score_percent` is the median."""
    dream_score_percent_ci95: Annotated[Interval | UnsetType, DIGITS] = UNSET
    """Over the seeds, where there are several."""
    real_score_percent_ci95: Annotated[Interval | UnsetType, DIGITS] = UNSET
    """Over the seeds, where there are several."""


class Sweep(Document):
    """The temperatures on one graph, beside a random agent."""

    points: Annotated[list[Point], NOT_EMPTY]
    random_score_percent: Annotated[Percent, EQUAL]
    """The trivial baseline: a random agent in the real environment."""
    random_episodes: Cases


TemperatureSweep = Annotated[dict[str, Sweep], NOT_EMPTY]
"""Graph -> Table 3 of the paper: for each temperature of the dream, the score there and in reality."""


class Curve(Document):
    """The points of one curve."""

    unit: Text
    step_name: Text
    """What a step is: epoch, update, ..."""
    step: Annotated[list[float], EQUAL, NOT_EMPTY]
    value: Annotated[list[float], DIGITS, NOT_EMPTY]

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        if len(document["step"]) != len(document["value"]):
            yield "", f"{len(document['step'])} steps but {len(document['value'])} values"


TrainingCurves = Annotated[dict[str, Annotated[dict[str, Curve], NOT_EMPTY]], NOT_EMPTY]
"""Graph -> curve name -> the points that a training figure is drawn from."""


class KindCounts(Document):
    """Figures and outputs of one kind."""

    figures: Count
    unlike_figures: Count
    outputs: Count
    unlike_outputs: Count


class Kinds(Document):
    """Counts by kind."""

    equal: KindCounts
    digits: KindCounts
    timing: KindCounts


class UnlikeFigure(Document):
    """A figure that is not as it was."""

    file: Text
    place: str
    """The path inside a results file; empty for an output."""
    kind: Kind
    published: str
    """The value as text; none: the run has nothing there."""
    fresh: str
    """The value as text; none: the run has nothing there."""
    deviation: Error | None
    """The largest difference of two numbers, relative to the larger one; null if these are not as many numbers."""


class Output(Document):
    """An output that is compared by its digest."""

    path: Text
    kind: Kind
    same_bytes: bool


class TimeRatio(Document):
    """Fresh times over published ones."""

    median: Error
    least: Error
    greatest: Error


class TimingGroup(Document):
    """Times of one name in a file."""

    file: Text
    name: Text
    """The last key of the figures that are told together."""
    figures: Cases
    ratio: TimeRatio
    intervals_apart: list[str]
    """The figures whose 95 % intervals have no value in common."""


class ReproductionReport(Document):
    """A fresh run of the experiment beside the published one."""

    reproduced: bool
    """Nothing differs that must not."""
    published: Text
    """The git revision or folder of the published run."""
    fresh: Text
    """The git revision or folder of the fresh run."""
    kinds: Kinds
    unlike: list[UnlikeFigure]
    outputs: list[Output]
    timings: list[TimingGroup]
    faults: list[Text]
    """A sentence for each file that could not be compared."""


DOCUMENTS = {
    "generate_rules/metrics.json": GenerateRules,
    "collect_rollouts/metrics.json": CollectRollouts,
    "fit_world_model/metrics.json": FitWorldModel,
    "train_controller/metrics.json": TrainController,
    "evaluate/metrics.json": Evaluate,
    "evaluate/rules_applied.json": RulesApplied,
    "evaluate/states.json": States,
    "temperature_sweep/metrics.json": TemperatureSweep,
    "curves.json": TrainingCurves,
}
"""Types of results files, by the pattern that the end of a file's path matches."""
