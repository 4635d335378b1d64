"""Time the graphs that greedy search and equality saturation find against each other and against the original.

    python pipelines/study.py headroom.latency

The machine should be quiet: other work widens the intervals, and the control, the original against itself, shows it.
The figures go to data/results/headroom/latency.json. What was searched is kept until all graphs are timed.
"""

from pathlib import Path
from typing import Any

from experiment.comparison import ORIGINAL, Contender, again
from experiment.results import write_results
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of, model_of
from tracking.run import numbers

from rlflow.cli.progress import progress_bar
from rlflow.method import Budget
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.methods import METHODS
from rlflow.optimise.source import Source
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from studies.headroom.documents import HeadroomLatency
from studies.latencies import Sheet, latencies
from studies.program import OptionOf, checkpoint, options_of, study_program, study_run

RESULTS = Path("data/results/headroom/latency.json")
GREEDY, SATURATION = "greedy", "equality_saturation"
SHEET = Sheet(
    ratios={
        "original_over_original": (ORIGINAL, again(ORIGINAL)),
        "original_over_greedy": (ORIGINAL, GREEDY),
        "original_over_equality_saturation": (ORIGINAL, SATURATION),
        "greedy_over_equality_saturation": (GREEDY, SATURATION),
    },
    medians={"original_ms": ORIGINAL, "greedy_ms": GREEDY, "equality_saturation_ms": SATURATION},
)


@study_program("headroom")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    option_of = options_of("headroom")
    gate = GateConfig(**settings["latency"]["gate"], seed=settings["seed"])
    contenders = _contenders(settings["latency"], option_of)

    results: dict[str, Any] = {}
    with (
        checkpoint("headroom_latency", settings) as folder,
        study_run("headroom_latency", settings["latency"]) as run,
    ):
        for name in settings["latency"]["graphs"]:
            with progress_bar(name) as on_progress:
                source = Source.of(model_of(option_of("graph", name)))
                results[name], _ = latencies(source, contenders, SHEET, gate, folder / name, on_progress)
            run.log(0, numbers({name: results[name]}))
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        write_results(RESULTS, HeadroomLatency, results)
        run.artifact(RESULTS)


def _contenders(settings: Any, option_of: OptionOf) -> dict[str, Contender]:
    """The two searches, with all rules."""
    rules, cost_model = library.load(), cost_model_of(option_of("cost", settings["cost"]))
    rewriter = Rewriter(rules.rules)
    contenders = {}
    for name in (GREEDY, SATURATION):
        search = option_of("search", name)
        method = METHODS.get(search["method"])(rules, rewriter, cost_model, **search["options"])
        contenders[name] = Contender(method, Budget(settings["time_s"], search["expansions"]))
    return contenders
