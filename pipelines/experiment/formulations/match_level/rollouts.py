"""Rollouts of the match level: they tell of every match what it saves, and agents act by all rules of the library."""

from collections.abc import Iterable
from typing import Any

from tracking.factories import graph_of
from tracking.share import Share
from tracking.stage import Stage

from experiment.formulations.episodes import OnEpisode, improvements, timed_by
from experiment.formulations.match_level.pretrained import pretrained
from rlflow.agents.match_level.match_level_process import expert_of
from rlflow.agents.token_collection import Collected, TokenCollectionConfig, collect_tokens
from rlflow.cost.base import CostModel
from rlflow.environments.end_to_end import EndToEnd
from rlflow.processes.token_process import TokenProcess
from rlflow.representation import token_archive
from rlflow.representation.token_rollouts import TokenEpisode, TokenRollouts
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.settings import read_config
from rlflow.trajectory.state_graph import Visit, Way


def write(stage: Stage, cost_model: CostModel, on_episode: OnEpisode) -> dict[str, Any]:
    timed = timed_by(stage.settings)
    found = _collected(stage, cost_model, on_episode, Share(), timed)
    token_archive.save(found.rollouts, stage.output(f"data/rollouts/{stage.graph}"))
    figures = _figures(found.rollouts) | {"evaluations": found.rewrites, "wall_time_s": found.seconds}
    return figures | ({} if timed is None else timed.figures())


def play(stage: Stage, cost_model: CostModel, on_episode: OnEpisode, share: Share) -> None:
    _collected(stage, cost_model, on_episode, share, None)


def ways(stage: Stage) -> Iterable[Way]:
    rollouts = token_archive.load(stage.input(f"data/rollouts/{stage.graph}"))
    for episode in rollouts.episodes:
        first, *others = [Visit(state.hash, 100.0 - state.cost) for state in episode.states]
        chosen = (state.token[step.chosen] for state, step in zip(episode.states, episode.steps, strict=False))
        steps = zip(others, chosen, episode.steps, strict=True)
        yield [first, *(visit._replace(rule=rollouts.rule_of[t], rewrites=step.taken) for visit, t, step in steps)]


def _collected(
    stage: Stage, cost_model: CostModel, on_episode: OnEpisode, share: Share, timed: EndToEnd | None
) -> Collected:
    """A share of the episodes on one graph; those that are among the checkpoints are not played again."""
    config = read_config(TokenCollectionConfig, stage.settings["rollouts"])
    rules, known = library.load(stage.input("data/rules/library.jsonl")), pretrained(stage.settings)
    model = None if known is None else known.model
    vocabulary = None if model is None else model.arguments.vocabulary
    process = TokenProcess(graph_of(stage.settings["graph"]), Rewriter(rules.rules), cost_model, vocabulary)

    def told(number: int, episode: TokenEpisode) -> None:
        on_episode(number, sum(step.reward for step in episode.steps), 100.0 - episode.states[-1].cost)

    return collect_tokens(
        process,
        stage.graph,
        config,
        seed=stage.seed,
        library_hash=rules.hash,
        expert=None if model is None else expert_of(model),
        timed=timed,
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
