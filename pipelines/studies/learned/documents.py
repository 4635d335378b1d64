"""The documents of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from experiment.documents.curves import TrainingCurves
from msgspec import Meta

from rlflow.schemas.figures import (
    NOT_EMPTY,
    Cases,
    Count,
    Document,
    Error,
    Figure,
    Interval,
    Milliseconds,
    Percent,
    Seconds,
    Seeds,
    Tally,
)
from studies.figures import MeasuredRatio, Settings, Timed


class Row(Document):
    """The saving of one method on a graph, by rewrites carried out after those of greedy search."""

    OTHERS: ClassVar[Mapping[str, Any]] = {
        r"^improvement_percent_[0-9]+$": Percent,
        r"^improvement_percent_[0-9]+_ci95$": Interval | None,
        r"^gap_closed_[0-9]+$": float | None,
    }

    improvement_percent: Percent
    """Of the start's price, when the search has ended."""
    improvement_percent_ci95: Interval | None
    """95 % interval as a pair [low, high]; null of a method that draws and has one seed."""
    seeds: Seeds
    evaluations: Error
    """Rewrites carried out until the search had ended, greedy search's included, mean over seeds."""
    prices_measured: Error
    """Prices that had to be measured on the runtime, mean over seeds."""
    search_s: Seconds
    """Of the search on the machine of the study, beside other work; mean over seeds."""
    training_s: Seconds
    """Before the method saw this graph: lessons and fit; mean over seeds."""
    training_evaluations: Error
    """Rewrites carried out in lessons."""


class Methods(Document):
    """Method -> its row."""

    OTHERS: ClassVar[Mapping[str, Any]] = {r".*": Row}

    greedy: Row


Learned = Annotated[dict[str, Methods], NOT_EMPTY]
"""Graph -> method -> what it saves by evaluations past those of greedy search, as means over seeds. The graph's
family had no part in any training.
"""


class BestKnown(Document):
    """The best that any method found on a graph."""

    improvement_percent: Percent
    method: str
    greedy_percent: Percent
    """Of greedy search."""
    greedy_evaluations: Count
    vacuous: bool
    """The gap between the two is at most a tenth of a point and counts for nothing."""


class GapClosed(Document):
    """The share of the way from greedy search to the best known."""

    share: float
    """Of the gap between greedy search and the best known, mean over those of the compared graphs that have a row
    of the method.
    """
    share_ci95: Interval | None
    """95 % interval as a pair [low, high]; over seeds; null where there is one."""
    graphs: Cases
    seeds: Seeds


class BeyondBacktracking(Document):
    """Points of improvement past those of backtracking."""

    points: float
    """Percentage points of the start's price."""
    points_ci95: Interval | None
    """95 % interval as a pair [low, high]; over seeds; null where there is one."""


class Effort(Document):
    """The effort of a method beside that of another one which saves as much."""

    own: float
    """Until the learned method had saved that, without training, mean over seeds."""
    against: str | None
    """The other method that is the first to save as much; null if none does."""
    others: float | None
    """The same of that method."""
    graphs: Tally | None
    """After which training has paid for itself; null if it never does, or if no other method saves as much."""


class Training(Document):
    """The training of a method, and after how many graphs it pays."""

    training_s: Seconds
    training_evaluations: Count
    saving_percent: Percent
    """That all seeds of the learned method reach, less what counts as the same."""
    evaluations: Effort
    seconds: Effort


class Summary(Document):
    """Summary over all rows of the study of learning. The learned method is rlflow; depth_transfer has had
    lessons of the family, on few layers.
    """

    best_known: Annotated[dict[str, BestKnown], NOT_EMPTY]
    """By graph: the most that any method saved in whatever time."""
    compared: list[str]
    """Graphs that have a gap and on which the learned method has all its seeds."""
    gap_closed: Annotated[dict[Annotated[str, Meta(pattern="^[0-9]+$")], dict[str, GapClosed]], NOT_EMPTY]
    """By evaluations past greedy search's, by method."""
    beyond_backtracking: dict[str, dict[Literal["rlflow", "depth_transfer"], BeyondBacktracking]]
    """By graph, by trained policy: what it saves more than backtracking that has its long run."""
    share_of_best: dict[str, dict[Literal["rlflow", "depth_transfer"], float]]
    """By graph on which greedy search is hardly beaten, by trained policy: what it saves as a share of the best
    known.
    """
    below_greedy: list[str]
    """Graphs on which the learned method ended below greedy search; there should be none."""
    training: dict[str, Training]
    """By graph: what the policy cost, and when that has paid for itself."""


class UnseenGraph(Document):
    """The ranking of matches on a graph of a family that V has never seen."""

    spearman: Figure
    """Rank correlation of the savings of the kinds of a state, mean over the states of the family's lessons and
    over seeds.
    """
    seeds: Seeds


Unseen = Annotated[dict[str, UnseenGraph], NOT_EMPTY]
"""What V tells of matches in graphs of families that its policies have had no lesson of, by family and kind of
prices.
"""


class Latencies(Timed):
    """Latencies of the original and of two methods' results in one setting."""

    original_over_backtracking: MeasuredRatio
    original_over_rlflow: MeasuredRatio
    backtracking_over_rlflow: MeasuredRatio
    backtracking_ms: Milliseconds
    rlflow_ms: Milliseconds


class Found(Document):
    """The saving of a method and the rewrites that it carried out."""

    improvement_percent: Percent
    evaluations: Count


class Graph(Settings[Latencies]):
    """The savings of two methods on a graph, and its latencies by setting of ONNX Runtime."""

    backtracking: Found
    rlflow: Found


Delivered = Annotated[dict[str, Graph], NOT_EMPTY]
"""Graph -> setting of ONNX Runtime -> latencies of the original and of the models that backtracking and the policy
that ships found, measured against each other, beside what each saves by its prices. Every ratio is the median over
rounds, with its 95 % interval; above 1, the second model is faster.
"""


DOCUMENTS = {
    "learned/metrics.json": Learned,
    "learned/summary.json": Summary,
    "learned/unseen.json": Unseen,
    "learned/delivered.json": Delivered,
    "learned/curves_by_prices.json": TrainingCurves,
}
"""Types of results files, by the pattern that the end of a file's path matches."""
