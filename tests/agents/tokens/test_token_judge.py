"""V's opinion of a match is that of its token, whatever was asked before."""

import numpy as np
import pytest
import torch
from support.detours import COST, INTO, OUT, detour_process, detours, rules_astray, walked
from support.taught import taught_by

from rlflow.agents.tokens import token_judge
from rlflow.agents.tokens.token_judge import TokenJudge, token_states
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.world_model.tokens.model import TokenWorldModel
from rlflow.world_model.tokens.token_batch import TokenTable

REWRITER = SharingRewriter(rules_astray().rules)


@pytest.fixture(scope="module")
def taught() -> TokenWorldModel:
    return taught_by(detour_process(2, rules_astray()), walked(detours(2), (OUT, INTO) * 2, rules_astray()))


def judge(model: TokenWorldModel, places: int = 2) -> TokenJudge:
    return TokenJudge(model, detours(places), REWRITER, COST)


def test_the_expert_s_rewrites_are_told_from_the_others(taught: TokenWorldModel):
    opinion = judge(taught).of(detours(2))
    names = [match.rule.name for _, match in opinion.state.matches]
    assert names.count(OUT) == 2
    assert len(names) > 2
    assert [logit > 0 for logit in opinion.taken] == [name == OUT for name in names]
    assert opinion.taken.shape == opinion.gain.shape == (len(names),)


def test_matches_that_look_alike_share_an_opinion_and_a_key(taught: TokenWorldModel):
    opinion = judge(taught).of(detours(2))
    by_key: dict[bytes, set[tuple[float, float]]] = {}
    for number, told in enumerate(zip(opinion.taken.tolist(), opinion.gain.tolist(), strict=True)):
        by_key.setdefault(opinion.key_of(number), set()).add(told)
    assert len(by_key) < len(opinion.taken)
    assert all(len(told) == 1 for told in by_key.values())


def test_an_opinion_is_what_v_reads(taught: TokenWorldModel):
    """Of the tokens of the same graph, in one go and without a memory."""
    opinion = judge(taught).of(detours(2))
    state = token_states(detours(2), REWRITER, COST, taught.arguments.vocabulary)(detours(2))
    reading = taught.encoder.read(TokenTable(state.tokens))
    np.testing.assert_allclose(opinion.taken, reading.taken[torch.from_numpy(state.token_of)], atol=1e-5)
    np.testing.assert_allclose(opinion.gain, reading.gain[torch.from_numpy(state.token_of)], atol=1e-5)


def test_no_token_is_read_twice(taught: TokenWorldModel, monkeypatch: pytest.MonkeyPatch):
    """Unless there were more in between than are remembered; what is said is the same."""
    read: list[int] = []

    class Counted(TokenTable):
        def __init__(self, tokens):
            super().__init__(tokens)
            read.append(len(tokens))

    monkeypatch.setattr(token_judge, "TokenTable", Counted)
    one = judge(taught)
    first, again = one.of(detours(2)), one.of(detours(2))
    assert read == [len(first.state.tokens)]
    monkeypatch.setattr(token_judge, "_MAX_REMEMBERED", 1)
    moved = next(match for _, match in first.state.matches if match.rule.name == OUT)
    one.of(REWRITER.apply(detours(2), moved))
    last = one.of(detours(2))
    assert len(read) == 3, "one more for what was new, and one for what was forgotten"
    for opinion in (again, last):
        np.testing.assert_allclose(opinion.taken, first.taken, atol=1e-5)


def test_a_graph_without_matches_is_no_trouble(taught: TokenWorldModel):
    """The last state of the expert's way, with the rule that leads on alone."""
    rules = rules_astray()
    graph = detours(1)
    only = SharingRewriter(rules.select([rules.get(INTO).id]).rules)
    opinion = TokenJudge(taught, graph, only, COST).of(graph)
    assert opinion.taken.shape == opinion.gain.shape == (0,)
