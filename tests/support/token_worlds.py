"""Small rollouts over match tokens of a real graph, and settings of a small world model that is fitted on them."""

from functools import cache

from rlflow import zoo
from rlflow.agents.token_collection import TokenCollectionConfig, collect_tokens
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.processes.token_process import TokenProcess
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig
from support.walks import LIBRARY, REWRITER
from support.zoo_names import SMALL as SMALL_MODELS

SMALL = MatchLevelModelConfig(
    encoder_width=12,
    encoder_layers=2,
    encoder_epochs=3,
    encoder_batch=64,
    metric_width=6,
    survival_width=8,
    epochs=3,
    steps_per_batch=32,
    held_out_fraction=0.2,
)
EPISODES = TokenCollectionConfig(episodes=12, steps=8)
FEW = TokenCollectionConfig(episodes=7, steps=4)


@cache
def small_graph(name: str = "bert") -> Graph:
    return from_onnx(zoo.build(name, **SMALL_MODELS[name]))


def small_process(name: str = "bert") -> TokenProcess:
    return TokenProcess(small_graph(name), REWRITER, AnalyticCost())


@cache
def small_token_rollouts() -> TokenRollouts:
    return collect_tokens(small_process(), "bert", EPISODES, seed=0, library_hash=LIBRARY.hash).rollouts
