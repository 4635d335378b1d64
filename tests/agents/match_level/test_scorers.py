"""V's scores of a match is that of its token, whatever was asked before."""

import numpy as np
import pytest
from support.detours import COST, INTO, OUT, detour_process, detours, rules_astray, walked
from support.readers import TorchReader, reader_of
from support.taught import taught_by

from rlflow.agents.match_level import scorers, token_reader
from rlflow.agents.match_level.scorers import EncoderScorer, token_states
from rlflow.agents.match_level.token_reader import SCORES
from rlflow.representation.token_batch import TokenTable
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.world_model.match_level.model import MatchLevelModel

REWRITER = SharingRewriter(rules_astray().rules)
ROUNDED = 0.6e-4
"""Half of a ten-thousandth, and what readings in float32 differ by."""


@pytest.fixture(scope="module")
def taught() -> MatchLevelModel:
    return taught_by(detour_process(2, rules_astray()), walked(detours(2), (OUT, INTO) * 2, rules_astray()))


def judge(model: MatchLevelModel, places: int = 2) -> EncoderScorer:
    return EncoderScorer(reader_of(model), detours(places), REWRITER, COST)


def test_the_expert_s_rewrites_are_told_from_the_others(taught: MatchLevelModel):
    scores = judge(taught).of(detours(2))
    names = [match.rule.name for _, match in scores.state.matches]
    assert names.count(OUT) == 2
    assert len(names) > 2
    assert [logit > 0 for logit in scores.taken] == [name == OUT for name in names]
    assert scores.taken.shape == scores.gain.shape == (len(names),)


def test_matches_that_look_alike_share_an_opinion_and_a_key(taught: MatchLevelModel):
    scores = judge(taught).of(detours(2))
    by_key: dict[bytes, set[tuple[float, float]]] = {}
    for number, told in enumerate(zip(scores.taken.tolist(), scores.gain.tolist(), strict=True)):
        by_key.setdefault(scores.key_of(number), set()).add(told)
    assert len(by_key) < len(scores.taken)
    assert all(len(told) == 1 for told in by_key.values())


def test_an_opinion_is_what_v_reads(taught: MatchLevelModel):
    """Of the tokens of the same graph, in one go, without a memory and by PyTorch."""
    scores = judge(taught).of(detours(2))
    state = token_states(detours(2), REWRITER, COST, taught.arguments.vocabulary)(detours(2))
    taken, gain, saving = TorchReader(taught).read(state.tokens)[:SCORES, state.token_of]
    np.testing.assert_allclose(scores.taken, taken, atol=ROUNDED)
    np.testing.assert_allclose(scores.gain, gain, atol=ROUNDED)
    np.testing.assert_allclose(np.arcsinh(scores.saving), saving, atol=ROUNDED)


def test_no_token_is_read_twice(taught: MatchLevelModel, monkeypatch: pytest.MonkeyPatch):
    """Unless there were more in between than are remembered; what is said is the same."""
    read: list[int] = []

    class Counted(TokenTable):
        def __init__(self, tokens):
            super().__init__(tokens)
            read.append(len(tokens))

    monkeypatch.setattr(token_reader, "TokenTable", Counted)
    one = judge(taught)
    first, again = one.of(detours(2)), one.of(detours(2))
    assert read == [len(first.state.tokens)]
    monkeypatch.setattr(scorers, "_MAX_REMEMBERED", 1)
    moved = next(match for _, match in first.state.matches if match.rule.name == OUT)
    one.of(REWRITER.apply(detours(2), moved))
    last = one.of(detours(2))
    assert len(read) == 3, "one more for what was new, and one for what was forgotten"
    for scores in (again, last):
        np.testing.assert_allclose(scores.taken, first.taken, atol=1e-5)


def test_a_graph_without_matches_is_no_trouble(taught: MatchLevelModel):
    """The last state of the expert's way, with the rule that leads on alone."""
    rules = rules_astray()
    graph = detours(1)
    only = SharingRewriter(rules.select([rules.get(INTO).id]).rules)
    scores = EncoderScorer(reader_of(taught), graph, only, COST).of(graph)
    assert scores.taken.shape == scores.gain.shape == (0,)
