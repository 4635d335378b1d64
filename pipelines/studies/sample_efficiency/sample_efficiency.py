"""Count the real steps of an agent that learns in a dream, beside those of one that learns on the graph itself.

    python pipelines/study.py sample_efficiency   conf/study/sample_efficiency.yaml
    python pipelines/study.py sample_efficiency 'graphs=[gpt2_last_token_two_layers]' 'seeds=[0]'   a part of it

The figures go to data/results/sample_efficiency/metrics.json. A graph and seed that is done is kept until all are, so
that a study which was killed goes on where it was.
"""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_context_of
from tracking.run import Run, numbers

from rlflow.agents.match_level.learning import LearningConfig
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.settings import read_config
from studies.program import graph_files, open_study, options_of, study_program
from studies.published import publish
from studies.sample_efficiency.cases import Case, Key, Row, run_case, summary
from studies.sample_efficiency.documents import SampleEfficiency
from studies.subject import Subject

RESULTS = Path("data/results/sample_efficiency")


@study_program("sample_efficiency")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    with open_study("sample_efficiency", settings) as study:
        if rows := study.rows(_cases(settings, study.folder), run_case, _logged):
            publish(RESULTS / "metrics.json", SampleEfficiency, summary(rows), __file__)
            study.run.artifact(RESULTS)


def _cases(settings: Any, folder: Path) -> dict[Key, Case]:
    """The trainings of the study, by graph and seed."""
    option_of = options_of("sample_efficiency")
    graphs = graph_files({graph: option_of("graph", graph) for graph in settings["graphs"]}, folder, processes=1)
    kind, context = cost_context_of(settings["cost"])
    return {
        (graph, str(seed)): Case(
            subject=Subject(model, kind, context),
            seed=seed,
            episodes=tuple(settings["episodes"]),
            dreams=settings["dreams"],
            learning=LearningConfig.read(settings),
            free=read_config(MatchLevelControllerConfig, settings["controller"]["ppo"] | settings["model_free"]),
            real=read_config(RealEpisodesConfig, settings["real"]),
        )
        for graph, model in graphs.items()
        for seed in settings["seeds"]
    }


def _logged(run: Run, key: Key, row: Row) -> str:
    """Log a row, and tell it in a few words."""
    graph, seed = key
    run.log(int(seed), numbers({graph: row}))
    share = row["share_of_interactions"]
    return "never as good" if share is None else f"as good after {share:.3f} of the real steps"
