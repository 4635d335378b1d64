"""Time what a policy finds that has had no lesson of the family against what backtracking delivers, as checked models.

    python pipelines/study.py learned.delivered

The machine should be quiet: other work widens the intervals, and the control, the original against itself, shows it.
The figures go to data/results/learned/delivered.json. What was searched is kept until all graphs are timed.
"""

from functools import partial
from pathlib import Path
from typing import Any

from experiment.comparison import Contender
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of
from tracking.run import numbers

from rlflow.agents.match_level.leave_one_out import policy_without
from rlflow.method import Budget
from rlflow.optimise.gate import GateConfig
from rlflow.settings import read_config
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig
from studies.latencies import contenders, latencies
from studies.learned.cells import Case, case_of
from studies.learned.documents import Delivered
from studies.program import OptionOf, open_study, options_of, study_program
from studies.published import publish

RESULTS = Path("data/results/learned/delivered.json")
BACKTRACKING, LEARNED = "backtracking", "rlflow"


@study_program("learned")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    section, option_of = settings["delivered"], options_of("learned")
    gate = GateConfig(**section["gate"], seed=settings["seed"])
    graphs = {name: option_of("graph", settings["cases"][name]["graph"]) for name in section["graphs"]}

    results: dict[str, Any] = {}
    with open_study("learned_delivered", settings) as study:
        methods_of = partial(_methods, settings, option_of)
        for name, figures, outcomes in latencies(graphs, methods_of, gate, study.folder):
            found = {method: outcome.result for method, outcome in outcomes.items()}
            results[name] = figures | {
                method: {"improvement_percent": result.improvement_percent, "evaluations": result.effort.rewrites}
                for method, result in found.items()
            }
            study.run.log(0, numbers({name: results[name]}))
        publish(RESULTS, Delivered, results, __file__)
        study.run.artifact(RESULTS)


def _methods(settings: Any, option_of: OptionOf, case: str) -> dict[str, Contender]:
    """Both methods, with the rewrites that each may have; rlflow by the study's policy."""
    section = settings["delivered"]
    searches = {name: option_of("search", name) for name in (BACKTRACKING, LEARNED)}
    searches[LEARNED]["options"]["folder"] = _policy(settings, case_of(settings, option_of, case))
    budgets = {name: Budget(rewrites=rewrites) for name, rewrites in section["rewrites"].items()}
    return contenders(searches, cost_model_of(option_of("cost", section["cost"])), budgets)


def _policy(settings: Any, case: Case) -> Path:
    """The folder of the policy that has had no lesson of the family."""
    lessons, folder = (Path(settings[name]).resolve() for name in ("lessons", "policies"))
    config = read_config(MatchLevelModelConfig, settings["policy"])
    return policy_without(case.family, case.taught_at, lessons, config, folder, seed=settings["seed"])
