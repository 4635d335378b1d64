"""Chains planned in M: what a rewrite leads to is imagined, and all else is as V says."""

from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from support.detours import COST, INTO, OUT, detour_process, detours, rules_astray, walked
from support.taught import BY_HEART, lessons_of

from rlflow.agents.match_level.chain import births_in
from rlflow.agents.match_level.guided_chains import ChainConfig, GuidedChains
from rlflow.agents.match_level.planned import Planner, planned
from rlflow.agents.match_level.scorers import EncoderScorer, Scorer
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import Budget
from rlflow.representation.token_batch import TokenTable
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.trajectory.replay import replay
from rlflow.world_model.match_level.trainer import fit_token_model

RULES = rules_astray()
REWRITER = SharingRewriter(RULES.rules)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy that knows an expert who takes the detour in two places, one after the other, and its birth sets."""
    place, rollouts = tmp_path_factory.mktemp("policy"), lessons()
    model = fit_token_model(rollouts, replace(BY_HEART, epochs=20), seed=0)
    TaughtGuide(model, ChainConfig(orders=("far_sighted",))).save(place)
    births_in(rollouts.episodes, rollouts, model).save(place)
    return place


def lessons() -> TokenRollouts:
    return lessons_of(detour_process(2, RULES), [walked(detours(2), (OUT, INTO) * 2, RULES)])


def search(folder: Path, *, length: int = 4, seed: int = 0, rewrites: int = 200) -> GuidedChains:
    plan = {"length": length, "dream": {"pessimism": 0.0}}
    return planned(RULES, REWRITER, COST, folder=folder, plan=plan, seed=seed, rewrites=rewrites)


def judge(folder: Path, places: int = 2, **settings: int) -> Scorer:
    return search(folder, **settings).scored_by(detours(places), REWRITER, COST)


def by_rule(values: np.ndarray, scores) -> dict[str, float]:
    names = [match.rule.name for _, match in scores.state.matches]
    return {name: float(values[names.index(name)]) for name in names}


def test_all_but_what_rewrites_lead_to_is_v_s(folder: Path):
    told = judge(folder).of(detours(2))
    alone = EncoderScorer(TaughtGuide.load(folder).guide.reader, detours(2), REWRITER, COST).of(detours(2))
    np.testing.assert_array_equal(told.taken, alone.taken)
    np.testing.assert_array_equal(told.saving, alone.saving)
    assert told.gain.shape == alone.gain.shape
    assert not np.array_equal(told.gain, alone.gain)


def test_a_detour_is_imagined_to_its_end(folder: Path):
    """Its first step costs something, its second saves more: a plan of one step sees nothing in it, one of two does.

    The rules that lead astray are too improbable to be planned with.
    """
    near, far = (judge(folder, length=length).of(detours(2)) for length in (1, 2))
    assert by_rule(near.saving, near)[OUT] < 0
    assert by_rule(near.gain, near)[OUT] == 0.0
    assert by_rule(far.gain, far)[OUT] > 0.0
    astray = [name for name in by_rule(far.gain, far) if name != OUT]
    assert astray
    assert all(by_rule(far.gain, far)[name] == 0.0 for name in astray)


def test_a_plan_depends_on_the_graph_and_the_seed_alone(folder: Path):
    """Not on what was asked before."""
    first = walked(detours(2), (OUT,), RULES)
    *_, moved = replay(detours(2), first, REWRITER)

    def gains(*graphs: Graph) -> list[float]:
        planner = judge(folder)
        return [planner.of(graph).gain.tolist() for graph in graphs][-1]

    assert gains(detours(2)) == gains(detours(2), moved, detours(2))


def test_a_graph_without_matches_is_no_trouble(folder: Path):
    only = SharingRewriter(RULES.select([RULES.get(INTO).id]).rules)
    scores = search(folder).scored_by(detours(1), only, COST).of(detours(1))
    assert len(scores.gain) == len(scores.state.matches) == 0


def test_the_search_finds_what_the_expert_found_and_replays(folder: Path):
    """In a third place, too, which the expert did not show."""
    expert = walked(detours(3), (OUT, INTO) * 3, RULES)
    found = search(folder).optimise(detours(3), Budget())
    assert found.best_ms == expert.steps[-1].runtime_ms < found.start_ms
    again = search(folder).optimise(detours(3), Budget())
    assert [step.rule for step in again.trajectory.steps] == [step.rule for step in found.trajectory.steps]


def test_what_is_remembered_is_bounded(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A judge that forgets what it has read of other states says the same of this one.

    It has the birth sets of the expert's last step alone, and plans with all rewrites here.
    """
    model, (episode,) = TaughtGuide.load(folder).model, lessons().episodes
    last = replace(episode, states=episode.states[-2:], steps=episode.steps[-1:], demonstration=None)
    births_in([last], lessons(), model).save(folder := Path(copytree(folder, tmp_path / "last")))
    planner: Planner = search(folder).scored_by.__self__  # type: ignore[attr-defined]
    matches = [match for found in REWRITER.matches(detours(2)) for match in found]
    graphs = [*(REWRITER.apply(detours(2), match) for match in matches), detours(2)]
    read: list[int] = []

    class Counted(TokenTable):
        def __init__(self, tokens):
            super().__init__(tokens)
            read.append(len(tokens))

    monkeypatch.setattr("rlflow.agents.match_level.planned.TokenTable", Counted)
    judges, times = [], []
    for most in (50_000, -1):
        monkeypatch.setattr("rlflow.agents.match_level.planned._MAX_REMEMBERED", most)
        one = replace(planner, least=-100.0).judge(detours(2), REWRITER, COST)
        for graph in graphs:
            one.of(graph)
        judges.append(one)
        times.append(len(read))
        read.clear()
    steady, forgetful = judges
    assert times[0] < times[1] == len(graphs), "tokens that the birth sets do not have are read once, or each time"
    np.testing.assert_allclose(forgetful.of(detours(2)).gain, steady.of(detours(2)).gain, atol=1e-5)


def test_a_policy_without_birth_sets_cannot_plan(folder: Path, tmp_path: Path):
    TaughtGuide.load(folder).save(tmp_path)
    with pytest.raises(InputError, match=r"birth_memory\.safetensors"):
        search(tmp_path)
