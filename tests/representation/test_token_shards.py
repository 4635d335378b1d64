"""Shards of several workers are, put together, what one worker would have written."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.contents import contents
from support.random_token_rollouts import RULES, random_rollouts, random_token

from rlflow.errors import InputError
from rlflow.representation.token_archive import save
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.representation.token_shards import TokenBank, merged


def shard(rollouts: TokenRollouts, worker: int, workers: int, seed: int) -> TokenRollouts:
    """Every n-th episode, with tokens in an order of its own, and only those that it has met."""
    episodes = rollouts.episodes[worker::workers]
    met = sorted({int(token) for one in episodes for state in one.states for token in state.token})
    order = np.random.default_rng(seed).permutation(np.array(met, np.int64))
    place = {int(token): number for number, token in enumerate(order)}

    def moved(token: np.ndarray) -> np.ndarray:
        return np.array([place[number] for number in token.tolist()], np.int64)

    return replace(
        rollouts,
        tokens=tuple(rollouts.tokens[number] for number in order),
        rule_of=tuple(rollouts.rule_of[number] for number in order),
        episodes=tuple(
            replace(one, states=tuple(replace(state, token=moved(state.token)) for state in one.states))
            for one in episodes
        ),
    )


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 7))
@settings(max_examples=25, deadline=None)
def test_merged_shards_are_the_files_of_one_worker(
    tmp_path_factory: pytest.TempPathFactory, seed: int, workers: int, episodes: int
) -> None:
    """To the byte, with tokens in the order in which one worker meets them."""
    one = merged([random_rollouts(seed, episodes, steps=3)])
    parts = [shard(one, worker, workers, seed) for worker in range(workers)]
    together, folder = merged(parts), tmp_path_factory.mktemp("shards")
    save(one, folder / "one")
    save(together, folder / "together")
    assert contents(folder / "one") == contents(folder / "together")


def test_the_order_of_the_workers_matters(tmp_path: Path) -> None:
    """Without which the test above would be vacuous: episodes differ, and tokens are numbered by the first of them."""
    one = merged([random_rollouts(0, 6)])
    parts = [shard(one, worker, 2, seed=worker) for worker in range(2)]
    keys = [token.key for token in one.tokens]
    assert [token.key for token in merged(parts).tokens] == keys
    assert [token.key for token in merged(parts[::-1]).tokens] != keys
    assert [token.key for token in parts[1].tokens] != keys


def test_graphs_keep_their_names() -> None:
    first, second = random_rollouts(1), replace(random_rollouts(2), graphs=("other", "third"))
    together = merged([first, second])
    assert together.graphs == ("one", "other", "third")
    names = [together.graphs[episode.graph] for episode in together.episodes]
    of_first = [first.graphs[episode.graph] for episode in first.episodes]
    of_second = [second.graphs[episode.graph] for episode in second.episodes]
    assert names == [name for pair in zip(of_first, of_second, strict=True) for name in pair]


def test_a_token_belongs_to_the_first_of_its_rules_whoever_met_it_first() -> None:
    bank, token = TokenBank(), random_token(np.random.default_rng(0))
    for rule in (RULES[1], RULES[0], RULES[2]):
        assert bank.place(token, rule) == 0
    assert bank.rule_of == [min(RULES)]
    one = random_rollouts(1)
    other = replace(one, rule_of=("a",) * len(one.tokens))
    assert set(merged([one, other]).rule_of) == set(merged([other, one]).rule_of) == {"a"}


def test_parts_that_do_not_belong_together_are_refused() -> None:
    one = random_rollouts(1)
    fewer = replace(one.vocabulary, operators=(*one.vocabulary.operators, "Abacus"))
    for other in (replace(one, library_hash="other"), replace(one, vocabulary=fewer)):
        with pytest.raises(InputError, match="different rules or vocabularies"):
            merged([one, other])
    with pytest.raises(InputError, match="no parts"):
        merged([])
