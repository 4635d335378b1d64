"""The product: `rlflow.optimise`, from a model to a faster one that was checked and timed, or to the original.

In the order in which a model meets them:

- `api` turns names into objects and puts method, library, prices and checks together;
- `source` reads and checks the model, once; `methods` lists the methods that can be chosen by name;
- `clock` is the time that all of it may take, and how phases share it;
- `first_move` runs whole-graph passes of public libraries before the search, if that is asked for;
- `specialise` says what may be assumed of the model: dimensions that its user names, a newer opset;
- `pipeline` optimises the subgraphs of If, Loop and Scan, each like a model of its own, then the model around them, in
  the `phases` judge, search, race or measure, check and time;
- `alternatives` does without the rules that a result relies on most, for a race of whole models;
- `shortlist` measures a few of the graphs that a search by other prices went through, where no race fits;
- `gate` lets nothing pass that computes something else;
- `timing` lets candidates race, and decides whether one is faster than the original;
- `runtimes` does both in other settings, and tells the fastest;
- `session_options` tries other options of ONNX Runtime's sessions on what is delivered, last;
- `asked` is what the command asks, by which `answers` keeps answers;
- `refusal` makes whatever happens to a candidate a reason for the next best one, and never the end of the run;
- `diagnose` finds the wrong step of a result that differs, and `reproducer` writes what shows it;
- `report` is what the user reads, `report_page` the page that it opens;
- `in_place` replaces a file by what is faster, once: by its `stamp` it knows what it has made.

Importing this package loads neither numpy nor ONNX Runtime; calling `optimise` does. `rlflow.optimise` is the function,
which hides the package of its name: import modules as in `from rlflow.optimise import gate`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import ModelProto

    from rlflow.cost.base import CostModel
    from rlflow.cost.pricing import PricingConfig
    from rlflow.method import Method, OnProgress
    from rlflow.optimise.api import Optimised
    from rlflow.optimise.clock import Shares
    from rlflow.optimise.gate import GateConfig
    from rlflow.optimise.methods import MethodFactory
    from rlflow.optimise.session_options import FindOptions
    from rlflow.optimise.source import Source
    from rlflow.rules.library import Library
    from rlflow.runtime.sizes import Shapes
    from rlflow.trajectory.record import Trajectory

DEFAULT_METHOD = "best"
DEFAULT_COST_MODEL = "predicted"
DEFAULT_SHORTLIST = 4
DEFAULT_BUDGET_S = 60.0
DEFAULT_SETTING = "deployed"
PASS_BACKENDS = ("onnx", "onnx-contrib")
"""Backends of passes whose programs are ONNX models."""


def optimise(
    model: ModelProto | Path | str | Source,
    *,
    method: str | Method | MethodFactory = DEFAULT_METHOD,
    options: Mapping[str, Any] | None = None,
    library: Library | Path | str | None = None,
    disabled: Sequence[str] = (),
    strict: bool = False,
    cost_model: str | CostModel = DEFAULT_COST_MODEL,
    shortlist: int = DEFAULT_SHORTLIST,
    pricing: PricingConfig | None = None,
    prices: Path | str | None = None,
    budget_s: float | None = DEFAULT_BUDGET_S,
    setting: str = DEFAULT_SETTING,
    beside: Sequence[str] = (),
    shapes: Shapes | None = None,
    read: Sequence[str] = (),
    gate: GateConfig | None = None,
    shares: Shares | None = None,
    reproducer: Path | str | None = None,
    passes: str | None = None,
    on_progress: OnProgress | None = None,
    is_interrupted: Callable[[], bool] | None = None,
    known: Trajectory | None = None,
    session_options: FindOptions | None = None,
    since_s: float | None = None,
) -> Optimised:
    """Return a model with the same interface, and the same outputs within rounding, that runs faster; or the original.

    `method` is a name (`rlflow.optimise.methods`), a factory that takes a library, a rewriter and a cost model, or a
    `Method` that is ready: that one searches with the rules and prices that it was made with, and to name others
    is an error. `options` are keyword arguments of the factory, such as `alpha` of "backtracking".

    `library` holds the rules: the shipped one, a `Library`, or the path of a library file (.jsonl) or of a file that
    declares rules (.py), which are verified first. `disabled` are ids or names of rules that are not used.
    Some rules assume that values are finite, or of ordinary size (`rlflow.rules.certificate`); the report says where a
    delivered model rests on one. `strict` does without them.

    `cost_model` is a name (`rlflow.cost.models`) or an object; the search goes by its prices. What it found then races
    with what its steps lead to without the rules that it relied on most, as whole models. Where there is no time for
    that, it is measured part by part on this machine, with some of the graphs on the way there, `shortlist` with the
    original, as `pricing` says, and the cheapest is taken; 0 leaves out both, and so does the cost model "measured", by
    whose prices the search goes then. What was measured is kept in the file `prices`, if one is given. All prices are
    ONNX Runtime's: for another runtime no parts are measured, and the race is run whenever there is time.

    `budget_s` is the wall time in seconds of everything: reading, judging the original, searching, measuring, checking
    the result and timing it, as `shares` divide it; None is no limit. What cannot be cut short, like a single run of a
    large model, may end later. The time begins at `since_s`, by `time.perf_counter`, or with the call. If there was no
    time to check a result, or to time it, the original is returned, and the reason says so. `is_interrupted` is asked
    again and again; once it says so, the best result so far is checked, and returned without being timed any further.

    `setting` is what is optimised for: "deployed" is ONNX Runtime as people run it, "as_written" with its own
    optimisation off, "openvino" another runtime (`rlflow.runtime.runtimes`), in which the result is then checked and
    timed. One that computes in a coarser type, such as "openvino_bfloat16", wants `GateConfig.tolerance`. In the
    settings `beside` it, the original and the result are compared and timed, too, when all else is done; the report has
    a table of them, and where one is faster, it decides which model is returned.

    `shapes` are those of inputs, by name, with which a model of dynamic dimensions is run: what is faster at one size
    may be slower at another, and some rewrites are right at one size alone. The search sees these sizes and, where the
    model can safely be upgraded to it, a newer opset. The result keeps its dimensions dynamic and its opset unless a
    rewrite needs more: then its inputs declare the sizes, at which alone it runs, or it has the first opset that will
    do, and the report says so.

    An input may have a shape for each of several sizes, as in `{"ids": [(1, 128), (8, 384)]}`; others have as many, or
    one. Then all dynamic dimensions stay dynamic, and nothing is assumed of them: the search sees the graph as it is,
    by prices of the first size. The result is compared and timed at each size, and delivered if it is faster at one,
    and with a probability of 0.98 slower by 1 % at none. The report has a row for each, `beside` must be empty.

    `read` is what the caller reads of the outputs, such as "logits[:, -1]" or "pooler_output": the model then has these
    outputs alone, each as numpy would index it, and what is delivered computes nothing else. It is what the result is
    compared with and timed against.

    `passes` is a backend, "onnx" or "onnx-contrib", whose whole-graph passes are run before the search: public
    libraries' pipelines, then single passes, as long as the predicted cost falls (`rlflow.optimise.pre_passes`). The
    method "passes" does this and nothing else.

    `known` are steps that an earlier run had found, `Optimised.result.trajectory`: the search's own result gives way to
    them where they are cheaper.

    `session_options` finds options of ONNX Runtime's sessions that are tried last, on what is delivered, such as
    the `OptionFinder` of `rlflow.optimise.session_options`, by which the command goes: without one of its optimisers,
    or without any. Where the model is faster with them by the same decision, and still equal, it carries them in its
    metadata, for `rlflow.session_options`. By default none are tried.

    `gate` says on how many inputs the result is checked, how it is timed, and how sure it must be that it is faster: by
    default with a probability of 0.9 by prediction and timing (`rlflow.runtime.timing.belief`), or proven. Its sessions
    have one thread unless it names more, as in `GateConfig(threads=8)`; the command gives them all cores.
    `on_progress` is called with the fraction done and a line of text.

    Subgraphs of If, Loop, Scan and SequenceMap are optimised first, each like a model of its own, with a share of the
    budget (`rlflow.optimise.pipeline`).

    A model that cannot be judged (it does not run here, its outputs change from run to run or tell nothing, or its
    dimensions are dynamic and no shapes are given) is returned as it is, with the reason.

    A rewritten model that computes something else, as written or as it will run, or that cannot be run, is refused: the
    report names the step, its rule, the values that it replaced and the fusion of ONNX Runtime that it let in, and what
    shows the difference is written to the folder `reproducer`, if one is given. Then the search goes on without that
    rule, and in the end the next best model is returned, or the original.

    Nothing else is written unless it is asked for: `Optimised.save` writes the model. Raises `InputError` for what
    cannot be used.
    """
    started = time.perf_counter() if since_s is None else since_s
    if on_progress:
        on_progress(0.0, "reading the model")
    from rlflow.method import never
    from rlflow.optimise.api import Request, optimise_model
    from rlflow.optimise.clock import Deadline, Shares
    from rlflow.optimise.gate import GateConfig

    deadline = Deadline.after(budget_s, is_interrupted=is_interrupted or never, since_s=started)
    request = Request(
        method=method,
        options=options or {},
        library=library,
        disabled=disabled,
        strict=strict,
        cost_model=cost_model,
        shortlist=shortlist,
        pricing=pricing,
        prices=None if prices is None else Path(prices),
        budget_s=budget_s,
        setting=setting,
        beside=beside,
        shapes=shapes or {},
        read=read,
        gate=gate or GateConfig(),
        shares=shares or Shares(),
        reproducer=None if reproducer is None else Path(reproducer),
        on_progress=on_progress,
        passes=passes,
        known=known,
        session_options=session_options,
        since_s=started,
    )
    return optimise_model(model, request, deadline)
