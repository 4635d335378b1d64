"""Documents made from their types, and a few with the numbers that tests of tables, pictures and summaries name."""

from typing import Annotated, Any, get_args

from experiment.documents.collect_rollouts import Rollouts
from experiment.documents.curves import Curve
from experiment.documents.evaluate import Result
from experiment.documents.fit_world_model import Fit, OpenLoop
from experiment.documents.generate_rules import GenerateRules
from experiment.documents.temperature_sweep import Point, Sweep
from experiment.documents.train_controller import Training
from studies.headroom import documents as headroom
from studies.learned import documents as learned

from rlflow.errors import RLFlowError
from rlflow.schemas import plain, validate
from rlflow.schemas.figures import Figure
from rlflow.schemas.forms import ANY, Form

FIGURE = Figure(0.9, 0.5, "copy", 120)
DELIVERED = {"delivered": "optimised", "delivered_because": "deployed, it runs 1.13 [1.11, 1.14] times as fast"}
SCALARS = (True, 0, 1, "deadbeef0123", "1", "file.py:1", ["x"])
"""Each type of a scalar admits one of these, or is a list of texts."""


def sample(kind: Any, /, optional: bool = False, **given: Any) -> Any:
    """Return a small document of a type, with one element in each list and dictionary.

    optional: with the keys that may be absent. given: the values of keys that are not to be the least ones.
    """
    found = _sample(Form.of(kind), optional, frozenset())
    return found | plain(given) if given else found


def _sample(form: Form, optional: bool, above: frozenset) -> Any:
    """The sample of a form; an object within one of its own class, of those `above`, has no optional keys."""
    if form.is_object:
        kept = (
            form.children if optional and form.cls not in above else {key: form.children[key] for key in form.required}
        )
        return {key: _sample(form.children[key], optional, above | {form.cls}) for key in form.children if key in kept}
    if form.origin is dict:
        key = _sample(Form.of(get_args(form.type)[0]), optional, above)
        return {key: _sample(form.children[ANY], optional, above)}
    if form.origin is list:
        return [_sample(form.children[ANY], optional, above)]
    if form.origin is tuple:
        return [_sample(child, optional, above) for child in form.children.values()]
    kind = Annotated[(form.type, *form.metas)] if form.metas else form.type
    texts = getattr(form.type, "__members__", {}).values()
    return next(value for value in (*SCALARS, *texts, *get_args(form.type)) if _admits(kind, value))


def _admits(kind: Any, value: Any) -> bool:
    try:
        validate(kind, value)
    except RLFlowError:
        return False
    return True


def documents() -> dict[str, Any]:
    """Results of the stages and of two studies on a graph or two, by the name of their file or its folder."""
    return {
        "generate_rules": sample(GenerateRules, library={"rules": 29, "selected": {}, "hash": "0123456789abcdef"}),
        "collect_rollouts": {"bert": sample(Rollouts, optional=True), "tiny": sample(Rollouts, optional=True)},
        "fit_world_model": fits(),
        "train_controller": {"bert": sample(Training, dream_score_percent=FIGURE, real_score_percent=FIGURE)},
        "temperature_sweep": {"bert": sweep()},
        "evaluate": evaluation(),
        "rules_applied": {
            "bert": {"rlflow": {"merge": 12, "sum": 25, "never": 0}, "greedy": {"sum": 25}},
            "tiny": {"rlflow": {"merge": 1, "cancel": 2}},
            "untouched": {"greedy": {}},
        },
        "curves": {"bert": {"loss": Curve("nats", "epoch", [0, 1], [2.0, 1.0]).to_json()}},
        "headroom": savings(),
        "learned": {"bert": {"greedy": learnt(2.0, 2.0, 2.0, 0.0), "rlflow": learnt(3.5, -2.8531, 9.8531, 0.75)}},
        "learned_summary": gaps(),
    }


def evaluation() -> dict[str, Any]:
    """The document of `evaluate`: five methods on one graph, two on another."""
    steps = {"steps": 11, "distinct_rules": 10, "trajectory": "0123456789abcdef"}
    return {
        "bert": {
            "original": result(),
            "random": result(9.9, 1.01),
            "greedy": result(9.2, 1.06),
            "backtracking": result(9.1, 1.07),
            "rlflow": result(9.0, 1.08, training_s=200.0, seeds=[0, 1, 2], **steps, **DELIVERED),
        },
        "tiny": {"original": result(), "greedy": result(8.0, 1.2)},
    }


def result(cost_after_ms: float = 10.0, ratio: float = 1.0, **others: Any) -> dict[str, Any]:
    """One method's row, of ratios with narrow intervals around `ratio`."""
    return sample(
        Result,
        cost_before_ms=10.0,
        cost_after_ms=cost_after_ms,
        improvement_percent=10 * (10.0 - cost_after_ms),
        latency_ratio_as_written=ratio,
        latency_ratio_as_written_ci95=[ratio - 0.01, ratio + 0.02],
        latency_ratio_deployed=ratio + 0.05,
        latency_ratio_deployed_ci95=[ratio + 0.03, ratio + 0.06],
        max_relative_error=1.5e-7,
        real_interactions=300,
        prices_asked=900,
        prices_measured=0,
        rewriting_s=0.2,
        pricing_s=0.4,
        measuring_s=0.0,
        **others,
    )


def fits() -> dict[str, Any]:
    """The fit of a graph as a whole, and that of match tokens."""
    tokens = sample(Fit, optional=True, open_loop=[OpenLoop("return", 4, FIGURE)], saving_r2=FIGURE)
    tokens["calibration"] = [{"nominal_percent": 80, "share": Figure(0.9, 0.5, "uncalibrated", 120).to_json()}]
    whole = {"rule_mask_accuracy": FIGURE, "terminated_accuracy": FIGURE}
    return {
        "bert": sample(Fit, losses={"mixture": -3.0}, open_loop=[OpenLoop("z", 5, FIGURE)], **whole),
        "tiny": {key: value for key, value in tokens.items() if key not in whole},
    }


def sweep() -> dict[str, Any]:
    """Two temperatures, the higher one first."""
    points = [
        Point(1.5, 5.0, 7.0, 5, [0, 1], [4.5, 5.5], [6.0, 8.0], (4.0, 6.0), (5.0, 9.0)),
        Point(0.5, 9.0, 3.0, 5, [0, 1], [8.5, 9.5], [2.0, 4.0], (8.0, 10.0), (1.0, 5.0)),
    ]
    return Sweep(points, 1.0, 20).to_json()


def savings() -> dict[str, Any]:
    """The document of `headroom`: one graph by two costs."""
    original = saving(10.0, 0, at={str(steps): sample(headroom.Along) for steps in (10, 100)})
    greedy = saving(9.0, 137)
    saturation = saving(8.0, 4000, best_known=True, proven=False, limited_by="nodes")
    return {
        "bert": {
            "analytic": {"original": original, "greedy": greedy, "equality_saturation": saturation},
            "gpu": {"original": original, "greedy": greedy | {"best_known": True}},
        }
    }


def saving(cost_after_ms: float, evaluations: int, **others: Any) -> dict[str, Any]:
    """A method's row that had found 4 % after ten evaluations, and 9.5 % after a hundred."""
    along = {"10": headroom.Along(4.0, 0, 0.1), "100": headroom.Along(9.5, 0, 0.6)}
    absent = {"proven": None, "gap_percent": None, "limited_by": None, "best_known": False}
    saved = {"cost_before_ms": 10.0, "cost_after_ms": cost_after_ms, "improvement_percent": 10 * (10.0 - cost_after_ms)}
    return sample(headroom.Row, **saved, **absent | {"at": along, "evaluations": evaluations} | others)


def learnt(percent: float, low: float, high: float, share: float) -> dict[str, Any]:
    """A method's row that is the same after 500 evaluations and at the end."""
    row = sample(learned.Row, improvement_percent=percent, improvement_percent_ci95=[low, high], seeds=[0, 1])
    return row | {
        "improvement_percent_500": percent,
        "improvement_percent_500_ci95": [low, high],
        "gap_closed_500": share,
    }


def gaps() -> dict[str, Any]:
    """What the rows of `learned` say together."""
    return sample(
        learned.Summary,
        best_known={"bert": learned.BestKnown(4.0, "equality_saturation", 2.0, 100, False)},
        compared=["bert"],
        gap_closed={"500": {"rlflow": learned.GapClosed(0.75, (-2.4266, 3.9266), 1, [0, 1])}},
        beyond_backtracking={"bert": {"rlflow": learned.BeyondBacktracking(1.0, (-5.3531, 7.3531))}},
        share_of_best={"bert": {"rlflow": 0.875}},
        below_greedy=["tiny"],
    )
