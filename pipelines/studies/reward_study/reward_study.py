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
from tracking.run import numbers

from rlflow.agents.tokens.config import TokenControllerConfig
from rlflow.agents.tokens.real_env import RealEpisodesConfig
from rlflow.cli.progress import progress_bar
from rlflow.environments import RewardConfig
from rlflow.errors import RLFlowError
from rlflow.schemas.results import write_results
from rlflow.world_model.settings import read_config
from studies.cell_pool import kept_row
from studies.program import checkpoint, graph_files, options_of, study_program, study_run
from studies.reward_study.cases import Case, Key, Row, TimingConfig, run_case, summary

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
        rows: dict[Key, Row] = {}
        for done, (key, case) in enumerate(cases.items()):
            on_progress(done / len(cases), _told(key, rows))
            row = kept_row(folder / f"{'-'.join(key)}.json", settings["longest_s"], run_case, case)
            if row is not None:
                rows[key] = row
                graph, reward, _ = key
                run.log(case.seed, numbers({graph: {reward: row}}))

        if rows:
            RESULTS.mkdir(parents=True, exist_ok=True)
            write_results(RESULTS / "metrics.json", summary(rows))
            run.artifact(RESULTS)
        if missing := [" ".join(key) for key in cases if key not in rows]:
            raise RLFlowError(f"without a result, to be tried again by the next run: {', '.join(missing)}")


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


def _told(key: Key, rows: dict[Key, Row]) -> str:
    """The turn that is taken, and what came of the last."""
    text = " ".join(key)
    if not rows:
        return text
    last, row = list(rows.items())[-1]
    ratio = row["latency"]["deployed"]["ratio"]["value"]
    return f"{text}; {' '.join(last)}: {ratio:.3f} times as fast after {row['training_s']:.0f} s"
