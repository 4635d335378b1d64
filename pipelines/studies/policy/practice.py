"""Let the policy practise on graphs of a few layers, by choices of whole classes of matches: all, or a worker's share.

    python pipelines/study.py policy.practice                           on those that nobody has practised on yet
    python pipelines/study.py policy.practice workers=2 worker=1        on every second one, beside another worker

V leads half of the episodes, and greedy search the others. They go to data/policy/practice, a folder for each graph at
each cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of, graph_of

from rlflow.agents.match_level.lesson_files import Subject
from rlflow.agents.match_level.match_level_process import expert_of
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.agents.token_collection import Collected, TokenCollectionConfig, collect_tokens
from rlflow.kept import Kept
from rlflow.processes.token_process import TokenProcess
from rlflow.rules import library
from rlflow.rules.library import Library
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.settings import read_config
from rlflow.world_model.match_level.model import MatchLevelModel
from studies.policy.curriculum import practice_subjects
from studies.policy.pieces import carry_out
from studies.program import options_of, study_program

POLICY = Path("data/policy/policy")
PRACTICE = Path("data/policy/practice")
SECTIONS = ("seed", "practice")


@study_program("policy")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    subjects = practice_subjects(settings, options_of("policy"))
    play = read_config(TokenCollectionConfig, settings["practice"]["play"])
    practice = Practice(TaughtGuide.load(POLICY).model, library.load(), play, settings["seed"])
    lasting = {"expert": expert_of(practice.model).digest, **{name: settings[name] for name in SECTIONS}}
    pieces = {name: partial(practice.keep, name, subject) for name, subject in subjects.items()}
    carry_out("policy_practice", settings, lasting, pieces, PRACTICE)


@dataclass(frozen=True)
class Practice:
    """A model whose V leads episodes, their rules and settings, and the seed of what they draw."""

    model: MatchLevelModel
    rules: Library
    play: TokenCollectionConfig
    seed: int

    def keep(self, name: str, subject: Subject, folder: Path) -> Mapping[str, float]:
        """Play on a graph, unless that was done before, and keep its rollouts in the folder; returns figures."""
        collected = Kept(folder, Collected.save, Collected.load).get_or(name, partial(self.collect, name, subject))
        least = min(state.cost for episode in collected.rollouts.episodes for state in episode.states)
        return {
            "improvement_percent": 100.0 - least,
            "steps": collected.rollouts.num_steps,
            "tokens": len(collected.rollouts.tokens),
            "rewrites": collected.rewrites,
            "seconds": collected.seconds,
        }

    def collect(self, name: str, subject: Subject) -> Collected:
        """Return the rollouts of a graph; the same for the same seed, but for the seconds."""
        rewriter, cost_model = SharingRewriter(self.rules.rules), cost_model_of(subject.cost)
        process = TokenProcess(graph_of(subject.graph), rewriter, cost_model, self.model.arguments.vocabulary)
        expert = expert_of(self.model)
        return collect_tokens(process, name, self.play, seed=self.seed, library_hash=self.rules.hash, expert=expert)
