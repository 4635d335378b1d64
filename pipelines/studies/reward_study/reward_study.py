"""Train an agent by estimated and by measured rewards, and time what it finds.

    python pipelines/study.py reward_study                                     conf/study/reward_study.yaml
    python pipelines/study.py reward_study 'seeds=[0]' '~rewards.every_step'                                a part of it

The figures go to data/results/reward_study/metrics.json. A training that is done is kept until all are, so that a study
which was killed goes on where it was. It wants a quiet machine.
"""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_context_of
from tracking.run import Run, numbers

from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.environments import RewardConfig
from rlflow.settings import read_config
from studies.program import graph_files, open_study, options_of, study_program
from studies.published import publish
from studies.reward_study.cases import Case, Key, Row, TimingConfig, run_case, summary
from studies.reward_study.documents import RewardStudy
from studies.subject import Subject

RESULTS = Path("data/results/reward_study")


@study_program("reward_study")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    with open_study("reward_study", settings) as study:
        if rows := study.rows(_cases(settings, study.folder), run_case, _logged):
            publish(RESULTS / "metrics.json", RewardStudy, summary(rows), __file__)
            study.run.artifact(RESULTS)


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
            subject=Subject(model, kind, context),
            seed=seed,
            reward=reward,
            ppo=read_config(MatchLevelControllerConfig, settings["controller"]["ppo"]),
            real=read_config(RealEpisodesConfig, settings["real"]),
            timing=read_config(TimingConfig, settings["timing"]),
        )
        for graph, model in graphs.items()
        for seed in settings["seeds"]
        for name, reward in rewards.items()
    }


def _logged(run: Run, key: Key, row: Row) -> str:
    """Log a row, and tell it in a few words."""
    graph, reward, seed = key
    run.log(int(seed), numbers({graph: {reward: row}}))
    ratio = row["latency"]["deployed"]["ratio"]["value"]
    return f"{ratio:.3f} times as fast after {row['training_s']:.0f} s"
