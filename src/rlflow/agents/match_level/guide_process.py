"""Classes of matches as a policy that ships sees them, by V's reading and nothing that wants PyTorch.

    process = GuideProcess(TokenProcess(graph, rewriter, cost_model, reader.vocabulary), scorer)
    observed = process.observe(process.start())
    pointer.choose(observed)                        `OnnxPointer`: a place among the classes, or one beyond them
    player(work, state, cost_model, reader, pointer).play(None, candidates=1)            a whole episode in a search

The invariant: a controller sees here by the same numbers as in the dream that it was trained in (`TokenLayout`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlflow.agents.match_level.scorers import EncoderScorer
from rlflow.agents.match_level.token_reader import SCORES, TokenReader
from rlflow.agents.player import Player
from rlflow.cost.base import CostModel
from rlflow.method import State, Workspace
from rlflow.onnx_io.network import Model, texts_of
from rlflow.processes.class_process import ClassProcess
from rlflow.processes.process import ProcessState
from rlflow.processes.token_process import MatchLevelState, TokenProcess
from rlflow.representation.match_token import MatchToken
from rlflow.runtime.session import Session, open_session, run

_DECIMALS = 4  # of logits, far below what one class is ahead of another by


class ClassesObserved(NamedTuple):
    """K classes of matches, all float32: embedding (K, W), and taken, saving, apart, near (K,) as a `TokenLayout` has
    them before it scales them; gained (1, 1): what was saved since the episode began, in units of prices.
    """

    embedding: np.ndarray
    taken: np.ndarray
    saving: np.ndarray
    apart: np.ndarray
    near: np.ndarray
    gained: np.ndarray


class GuideProcess(ClassProcess):
    """A process of which V reads every distinct token once."""

    def __init__(self, process: TokenProcess, scorer: EncoderScorer) -> None:
        super().__init__(process)
        self._scorer = scorer
        self._number: dict[bytes, int] = {}

    def numbers(self, tokens: Sequence[MatchToken]) -> np.ndarray:
        return np.array([self._number.setdefault(token.key, len(self._number)) for token in tokens], np.int64)

    def saved_percent(self, before: ProcessState, after: ProcessState) -> None:
        """Leave it to the search, which may have begun before the process."""

    def observe(self, state: MatchLevelState) -> ClassesObserved:
        reading = self._scorer.reading(state.classes.tokens)
        taken, _, saving = reading[:SCORES]
        gained = (state.memory.begun - state.percent) / self.process.unit_percent
        columns = (reading[SCORES:].T, taken, saving, state.classes.apart, state.memory.near, np.full((1, 1), gained))
        return ClassesObserved(*(np.ascontiguousarray(column, np.float32) for column in columns))


@dataclass(frozen=True, eq=False)
class OnnxPointer:
    """C by the ONNX model of `onnx_pointer`, on one thread. max_steps: the horizon of its training, in choices."""

    session: Session
    max_steps: int

    @classmethod
    def of(cls, model: Model) -> OnnxPointer:
        """Open the model of a controller."""
        return cls(open_session(model, "deployed"), int(json.loads(texts_of(model)["max_steps"])))

    def choose(self, observation: ClassesObserved, generator: np.random.Generator | None = None) -> int:
        """Return the place of the most probable class or, with a generator, of a drawn one; K is to terminate."""
        return int(self._logits(observation, generator).argmax())

    def likeliest(
        self, observation: ClassesObserved, number: int, generator: np.random.Generator | None = None
    ) -> list[int]:
        """Return up to `number` places, the most probable first or drawn without replacement, none to terminate."""
        logits = self._logits(observation, generator)[:-1]
        places: list[int] = np.argsort(-logits, kind="stable")[:number].tolist()
        return places

    def _logits(self, observation: ClassesObserved, generator: np.random.Generator | None) -> np.ndarray:
        """(K + 1,) float64; with a generator as the largest of them is drawn (Gumbel's maximum)."""
        logits = run(self.session, observation._asdict())["logits"].astype(np.float64).round(_DECIMALS)
        return logits if generator is None else logits + generator.gumbel(size=len(logits))


def player(
    work: Workspace, state: State, cost_model: CostModel, reader: TokenReader, pointer: OnnxPointer
) -> Player[MatchLevelState, int]:
    """Return the player of episodes that begin at a state of a workspace."""
    scorer = EncoderScorer(reader, state.graph, work.rewriter, cost_model)
    process = TokenProcess(state.graph, work.rewriter, cost_model, reader.vocabulary, work.evaluator)
    return Player(work, state, GuideProcess(process, scorer), pointer, pointer.max_steps)
