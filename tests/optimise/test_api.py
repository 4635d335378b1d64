"""`rlflow.optimise` from Python: names and objects, what is saved, and how seldom a model is read and imported."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto
from support.onnx_models import with_drawn_weights
from support.texts import LAYERS, SUMMED, filled

import rlflow
from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.onnx_io import importer, model_file, save_model
from rlflow.optimise import api, pipeline, specialise
from rlflow.optimise.api import Optimised
from rlflow.optimise.clock import Shares
from rlflow.optimise.specialise import Assumptions
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session_options import SessionOptions
from rlflow.search.greedy import Greedy

LIBRARY = rlflow.load_library()
FIVE_PRODUCTS = """
    <ir_version: 8, opset_import: ["" : 17]>
    products (float[256, 256] x) => (float[256, 256] y)
    <float[256, 256] a, float[256, 256] b, float[256, 256] c, float[256, 256] d, float[256, 256] e> {
        x1 = MatMul(x, a)
        x2 = MatMul(x1, b)
        x3 = MatMul(x2, c)
        x4 = MatMul(x3, d)
        y = MatMul(x4, e)
    }
"""
"""Products of weights by weights are carried out once, when the model is exported."""
GATE = rlflow.GateConfig(draws=1, rounds=2, runs_per_round=1)
SMALL_BERT = {"layers": 2, "hidden": 64, "heads": 2, "intermediate": 128, "sequence": 16, "vocabulary": 50}
ONE_THREAD = SessionOptions(intra_op_num_threads=1)
FAST: dict[str, Any] = {"budget_s": 120.0, "gate": GATE, "setting": "as_written", "shortlist": 0}
"""Greedy search is done in no time; the budget is for busy machines."""


def optimise(model: ModelProto | Path, **settings: Any) -> Optimised:
    return rlflow.optimise(model, **({"method": "greedy", "cost_model": "analytic"} | FAST | settings))


@pytest.fixture
def small() -> Library:
    """The rules that shorten `tiny_chain`, and few others."""
    return LIBRARY.select([rule.id for rule in LIBRARY.rules if rule.family == "linear"])


@pytest.mark.slow
def test_names_and_objects_come_to_the_same(small: Library, tmp_path: Path) -> None:
    model = zoo.build("tiny_chain")
    small.save(tmp_path / "small.jsonl")
    cost_model = AnalyticCost()
    ready = Greedy(small, Rewriter(small.rules), cost_model)
    results = [
        optimise(model, library=small),
        optimise(model, library=tmp_path / "small.jsonl"),
        optimise(model, library=str(tmp_path / "small.jsonl"), method=Greedy, cost_model=cost_model),
        optimise(model, method=ready, cost_model=cost_model),
    ]
    hashes = {tuple(step.hash for step in found.result.trajectory.steps) for found in results}
    assert len(hashes) == 1
    assert hashes.pop(), "there was something to do"
    assert {found.report.method for found in results} == {"greedy"}
    assert {found.result.trajectory.cost_model for found in results} == {"analytic"}


@pytest.mark.slow
def test_options_reach_the_method(small: Library) -> None:
    """Episodes of one rewrite never come to the end of a chain of three."""
    shares = Shares(judging=20.0, searching=1.0, measuring=1.0, timing=40.0)  # random search takes all of its second
    settings = {"budget_s": 40.0, "shares": shares, "library": small, "method": "random"}
    model = zoo.build("tiny_chain")
    short, long = (optimise(model, options={"episode_steps": n}, **settings) for n in (1, 20))
    assert len(short.result.trajectory.steps) == 1 < len(long.result.trajectory.steps)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"method": "magic"}, "there is no method 'magic': choose one of rlflow, .*random"),
        ({"cost_model": "magic"}, "there is no cost model 'magic': choose one of measured, .*analytic"),
        ({"setting": "fast"}, "there is no setting 'fast': choose one of as_written, deployed"),
        ({"options": {"alpa": 1.1}}, "the method Greedy cannot be made: got an unexpected keyword argument 'alpa'"),
        ({"shortlist": 1}, "a shortlist holds at least the original and the best graph: 1 are too few"),
        ({"library": "missing.jsonl"}, "missing.jsonl"),
        ({"disabled": ["no-such-rule"]}, "the library has no rule 'no-such-rule'"),
        ({"shapes": {"z": (1,)}}, "no input 'z'"),
        ({"method": "passes", "strict": True}, "leave library, disabled and strict out"),
        ({"disabled": "merge-3-linears"}, "disabled is the text 'merge-3-linears': give a list"),
        ({"cost_model": AnalyticCost}, "AnalyticCost'> prices no graphs: give a name or an object"),
        ({"cost_model": "measured", "prices": "."}, "the price list . cannot be read"),
        ({"gate": rlflow.GateConfig(seed=-1)}, "the seed is -1: give a whole number of 0 or more"),
        ({"budget_s": -1.0}, "a budget must be positive, not -1.0 s$"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        optimise(zoo.build("tiny_chain"), **settings)


@pytest.mark.parametrize(
    "argument",
    [{"library": LIBRARY}, {"disabled": ["a"]}, {"strict": True}, {"options": {"alpha": 1.1}}, {"cost_model": "gpu"}],
)
def test_an_optimiser_that_is_ready_takes_no_other_rules_or_prices(small: Library, argument: dict[str, Any]) -> None:
    ready = Greedy(small, Rewriter(small.rules), AnalyticCost())
    (name,) = argument
    with pytest.raises(InputError, match=f"{name}= has no effect on a method that is ready"):
        optimise(zoo.build("tiny_chain"), **({"method": ready, "cost_model": AnalyticCost()} | argument))


SCALED = """
    <ir_version: 8, opset_import: ["" : 17]>
    scaled (float[64, 64] x) => (float[64, 64] y) <float[64, 64] w, float[1] s> {
        a = MatMul(x, w)
        y = Mul(a, s)
    }
"""


@pytest.mark.slow
def test_strict_does_without_rules_that_assume_anything() -> None:
    """A scalar moves into a weight, where it might overflow: a step that strict does not take."""
    usual, strict = (optimise(filled(SCALED), strict=strict) for strict in (False, True))
    assert usual.result.trajectory.steps
    assert set(usual.report.assumptions) == {"finite", "moderate"}
    assert strict.result.trajectory.steps == ()
    assert strict.report.assumptions == {}


def test_an_optimised_model_is_saved_and_runs(small: Library, tmp_path: Path) -> None:
    """Of five products that become one: that is faster on a machine however busy."""
    found = optimise(filled(FIVE_PRODUCTS), library=small, gate=rlflow.GateConfig(time_s=60.0))
    assert found.written == "optimised", found.reason
    assert found.report.output is None
    found.save(tmp_path / "out.onnx")
    assert onnx.load(tmp_path / "out.onnx") == found.model
    assert [path.name for path in tmp_path.iterdir()] == ["out.onnx"]


def test_an_original_in_one_file_is_saved_byte_for_byte(tmp_path: Path) -> None:
    """Also where protobuf would write it otherwise: here, with the fields in another order."""
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    model = zoo.build("tiny_chain")
    graph = ModelProto(graph=model.graph).SerializeToString()
    model.ClearField("graph")
    source.write_bytes(graph + model.SerializeToString())
    found = optimise(source, library=Library(()))
    assert found.written == "original"
    found.save(target)
    assert target.read_bytes() == source.read_bytes() != found.model.SerializeToString()


def test_an_original_with_weights_beside_it_is_saved_as_a_whole(tmp_path: Path) -> None:
    source, target = tmp_path / "in" / "model.onnx", tmp_path / "out.onnx"
    source.parent.mkdir()
    onnx.save_model(zoo.build("mlp"), str(source), save_as_external_data=True, location="weights.bin")
    found = optimise(source, library=Library(()))
    assert found.written == "original"
    found.save(target)
    assert rlflow.equivalence(source, target).equivalent


@pytest.mark.slow
def test_nothing_is_written_that_was_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    optimise(zoo.build("tiny_chain"))
    assert list(tmp_path.iterdir()) == []
    optimise(zoo.build("tiny_chain"), cost_model="measured", prices=tmp_path / "prices.json")
    assert [path.name for path in tmp_path.iterdir()] == ["prices.json"]


class Liar(Greedy):
    """Its trajectory leads elsewhere than to its best graph."""

    def optimise(self, graph: Any, *given: Any) -> Any:
        found = super().optimise(graph, *given)
        object.__setattr__(found, "best", graph)
        return found


def test_a_method_whose_trajectory_leads_elsewhere_is_found_out(small: Library) -> None:
    """Nothing of it is delivered, and the reason says why."""
    model = zoo.build("tiny_chain")
    found = optimise(model, method=Liar, library=small)
    assert found.model is model
    assert "failed in the search (the method's best graph is" in found.reason
    assert "but its trajectory leads to" in found.reason


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the real functions are called: reading a file, checking a model, importing a graph, replaying."""
    counted: Counter[str] = Counter()

    def watch(owner: Any, name: str, key: str, matters: Callable[..., bool] = lambda *given, **named: True) -> None:
        real = getattr(owner, name)

        def watched(*given: Any, **named: Any) -> Any:
            counted[key] += matters(*given, **named)
            return real(*given, **named)

        monkeypatch.setattr(owner, name, watched)

    watch(onnx, "load", "read", lambda path, **named: Path(path).name == "source.onnx")
    watch(model_file, "require_valid", "checked")
    watch(importer._Importer, "__init__", "imported")
    watch(specialise, "transferred", "replayed")
    return counted


SHAPES = {"x": (256, 64), "z": (256, 64)}
WALKS: dict[str, tuple[Callable[[], ModelProto], dict[str, Any], Counter[str]]] = {
    "a fixed model": (lambda: zoo.build("tiny_chain"), {}, Counter(read=1, checked=1, imported=1)),
    "two graphs, of dynamic and of named sizes": (
        lambda: with_drawn_weights(SUMMED),
        {"shapes": SHAPES},
        Counter(read=1, checked=1, imported=2, replayed=1),
    ),
    "a model, its two branches, and the model around the new branches": (
        lambda: filled(LAYERS),
        {},
        Counter(read=1, checked=1, imported=4),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("walk", WALKS)
def test_a_model_is_read_and_checked_once_and_each_graph_imported_once(
    walk: str, counts: Counter[str], tmp_path: Path
) -> None:
    build, settings, expected = WALKS[walk]
    save_model(build(), tmp_path / "source.onnx")
    found = optimise(tmp_path / "source.onnx", **settings)
    assert found.result.trajectory.steps or any(report.steps for report in found.report.subgraphs)
    assert +counts == expected


@pytest.mark.slow
def test_each_model_is_written_once_whatever_is_done_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The original and what races: the winner is checked, timed and tried with session options in the same file."""
    written: list[str] = []
    for module in (api, pipeline):
        real = module.write_mapped

        def watched(model: ModelProto, path: Path, like: Path | None = None, real: Any = real) -> Path:
            written.append(path.name)
            return real(model, path, like)

        monkeypatch.setattr(module, "write_mapped", watched)
    settings = {"shortlist": 4, "setting": "deployed", "gate": replace(GATE, racers=3)}
    found = optimise(zoo.build("bert", **SMALL_BERT), session_options=lambda *_: [ONE_THREAD], **settings)
    assert len(found.report.race) > 1
    assert found.report.session_options is not None
    made = len(written) - 1
    assert written == ["original.onnx", *(f"candidate_{number}.onnx" for number in range(made))]
    assert made <= len(found.report.race), "where a second search had its race, the first winner is in both"


def test_what_was_not_replayed_is_what_the_replay_gives() -> None:
    """Settled at the model's own opset, without walking there, and by walking: the same graph, steps and model."""
    model = zoo.build("tiny_chain")
    rewriter = Rewriter(LIBRARY.rules)
    assumptions = Assumptions(model, {}, LIBRARY.rules)
    assert assumptions.searched is not assumptions.as_it_is, "a newer opset"
    found = Greedy(LIBRARY, rewriter, AnalyticCost()).optimise(assumptions.searched, Budget())
    assert found.trajectory.steps
    settled = assumptions.settled(found, rewriter)
    walked = specialise.transferred(assumptions.searched, found.trajectory, assumptions.as_it_is, rewriter)
    assert settled.trajectory == walked.trajectory
    assert rlflow.to_onnx(settled.last) == rlflow.to_onnx(walked.last)
    assert settled.last.header.opset == assumptions.as_it_is.header.opset


def test_a_budget_that_is_over_before_it_begins(tmp_path: Path) -> None:
    """Reading alone takes longer; the progress says how much of the time has passed, which is all of it."""
    seen: list[float] = []
    found = optimise(zoo.build("tiny_chain"), budget_s=1e-6, on_progress=lambda done, text: seen.append(done))
    assert found.written == "original"
    assert "did not finish within 0 s; a larger budget gives it more time" in found.reason
    assert seen[0] == 0.0
    assert seen[-1] == 1.0
