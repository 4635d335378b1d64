"""A policy is what was saved, makes the search that it describes, and one ships with the library."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from support.contents import contents
from support.detours import COST, INTO, OUT, detour_process, detours, rules_astray, walked
from support.pointers import drawn
from support.readers import reader_of
from support.taught import taught_by

from rlflow.agents.match_level import taught_guide
from rlflow.agents.match_level.guide import FILE, Guide, shipped, shipped_folder
from rlflow.agents.match_level.guided_chains import ChainConfig
from rlflow.agents.match_level.scorers import EncoderScorer
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter

CHAINS = ChainConfig(length=5, noise=(0.5,), rewrites=7)
SEARCHED_BY = {FILE, "encoder.onnx"}
FILES = {*SEARCHED_BY, "world_model.json", "world_model.safetensors"}
CONTROLLER = {"controller.onnx", "controller.json", "controller.safetensors"}


@pytest.fixture(scope="module")
def policy() -> TaughtGuide:
    rules = rules_astray()
    model = taught_by(detour_process(1, rules), walked(detours(1), (OUT, INTO), rules))
    return TaughtGuide(model, CHAINS, {"lessons": 1}, {rules.get(OUT).id: 0.25})


def test_what_is_loaded_is_what_was_saved(policy: TaughtGuide, tmp_path: Path):
    policy.save(tmp_path / "one")
    loaded = TaughtGuide.load(tmp_path / "one")
    assert (loaded.chains, loaded.trained_on) == (CHAINS, {"lessons": 1})
    assert loaded.shares == policy.shares == {rules_astray().get(OUT).id: 0.25}
    assert loaded.model.arguments == policy.model.arguments
    for name, value in policy.model.state_dict().items():
        assert torch.equal(value, loaded.model.state_dict()[name])
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "one") == contents(tmp_path / "again")
    assert contents(tmp_path / "one").keys() == FILES


def test_a_controller_is_part_of_the_policy(policy: TaughtGuide, tmp_path: Path):
    """What is loaded is what was saved, and the search begins with its episodes; one without has none."""
    both = replace(policy, controller=drawn(policy.model))
    both.save(tmp_path / "one")
    loaded = TaughtGuide.load(tmp_path / "one")
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "one") == contents(tmp_path / "again")
    assert contents(tmp_path / "one").keys() == FILES | CONTROLLER
    rules, played = rules_astray(), Guide.load(tmp_path / "one")
    assert played.pointer is not None
    assert policy.guide.pointer is None
    for guide, has_controller in ((played, True), (policy.guide, False)):
        assert (guide.search(rules, Rewriter(rules.rules), COST).plays is not None) == has_controller


@pytest.mark.parametrize("name", ["controller.onnx", "controller.safetensors"])
def test_a_controller_of_another_policy_is_refused(policy: TaughtGuide, tmp_path: Path, name: str):
    for folder, seed in (("one", 0), ("other", 1)):
        replace(policy, controller=drawn(policy.model, seed)).save(tmp_path / folder)
    (tmp_path / "one" / name).write_bytes((tmp_path / "other" / name).read_bytes())
    with pytest.raises(InputError, match=rf"{name} is not the file that policy.json describes"):
        TaughtGuide.load(tmp_path / "one")


def test_the_search_goes_by_the_policy(policy: TaughtGuide):
    """The rewriter that it is given need not share; greedy search gets one that does not."""
    rules = rules_astray()
    for rewriter in (Rewriter(rules.rules), SharingRewriter(rules.rules)):
        search = policy.guide.search(rules, rewriter, COST, seed=3)
        assert (search.seed, search.config, search.shares) == (3, CHAINS, policy.shares)
        judges = (search.scored_by, partial(EncoderScorer, reader_of(policy.model)))
        one, same = (judge(detours(1), search.rewriter, COST).of(detours(1)) for judge in judges)
        assert one.taken.tolist() == same.taken.tolist()
        assert isinstance(search.rewriter, SharingRewriter)
        assert not isinstance(search.greedy.rewriter, SharingRewriter)
        assert search.optimise(detours(1), Budget()).improvement_percent > 5


def test_settings_can_be_changed_for_one_search(policy: TaughtGuide):
    search = policy.guide.search(rules_astray(), Rewriter(rules_astray().rules), COST, rewrites=9, noise=[2.0])
    assert search.config == replace(CHAINS, rewrites=9, noise=(2.0,))
    with pytest.raises(InputError, match="unknown setting depth"):
        policy.guide.search(rules_astray(), Rewriter(rules_astray().rules), COST, depth=3)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"rewrites": "many"}, "rewrites: Expected `int`, got `str`"),
        ({"rewrites": -1}, "rewrites is a number of rewrites, not -1"),
        ({"noise": []}, "scales of noise, of which there is none"),
        ({"orders": []}, "there is no order of first steps at all"),
        ({"saturation": 1.5}, "saturation lies between 0 and 1, both included, and is not 1.5"),
        ({"admitted_probability": 0.0}, "admitted_probability lies between 0 and 1, both excluded, and is not 0.0"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(policy: TaughtGuide, setting: dict[str, object], message: str):
    with pytest.raises(InputError, match=message):
        policy.guide.search(rules_astray(), Rewriter(rules_astray().rules), COST, **setting)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99, "chains": {"sequel": 1}}, "of version 99, here 4"),
        ({"trained_on": None}, "policy: .* cannot be read"),
        ({"shares": None}, "policy: .* cannot be read"),
        ({"trained_on": {"lessons": float("nan")}}, "NaN is no number of JSON"),
        ({"shares": {"rule": "often"}}, "policy: .* cannot be read"),
    ],
    ids=str,
)
def test_a_description_of_another_kind_is_refused(
    policy: TaughtGuide, tmp_path: Path, change: dict[str, object], message: str
):
    policy.save(tmp_path)
    content = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps(content | change))
    with pytest.raises(InputError, match=message):
        Guide.load(tmp_path)


@pytest.mark.parametrize("missing", sorted(FILES))
def test_a_folder_without_one_of_its_files_is_refused(policy: TaughtGuide, tmp_path: Path, missing: str):
    """The networks are wanted for training alone."""
    policy.save(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(InputError, match=f"{tmp_path}"):
        TaughtGuide.load(tmp_path)
    if missing in SEARCHED_BY:
        with pytest.raises(InputError, match=f"{tmp_path}"):
            Guide.load(tmp_path)
    else:
        assert Guide.load(tmp_path).trained_on == policy.trained_on


@pytest.mark.parametrize("file", ["encoder.onnx", "world_model.safetensors"])
def test_networks_of_another_policy_are_refused(policy: TaughtGuide, tmp_path: Path, file: str):
    policy.save(tmp_path)
    (tmp_path / file).write_bytes((tmp_path / file).read_bytes()[:-1] + b"\x00")
    with pytest.raises(InputError, match=rf"{file} is not the file that policy.json describes"):
        TaughtGuide.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "of version 99, here 4: make it again with `make study NAME=policy`"),
        ({"version": 3}, "of version 3, here 4: make it again with `make study NAME=policy`, or `rlflow train`"),
        ({"chains": {"depth": 1}}, "unknown setting depth"),
        ({"chains": None}, "make it with `make study NAME=policy`"),
    ],
)
def test_a_policy_of_another_time_is_refused(policy: TaughtGuide, tmp_path: Path, change: dict, message: str):
    policy.save(tmp_path)
    (tmp_path / FILE).write_text(json.dumps(json.loads((tmp_path / FILE).read_text()) | change))
    with pytest.raises(InputError, match=message):
        Guide.load(tmp_path)


def test_one_ships_and_reads_todays_tokens():
    """By the operators and features that it was fitted on, whatever today's are; it is small enough to ship."""
    found, taught = shipped(), taught_guide.shipped()
    search = found.search(rules_astray(), Rewriter(rules_astray().rules), COST, rewrites=20)
    result = search.optimise(detours(1), Budget())
    assert result.best_ms <= result.start_ms
    assert result.effort.rewrites >= 1
    assert sum(weight.numel() for weight in taught.model.parameters()) < 1_000_000
    assert found.trained_on == taught.trained_on != {}
    assert found.pointer is not None
    assert len(found.shares) > 100
    assert found.shares.keys() <= {rule.id for rule in library.load().rules}
    assert 0.0 in found.shares.values(), "of some rules experts took nothing"


def test_what_ships_is_what_its_networks_give(tmp_path: Path):
    """Byte for byte, but for the data sheet: the encoder that searches is V of the world model beside it."""
    taught_guide.shipped().save(tmp_path)
    with shipped_folder() as folder:
        for name in FILES | CONTROLLER:
            assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
