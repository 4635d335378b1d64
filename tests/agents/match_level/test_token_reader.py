"""V reads by ONNX Runtime as by PyTorch: the same of a token, whatever else is read, and the same ways of a search."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from support.golden import digests
from support.readers import TorchReader
from support.token_worlds import small_graph
from support.walks import LIBRARY
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.agents.match_level import taught_guide, token_reader
from rlflow.agents.match_level.guide import shipped
from rlflow.agents.match_level.scorers import _DECIMALS, EncoderScorer, token_states
from rlflow.agents.match_level.token_reader import SCORES, OnnxReader, TokenReader
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext
from rlflow.cost.models import COST_MODELS
from rlflow.ir.graph import Graph
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.representation.match_token import MatchToken
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.sharing import SharingRewriter

SIZES = {
    **{name: SMALL[name] for name in ("tiny_chain", "tiny_transpose", "squeezenet1_1", "t5_decoder")},
    "bert": {**SMALL["bert"], "layers": 2, "hidden": 128, "intermediate": 256},
}


@pytest.fixture(scope="module")
def reader() -> OnnxReader:
    return shipped().reader


@pytest.fixture(scope="module")
def tokens(reader: OnnxReader) -> tuple[MatchToken, ...]:
    """Those of all matches in a small decoder."""
    graph = small_graph("t5_decoder")
    return token_states(graph, SharingRewriter(LIBRARY.rules), AnalyticCost(), reader.vocabulary)(graph).tokens


def test_it_reads_as_pytorch_does(reader: OnnxReader, tokens: tuple[MatchToken, ...]):
    """Of V as it ships, whose logits go up to dozens, in float32."""
    found, wanted = reader.read(tokens), TorchReader(taught_guide.shipped().model).read(tokens)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert len(np.unique(found, axis=1).T) == len(tokens) > 30


def test_what_is_read_of_a_token_does_not_depend_on_the_others(
    reader: OnnxReader, tokens: tuple[MatchToken, ...], monkeypatch: pytest.MonkeyPatch
):
    """As the search rounds it: alone, in another order, and in several batches."""

    def scores(some: Sequence[MatchToken]) -> np.ndarray:
        return reader.read(some)[:SCORES].round(_DECIMALS)

    together = scores(tokens)
    alone = np.concatenate([scores([token]) for token in tokens], axis=1)
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(scores(tokens[::-1])[:, ::-1], together)
    monkeypatch.setattr(token_reader, "_AT_ONCE", 7)
    np.testing.assert_array_equal(scores(tokens), together)


class Recording(SharingRewriter):
    """A rewriter that notes what it carries out."""

    def __init__(self) -> None:
        super().__init__(LIBRARY.rules)
        self.taken: list[tuple[str, tuple[int, ...]]] = []

    def apply(self, graph: Graph, match: Match) -> Graph:
        self.taken.append((match.rule.id, tuple(match.roots)))
        return super().apply(graph, match)


def searched(reader: TokenReader, model: str, prices: str) -> tuple[dict[str, str | int], list]:
    """The figures of a search by the policy that ships, and all rewrites that it tries."""
    graph, cost, rewriter = from_onnx(zoo.build(model, **SIZES[model])), COST_MODELS.get(prices), Recording()
    by_policy = shipped().search(LIBRARY, rewriter, cost(CostContext()), rewrites=300)
    search = replace(by_policy, scored_by=partial(EncoderScorer, reader))
    return digests.search(search.optimise(graph, Budget())), rewriter.taken


@pytest.mark.slow
@pytest.mark.parametrize("prices", ["analytic", "predicted"])
@pytest.mark.parametrize("model", SIZES)
def test_searches_go_the_same_ways_as_by_pytorch(reader: OnnxReader, model: str, prices: str):
    """In all that they try, and in what they find, to the bit."""
    found, tried = searched(reader, model, prices)
    assert (found, tried) == searched(TorchReader(taught_guide.shipped().model), model, prices)
    assert tried


class Contrary(OnnxReader):
    """Says the opposite of what V says."""

    def read(self, tokens: Sequence[MatchToken]) -> np.ndarray:
        return -super().read(tokens)


@pytest.mark.slow
def test_searches_go_other_ways_by_other_readings(reader: OnnxReader):
    """So that the same ways are no matter of course."""
    contrary = Contrary(reader.vocabulary, reader.session)
    assert searched(reader, "bert", "analytic")[1] != searched(contrary, "bert", "analytic")[1]
