"""The formulation over match tokens: rollouts tell of every match what it saves, and an action takes a class."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tracking.factories import graph_of
from tracking.share import Share
from tracking.stage import Stage

from experiment.formulations import match_level_trust
from experiment.formulations.controller_trainer import ControllerTrainer
from experiment.formulations.formulation import Formulation, OnEpisode, alone, improvements, ways_before
from rlflow.agents.match_level.chain import FittedWorld
from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.match_level_search import MatchLevelSearch
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig
from rlflow.agents.match_level.real_env import real_return
from rlflow.agents.selection import Trial
from rlflow.agents.token_collection import Collected, TokenCollectionConfig, collect_tokens
from rlflow.cost.base import CostModel
from rlflow.environments.token_process import TokenProcess
from rlflow.errors import InputError
from rlflow.representation import token_archive
from rlflow.representation.token_rollouts import TokenEpisode, TokenRollouts
from rlflow.representation.token_shards import merged
from rlflow.rules import library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.epochs import OnEpoch
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.settings import read_config

RANDOM_EPISODES = 4


class MatchLevel(Formulation):
    """Agents act by all rules of the library."""

    model_config = MatchLevelModelConfig
    curves: ClassVar = {
        "encoder/saving": "asinh of units, squared",
        "encoder/sigma": "nats",
        "encoder/births": "log of operators, squared",
        "memory/births": "nats",
        "memory/gone": "nats",
    }
    drawn: ClassVar = ["encoder/saving", "encoder/births", "memory/births", "memory/gone"]

    def write_rollouts(self, stage: Stage, cost_model: CostModel, on_episode: OnEpisode) -> dict[str, Any]:
        found, before = _collected(stage, cost_model, on_episode, Share()), stage.before
        earlier = [] if before is None else [token_archive.load(stage.input(f"{before}/rollouts/{stage.graph}"))]
        token_archive.save(merged([*earlier, found.rollouts]), stage.output(f"{stage.data}/rollouts/{stage.graph}"))
        return _figures(found.rollouts) | {"evaluations": found.rewrites, "wall_time_s": found.seconds}

    def play(self, stage: Stage, cost_model: CostModel, on_episode: OnEpisode, share: Share) -> None:
        _collected(stage, cost_model, on_episode, share)

    def rollouts(self, stage: Stage) -> TokenRollouts:
        return token_archive.load(stage.input(f"{stage.data}/rollouts/{stage.graph}"))

    def fit(
        self, stage: Stage, rollouts: TokenRollouts, config: MatchLevelModelConfig, on_epoch: OnEpoch
    ) -> MatchLevelModel:
        """Write the birth sets, too, that the model dreams of."""
        checkpoint = stage.checkpoint / "fit.pt"
        world = FittedWorld.fit(rollouts, config, seed=stage.seed, checkpoint=checkpoint, on_epoch=on_epoch)
        world.save(stage.output(f"{stage.data}/world_models/{stage.graph}"))
        return world.model

    def trust(
        self,
        stage: Stage,
        model: MatchLevelModel,
        rollouts: TokenRollouts,
        training: Sequence[TokenEpisode],
        held_out: Sequence[TokenEpisode],
    ) -> dict[str, Any]:
        return match_level_trust.figures(model, rollouts, training, held_out, stage.seed)

    def trainer(self, stage: Stage, cost_model: CostModel) -> ControllerTrainer:
        """A controller before its training that draws its actions is a random agent."""
        settings, graph = stage.settings["controller"], graph_of(stage.settings["graph"])
        world = FittedWorld.load(stage.input(f"{stage.data}/world_models/{stage.graph}"))
        dream = world.dream(self.rollouts(stage), read_config(MatchLevelDreamConfig, settings["dream"]))
        config, rules = _controller_config(settings), _rules(stage)

        search_of = _search_of(stage, cost_model, world.model, rules)
        random_percents = search_of(dream.untrained(config, seed=stage.seed)).drawn(graph, RANDOM_EPISODES)
        process = TokenProcess(graph, Rewriter(rules.rules), cost_model, world.model.arguments.vocabulary)

        def real_episode(controller: MatchLevelController) -> Trial:
            return real_return(process, world.model, controller, dream.config.max_steps)

        return ControllerTrainer(dream, config, graph, alone(search_of), real_episode, random_percents)

    def policy(self, stage: Stage, cost_model: CostModel) -> MatchLevelSearch:
        model = MatchLevelModel.load(stage.input(f"{stage.data}/world_models/{stage.graph}"))
        controller = MatchLevelController.load(stage.input(f"{stage.data}/policies/{stage.graph}"))
        return _search_of(stage, cost_model, model, _rules(stage))(controller)


def _rules(stage: Stage) -> Library:
    return library.load(stage.input("data/rules/library.jsonl"))


def _collected(stage: Stage, cost_model: CostModel, on_episode: OnEpisode, share: Share) -> Collected:
    """A share of the episodes on one graph; those that are among the checkpoints are not played again.

    `InputError` for any reward but `incremental`.
    """
    if (reward := stage.settings["reward"]["kind"]) != "incremental":
        raise InputError(
            f"reward={reward} cannot be used with world_model=match_level: its rollouts say of every match what it "
            "saves by price, and far fewer could be timed; choose world_model=graph_level with this reward, or compare "
            "rewards of a model-free agent on tokens by `make study NAME=reward_study`"
        )
    settings, trajectories = stage.settings["rollouts"], ways_before(stage)
    config, rules = TokenCollectionConfig(**settings | {"greedy": tuple(settings["greedy"])}), _rules(stage)
    process = TokenProcess(graph_of(stage.settings["graph"]), Rewriter(rules.rules), cost_model)

    def told(number: int, episode: TokenEpisode) -> None:
        on_episode(number, sum(step.reward for step in episode.steps), 100.0 - episode.states[-1].cost)

    return collect_tokens(
        process,
        stage.graph,
        config,
        seed=stage.seed,
        library_hash=rules.hash,
        trajectories=trajectories,
        numbers=share.of(config.episodes),
        checkpoint=stage.checkpoint / "episodes",
        on_episode=told,
    )


def _figures(rollouts: TokenRollouts) -> dict[str, Any]:
    episodes = rollouts.episodes
    states = [state for episode in episodes for state in episode.states]
    taken = [before.token[step.chosen] for e in episodes for before, step in zip(e.states, e.steps, strict=False)]
    return {
        "episodes": len(episodes),
        "steps": rollouts.num_steps,
        "states": len(states),
        "distinct_tokens": len(rollouts.tokens),
        "labels": sum(int(state.count.sum()) for state in states),
        "rules_available": len(set(rollouts.rule_of)),
        "rules_applied": len({rollouts.rule_of[token] for token in taken}),
        **improvements(
            [episode.states[0].cost - episode.states[-1].cost for episode in episodes],
            max(100.0 - state.cost for state in states),
        ),
    }


def _search_of(
    stage: Stage, cost_model: CostModel, model: MatchLevelModel, rules: Library
) -> Callable[[MatchLevelController], MatchLevelSearch]:
    """Episodes are as long as those of the stage's environment."""
    max_steps = stage.settings["environment"]["max_steps"]

    def search(controller: MatchLevelController) -> MatchLevelSearch:
        rewriter = Rewriter(rules.rules)
        return MatchLevelSearch(rules, rewriter, cost_model, model, controller, max_steps, seed=stage.seed)

    return search


def _controller_config(settings: dict[str, Any]) -> MatchLevelControllerConfig | CmaEsConfig:
    """The settings of a training, by PPO or by evolution: the name of the part in section `controller` tells which."""
    if "cma_es" in settings:
        return read_config(CmaEsConfig, settings["cma_es"])
    return read_config(MatchLevelControllerConfig, settings["ppo"])
