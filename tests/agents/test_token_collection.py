"""Episodes over match tokens: what is collected depends on the seed alone, not on kills or on the number of workers."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from support.token_worlds import FEW as EPISODES
from support.token_worlds import small_process
from support.walks import LIBRARY

from rlflow.agents import token_collection
from rlflow.agents.token_collection import (
    Collected,
    Expert,
    TokenCollectionConfig,
    collect_tokens,
    expert_way,
    greedy_descent,
    play,
    state_of,
)
from rlflow.processes.token_process import MatchLevelState
from rlflow.representation.token_archive import save
from rlflow.representation.token_distances import FAR_AWAY
from rlflow.representation.token_rollouts import TokenEpisode, TokenRollouts, TokenState, nearness_after
from rlflow.representation.token_shards import TokenBank, merged

FILES = ("token_rollouts.npz", "token_rollouts.json")


@pytest.fixture(scope="module")
def collected() -> TokenRollouts:
    return collect()


def collect(config: TokenCollectionConfig = EPISODES, seed: int = 0, **options: object) -> TokenRollouts:
    return collection(config, seed, **options).rollouts


def collection(config: TokenCollectionConfig = EPISODES, seed: int = 0, **options: object) -> Collected:
    return collect_tokens(small_process(), "bert", config, seed=seed, library_hash=LIBRARY.hash, **options)  # type: ignore[arg-type]


def files(rollouts: TokenRollouts, folder: Path) -> list[bytes]:
    save(rollouts, folder)
    return [(folder / name).read_bytes() for name in FILES]


def starts(rollouts: TokenRollouts) -> list[tuple[set[int], float]]:
    return [(set(one.states[0].token.tolist()), one.states[0].cost) for one in rollouts.episodes]


def test_episodes_are_not_vacuous(collected: TokenRollouts):
    """They begin in several places, save and cost, and visit states that others have not."""
    costs = {round(cost, 6) for _, cost in starts(collected)}
    assert len(collected.episodes) == EPISODES.episodes
    assert len(costs) > 2
    assert 100 in costs
    rewards = [step.reward for one in collected.episodes for step in one.steps]
    assert min(rewards) < 0 < max(rewards)
    assert len(collected.tokens) > 2 * len(collected.episodes[0].states[0].token)


def test_episodes_begin_on_the_way_of_greedy(collected: TokenRollouts):
    """With the price of a state of the descent, whose own prices only fall."""
    costs = [state.percent for state in greedy_descent(small_process())]
    assert costs[0] == pytest.approx(100)
    assert all(after < before for before, after in pairwise(costs))
    assert {round(cost, 6) for _, cost in starts(collected)} <= {round(cost, 6) for cost in costs}


def test_greedy_ends_where_nothing_can_be_saved():
    *_, last = greedy_descent(small_process())
    assert last.saving.max() < 1e-5


@pytest.mark.parametrize(("from_start", "distinct"), [(1.0, 1), (0.0, 2)])
def test_the_share_of_episodes_that_begin_at_the_start(from_start: float, distinct: int):
    found = collect(replace(EPISODES, from_start=from_start, steps=1))
    assert len({round(cost, 6) for _, cost in starts(found)}) >= distinct
    assert (from_start < 1) or {cost for _, cost in starts(found)} == {100.0}


def took(rollouts: TokenRollouts) -> list[tuple[TokenState, int, np.ndarray]]:
    """Each state with what was taken in it, and how near its classes were to the last rewrite."""
    found = []
    for one in rollouts.episodes:
        near = np.full(len(one.states[0].token), FAR_AWAY)
        for before, step, after in zip(one.states, one.steps, one.states[1:], strict=False):
            found.append((before, step.chosen, near))
            near = nearness_after(before.token, step, after.token)
    return found


def test_a_greedy_episode_takes_what_saves_most():
    greedy = collect(replace(EPISODES, episodes=4, led=(1.0,)))
    assert all(chosen == state.saving.argmax() for state, chosen, _ in took(greedy))
    other = collect(replace(EPISODES, episodes=4, led=(0.0,)))
    assert not all(chosen == state.saving.argmax() for state, chosen, _ in took(other))


def test_a_local_episode_stays_near_its_last_rewrite():
    """Where there is anything near: the first rewrite of an episode may be any."""
    local = collect(replace(EPISODES, episodes=4, led=(0.0,), local=1.0))
    nearness = [near[chosen] for _, chosen, near in took(local) if near.min(initial=FAR_AWAY) <= EPISODES.nearby]
    assert len(nearness) > 10
    assert max(nearness) <= EPISODES.nearby
    wide = collect(replace(EPISODES, episodes=4, led=(0.0,), local=0.0))
    assert max(near[chosen] for _, chosen, near in took(wide)) > EPISODES.nearby


def test_an_episode_ends_where_there_is_no_match():
    process = small_process()

    def last(state: MatchLevelState, near: np.ndarray, rng: np.random.Generator) -> int:
        return len(near) - 1

    bank, rng = TokenBank(), np.random.default_rng(0)
    assert play(process, bank, process.start(), last, 0, rng).num_steps == 0
    assert play(process, bank, process.start(), last, 3, rng).num_steps == 3


def test_tokens_name_the_first_of_their_rules():
    process, bank = small_process(), TokenBank()
    state = process.start()
    for match_class, token in enumerate(state_of(state, bank).token.tolist()):
        assert bank.rule_of[token] == state.match(state.first(match_class)).rule.id
    assert set(bank.rule_of) <= {rule.id for rule in LIBRARY.rules}


def test_the_same_seed_gives_the_same_files(collected: TokenRollouts, tmp_path: Path):
    assert files(collect(), tmp_path / "again") == files(collected, tmp_path / "one")
    assert files(collect(seed=1), tmp_path / "other") != files(collected, tmp_path / "one")


def test_fewer_episodes_are_the_first_ones(collected: TokenRollouts, tmp_path: Path):
    fewer = collect(replace(EPISODES, episodes=3))
    assert files(fewer, tmp_path / "a") == files(
        merged([replace(collected, episodes=collected.episodes[:3])]), tmp_path / "b"
    )


def whole(collected: TokenRollouts, numbers: range) -> TokenRollouts:
    """What a worker who plays these episodes alone would have collected."""
    return merged([replace(collected, episodes=tuple(collected.episodes[number] for number in numbers))])


def test_an_interrupted_worker_goes_on(collected: TokenRollouts, tmp_path: Path):
    """Killed when the second episode of its share was played."""
    mine, played = range(1, EPISODES.episodes, 2), list[int]()

    def kill(number: int, episode: TokenEpisode) -> None:
        if number == mine[1]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(numbers=mine, checkpoint=tmp_path / "kept", on_episode=kill)
    resumed = collect(numbers=mine, checkpoint=tmp_path / "kept", on_episode=lambda number, _: played.append(number))
    assert played == list(mine[2:])
    assert files(resumed, tmp_path / "a") == files(whole(collected, mine), tmp_path / "b")


def test_a_collection_that_is_complete_is_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And what it took is that of those who played it."""
    one = collection(checkpoint=tmp_path / "kept")
    monkeypatch.setattr(token_collection, "play", None)
    monkeypatch.setattr(token_collection, "greedy_descent", None)
    again = collection(checkpoint=tmp_path / "kept")
    assert files(again.rollouts, tmp_path / "a") == files(one.rollouts, tmp_path / "b")
    assert (again.rewrites, again.seconds) == (one.rewrites, one.seconds)
    assert one.rewrites > 50
    assert one.seconds > 0


def test_more_episodes_can_be_added(collected: TokenRollouts, tmp_path: Path):
    played: list[int] = []
    collect(replace(EPISODES, episodes=2), checkpoint=tmp_path / "kept")
    more = collect(checkpoint=tmp_path / "kept", on_episode=lambda number, _: played.append(number))
    assert played == list(range(2, EPISODES.episodes))
    assert files(more, tmp_path / "a") == files(collected, tmp_path / "b")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 3, EPISODES.episodes + 1])
def test_workers_leave_nothing_to_play(collected: TokenRollouts, tmp_path: Path, workers: int):
    """However many there are: the last one here has no episode to play."""
    kept, played = tmp_path / "kept", list[int]()
    shares = [
        collection(numbers=range(worker, EPISODES.episodes, workers), checkpoint=kept) for worker in range(workers)
    ]
    assert max(len(share.rollouts.episodes) for share in shares) < EPISODES.episodes
    together = collection(checkpoint=kept, on_episode=lambda number, _: played.append(number))
    assert not played
    assert files(together.rollouts, tmp_path / "a") == files(collected, tmp_path / "b")
    assert together.rewrites == sum(share.rewrites for share in shares)


@pytest.mark.slow
def test_workers_in_processes_of_their_own_write_the_whole(collected: TokenRollouts, tmp_path: Path):
    """Side by side into one folder, and the episodes that one of them leaves are played by whoever collects all."""
    script = """
        import sys
        from pathlib import Path
        from support.token_worlds import FEW, small_process
        from support.walks import LIBRARY
        from rlflow.agents.token_collection import collect_tokens
        numbers = range(int(sys.argv[1]), FEW.episodes, 3)
        collect_tokens(small_process(), "bert", FEW, seed=0, library_hash=LIBRARY.hash, numbers=numbers,
                       checkpoint=Path(sys.argv[2]))
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "random"}
    kept, played = tmp_path / "kept", list[int]()
    workers = [
        subprocess.Popen([sys.executable, "-c", dedent(script), str(worker), str(kept)], env=environment)
        for worker in range(2)
    ]
    assert [worker.wait() for worker in workers] == [0, 0]
    together = collect(checkpoint=kept, on_episode=lambda number, _: played.append(number))
    assert played == list(range(2, EPISODES.episodes, 3))
    assert files(together, tmp_path / "a") == files(collected, tmp_path / "b")


def against_price(state: MatchLevelState) -> np.ndarray:
    """An expert who likes best what loses most, so that it is no greedy one."""
    return -state.saving_of_all


SPENDTHRIFT = Expert("against price", against_price)


def test_episodes_begin_on_the_ways_of_greedy_and_of_an_expert():
    """At the start, where a way ends, or anywhere on it."""
    ways = [list(greedy_descent(small_process())), list(expert_way(small_process(), against_price, 3))]
    greedy, expert = ([round(state.percent, 6) for state in way] for way in ways)
    assert not set(expert[1:]) <= set(greedy), "else vacuous"

    def begun(**shares: float) -> set[float]:
        config = replace(EPISODES, episodes=12, steps=1, expert_steps=3, **shares)
        return {round(cost, 6) for _, cost in starts(collect(config, expert=SPENDTHRIFT))}

    assert begun(from_start=1.0) == {100.0}
    assert begun(from_start=0.0, from_end=1.0) == {greedy[-1], expert[-1]}
    anywhere = begun(from_start=0.0, from_end=0.0)
    assert anywhere <= {*greedy, *expert}
    assert len(anywhere) > 2


def test_an_expert_goes_to_graphs_that_it_has_not_seen():
    """The likeliest class of the second state leads back to the first one."""
    way = [*expert_way(small_process(), against_price, 6)]
    hashes = [state.hash for state in way]
    assert len({*hashes}) == len(hashes) == 7
    process = small_process()
    assert [state.hash for state in expert_way(process, against_price, 2)] == hashes[:3]
    back = [process.step(state, int(against_price(state).argmax()))[0].hash in hashes for state in way]
    assert any(back), "else vacuous"


def test_an_expert_leads_half_of_the_episodes():
    found = collect(replace(EPISODES, episodes=8, led=(1.0,)), expert=SPENDTHRIFT)
    of_all = [{int(np.sign(step.reward)) for step in one.steps[:1]} for one in found.episodes]
    assert {1} in of_all
    assert {-1} in of_all


def test_episodes_of_another_expert_are_not_taken_from_the_same_folder(tmp_path: Path):
    few = replace(EPISODES, episodes=2, steps=2)
    collect(few, expert=SPENDTHRIFT, checkpoint=tmp_path)
    played: list[int] = []
    for expert in (SPENDTHRIFT, SPENDTHRIFT._replace(digest="other"), None):
        collect(few, expert=expert, checkpoint=tmp_path, on_episode=lambda number, _: played.append(number))
    assert played == [0, 1] * 2, "those of the same expert lie there"
