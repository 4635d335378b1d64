"""Train an agent by estimated and by measured rewards, and time what it finds.

    python pipelines/study.py reward_study                                     conf/study/reward_study.yaml
    python pipelines/study.py reward_study 'seeds=[0]' '~rewards.every_step'                                a part of it

The figures go to data/results/reward_study/metrics.json. A training that is done is kept until all are, so that a study
which was killed goes on where it was. It wants a quiet machine.
"""

from pathlib import Path
from typing import Any

from experiment.results import write_results
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_context_of
from tracking.run import numbers

from rlflow.agents.tokens.config import TokenControllerConfig
from rlflow.agents.tokens.real_env import RealEpisodesConfig
from rlflow.cli.progress import progress_bar
from rlflow.environments import RewardConfig
from rlflow.world_model.settings import read_config
from studies.program import checkpoint, graph_files, options_of, study_program, study_run
from studies.reward_study.cases import Case, Key, Row, TimingConfig, run_case, summary
from studies.reward_study.documents import RewardStudy
from studies.runner import check_complete, gathered, kept_rows

RESULTS = Path("data/results/reward_study")


@study_program("reward_study")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    with (
        checkpoint("reward_study", settings) as folder,
        study_run("reward_study", settings) as run,
        progress_bar("reward study") as on_progress,
    ):
        cases = _cases(settings, folder)

        def on_row(key: Key, row: Row) -> str:
            graph, reward, _ = key
            run.log(cases[key].seed, numbers({graph: {reward: row}}))
            return _said(row)

        kept = kept_rows(cases, run_case, lambda case: settings["longest_s"], 1, folder)
        rows = gathered(cases, kept, on_row, on_progress)
        if rows:
            RESULTS.mkdir(parents=True, exist_ok=True)
            write_results(RESULTS / "metrics.json", RewardStudy, summary(rows))
            run.artifact(RESULTS)
        check_complete(cases, rows)


def _cases(settings: Any, folder: Path) -> dict[Key, Case]:
    """The trainings of the study, by graph, reward and seed; a seed's rewards follow each other."""
    option_of = options_of("reward_study")
    graphs = graph_files({graph: option_of("graph", graph) for graph in settings["graphs"]}, folder, processes=1)
    kind, context = cost_context_of(settings["cost"])
    rewards = {
        name: read_config(RewardConfig, settings["reward"] | changed) for name, changed in settings["rewards"].items()
    }
    return {
        (graph, name, str(seed)): Case(
            model=model,
            cost_model=kind,
            context=context,
            seed=seed,
            reward=reward,
            ppo=read_config(TokenControllerConfig, settings["controller"]["ppo"]),
            real=read_config(RealEpisodesConfig, settings["real"]),
            timing=read_config(TimingConfig, settings["timing"]),
        )
        for graph, model in graphs.items()
        for seed in settings["seeds"]
        for name, reward in rewards.items()
    }


def _said(row: Row) -> str:
    """A training's result in a few words."""
    ratio = row["latency"]["deployed"]["ratio"]["value"]
    return f"{ratio:.3f} times as fast after {row['training_s']:.0f} s"
