"""Names of states: what they stand for, what they cost, and what happens to those that are forgotten."""

import numpy as np
import pytest
import torch
from support.candidate_agents import small_candidates
from support.walks import LIBRARY

from rlflow.agents.candidates.memory import CandidateMemory, PriceScale, name_of
from rlflow.environments.candidate_process import CandidateProcess
from rlflow.errors import InputError
from rlflow.representation.candidate_arrays import CandidateWriter
from rlflow.rules.matching.rewriter import Rewriter


def new_memory(capacity: int = 8) -> CandidateMemory:
    return CandidateMemory(CandidateWriter(), capacity)


def test_a_name_is_the_graph_and_the_scale_whoever_asks() -> None:
    process = small_candidates()
    scale, state = PriceScale.of(process), process.step(process.start(), 2)
    other = CandidateProcess(state.graph, Rewriter(LIBRARY.rules), process.evaluator.cost_model, process.config)
    assert name_of(other.start(), scale) == name_of(state, scale)
    names = {name_of(state, scale), name_of(state, PriceScale.of(other)), name_of(state, None)}
    assert len(names | {name_of(process.start(), scale)}) == 4
    assert all(np.iinfo(np.int64).min <= name <= np.iinfo(np.int64).max for name in names)


def test_a_state_is_written_once_and_put_together_once() -> None:
    process, memory = small_candidates(), new_memory()
    scale, start = PriceScale.of(process), process.start()
    one, other = (memory.keep(state, scale) for state in (start, process.step(start, 1)))
    assert memory.keep(start, scale) == one
    assert len(memory) == 2
    names = [one, other, one, one]
    batch, place = memory.batch(torch.tensor(names)[:, None], max_candidates=10)
    distinct = sorted({one, other})
    assert place.tolist() == [distinct.index(name) for name in names]
    assert batch.present.shape == (2, 10)
    assert len(batch.row) == len(batch.saving) == batch.present.sum()


def test_savings_are_told_in_the_unit_of_the_best_and_the_price_as_a_share() -> None:
    process, memory = small_candidates(), new_memory()
    start, scale = process.start(), PriceScale.of(process)
    batch, _ = memory.batch(torch.tensor([[memory.keep(start, scale)]]), 10)
    np.testing.assert_allclose(np.sinh(batch.saving.numpy()).max(), 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.sinh(batch.saving.numpy()), start.saving_ms / scale.unit_ms, rtol=1e-5, atol=1e-6)
    assert batch.cost.item() == 1.0


def test_where_nothing_saves_the_unit_is_a_percent() -> None:
    process = small_candidates()
    while (state := process.start()).saving_ms.max() > 1e-9 and process.start_ms:
        best = process.step(state, int(state.saving_ms.argmax()))
        process = CandidateProcess(best.graph, process.evaluator.rewriter, process.evaluator.cost_model, process.config)
    assert PriceScale.of(process) == PriceScale(process.start_ms / 100, process.start_ms)


def test_a_batch_keeps_states_apart() -> None:
    """Two states together are each what it is alone, moved by an offset."""
    process, memory = small_candidates(), new_memory()
    scale, start = PriceScale.of(process), process.start()
    names = sorted(memory.keep(state, scale) for state in (start, process.step(start, 1)))
    both, _ = memory.batch(torch.tensor(names)[:, None], 10)
    alone = [memory.batch(torch.tensor([[name]]), 10)[0] for name in names]
    nodes, candidates = len(alone[0].op), len(alone[0].row)
    assert torch.equal(both.messages, torch.cat([alone[0].messages, alone[1].messages + nodes]))
    offset = torch.tensor([candidates, nodes])
    for part in ("plus", "minus"):
        first, second = (getattr(one, part) for one in alone)
        assert torch.equal(getattr(both, part), torch.cat([first, second + offset]))
    for part in ("op", "features", "kind", "saving", "gain", "cost", "present"):
        assert torch.equal(getattr(both, part), torch.cat([getattr(one, part) for one in alone]))


def test_what_is_forgotten_is_refused_by_name() -> None:
    process, memory = small_candidates(), new_memory(capacity=2)
    scale, start = PriceScale.of(process), process.start()
    first, *_ = (memory.keep(state, scale) for state in (process.step(start, place) for place in range(3)))
    assert len(memory) == 2
    with pytest.raises(InputError, match="among the 2 that are remembered: raise states_in_memory"):
        memory.batch(torch.tensor([[first]]), 10)
