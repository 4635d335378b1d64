"""The options of `rlflow optimise`, as they are declared and explained on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlflow.cost.models import COST_MODELS
from rlflow.optimise import PASS_BACKENDS
from rlflow.optimise.methods import METHODS
from rlflow.runtime.runtimes import PRECISIONS, runtime_names

Model = Annotated[Path, typer.Argument(help="The ONNX model to optimise.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write the result.")]
Method = Annotated[str, typer.Option(help=f"One of {', '.join(METHODS.names())}.")]
Budget = Annotated[
    str,
    typer.Option(help="Wall time of everything, search, checks and timing, such as 15s or 5m; Ctrl-C ends it early."),
]
Setting = Annotated[
    str, typer.Option(help="How ONNX Runtime will run it: `deployed`, with its own optimisation, or `as_written`.")
]
Runtime = Annotated[
    str,
    typer.Option(
        help="The runtime in which the model will run, and the result is checked and timed: "
        f"{', '.join(runtime_names())}; auto: ONNX Runtime, then all others that are installed, of which the fastest "
        "counts."
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        help=f"The type in which that computes with floats: {', '.join(PRECISIONS)}, or auto, whatever is fastest "
        "within the tolerance."
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        min=0.0,
        help="The relative error against float32 that you accept of a coarser precision; of float32 it says nothing.",
    ),
]
CostModel = Annotated[
    str, typer.Option(help=f"How the search prices a graph: one of {', '.join(COST_MODELS.names())}.")
]
Rules = Annotated[Path | None, typer.Option(help="Rules of your own, besides the shipped ones: a .py or a .jsonl.")]
Disable = Annotated[list[str] | None, typer.Option(help="A rule not to use, by id or name; repeatable.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Use no rule that assumes that values are finite or of ordinary size.")
]
Shape = Annotated[
    list[str] | None,
    typer.Option(
        help="Shape of an input with dynamic dimensions, as in x=1x128; repeatable. The dimensions stay dynamic unless "
        "a rewrite needs these sizes; then the result accepts no others, and the report says so. Several sizes, as in "
        "x=1x128+8x384: the dimensions stay dynamic, and the result is checked and timed at each."
    ),
]
Dispatch = Annotated[
    bool,
    typer.Option(
        "--dispatch",
        help="Write a model for each of several sizes instead of one for all, OUTPUT.1x128.onnx and so on, each with "
        "its share of the budget, and OUTPUT.dispatch.json, by which rlflow.dispatch_session opens the right one.",
    ),
]
Read = Annotated[
    list[str] | None,
    typer.Option(
        help="What you read of an output, as in 'logits[:, -1]'; repeatable. The model then has these outputs alone, "
        "and computes nothing else."
    ),
]
Policy = Annotated[Path | None, typer.Option(help="Folder of a policy, for --method rlflow; else the one that ships.")]
TrainedOn = Annotated[
    str | None, typer.Option(help="The graph on which a policy of `dvc repro` was trained, for --method rlflow.")
]
Passes = Annotated[
    str | None,
    typer.Option(help=f"Run whole-graph passes of public libraries first: {' or '.join(PASS_BACKENDS)}."),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Threads of the sessions in which models are checked and timed, as many as yours have: by default one "
        "on each core on which this process may run, as in ONNX Runtime.",
    ),
]
Prove = Annotated[
    bool,
    typer.Option(
        "--prove", help="Deliver only what rounds alone prove to be faster, at 99 %; it takes longer to decide."
    ),
]
DefaultOptions = Annotated[
    bool,
    typer.Option(
        "--default-options",
        help="Try no session options: your sessions have ONNX Runtime's defaults, or those that you have chosen.",
    ),
]
Page = Annotated[
    Path | None, typer.Option("--report", help="Write a page about it as well, a .html that opens without a network.")
]
Anew = Annotated[bool, typer.Option("--anew", help="Optimise even a model that was asked for in the same way before.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]
