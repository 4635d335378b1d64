"""Time what a policy finds that has had no lesson of the family against what backtracking delivers, as checked models.

    python pipelines/study.py learned.delivered

The machine should be quiet: other work widens the intervals, and the control, the original against itself, shows it.
The figures go to data/results/learned/delivered.json. What was searched is kept until all graphs are timed.
"""

from pathlib import Path
from typing import Any

from experiment.comparison import ORIGINAL, Contender, again
from experiment.results import write_results
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of, model_of
from tracking.run import numbers

from rlflow.agents.match_level.leave_one_out import policy_without
from rlflow.cli.progress import progress_bar
from rlflow.method import Budget
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.methods import METHODS
from rlflow.optimise.source import Source
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig
from rlflow.world_model.settings import read_config
from studies.latencies import Sheet, latencies
from studies.learned.documents import Delivered
from studies.program import OptionOf, checkpoint, options_of, study_program, study_run

RESULTS = Path("data/results/learned/delivered.json")
BACKTRACKING, LEARNED = "backtracking", "rlflow"
SHEET = Sheet(
    ratios={
        "original_over_original": (ORIGINAL, again(ORIGINAL)),
        "original_over_backtracking": (ORIGINAL, BACKTRACKING),
        "original_over_rlflow": (ORIGINAL, LEARNED),
        "backtracking_over_rlflow": (BACKTRACKING, LEARNED),
    },
    medians={"original_ms": ORIGINAL, "backtracking_ms": BACKTRACKING, "rlflow_ms": LEARNED},
)


@study_program("learned")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    section, option_of = settings["delivered"], options_of("learned")
    gate = GateConfig(**section["gate"], seed=settings["seed"])

    results: dict[str, Any] = {}
    with checkpoint("learned_delivered", settings) as folder, study_run("learned_delivered", settings) as run:
        for name in section["graphs"]:
            with progress_bar(name) as on_progress:
                source = Source.of(model_of(option_of("graph", settings["cases"][name]["graph"])))
                contenders = _contenders(settings, option_of, name)
                figures, outcomes = latencies(source, contenders, SHEET, gate, folder / name, on_progress)
            found = {method: outcome.result for method, outcome in outcomes.items()}
            results[name] = figures | {
                method: {"improvement_percent": result.improvement_percent, "evaluations": result.effort.rewrites}
                for method, result in found.items()
            }
            run.log(0, numbers({name: results[name]}))
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        write_results(RESULTS, Delivered, results)
        run.artifact(RESULTS)


def _contenders(settings: Any, option_of: OptionOf, case: str) -> dict[str, Contender]:
    """Both methods, with all rules and the rewrites that each may have; rlflow by the study's policy."""
    section = settings["delivered"]
    rules, cost_model = library.load(), cost_model_of(option_of("cost", section["cost"]))
    rewriter = Rewriter(rules.rules)
    taught = {BACKTRACKING: {}, LEARNED: {"folder": _policy(settings, settings["cases"][case])}}
    contenders = {}
    for name in (BACKTRACKING, LEARNED):
        search = option_of("search", name)
        method = METHODS.get(search["method"])(rules, rewriter, cost_model, **search["options"] | taught[name])
        contenders[name] = Contender(method, Budget(rewrites=section["rewrites"][name]))
    return contenders


def _policy(settings: Any, case: Any) -> Path:
    """The folder of the policy that has had no lesson of the family."""
    lessons, folder = (Path(settings[name]).resolve() for name in ("lessons", "policies"))
    config = read_config(MatchLevelModelConfig, settings["policy"])
    return policy_without(case["family"], case["taught_at"], lessons, config, folder, seed=settings["seed"])
