"""Each side runs alone, with what a rule wants to be constant stored in its model; failures spoil no other trial."""

from random import Random

import numpy as np

from rlflow.rules.library import Library
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification.empty import empty_trials
from rlflow.rules.verification.masks import ordinary
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.settings import Trial, computed, is_stored
from rlflow.runtime.session import SETTINGS


def trials_of(rule, count):
    rng, random, sampler = np.random.default_rng(0), Random(0), Sampler(rule)
    cases = [sampler.sides(sampler.draw(random)) for _ in range(count)]
    return [Trial(case, ordinary(case.instance, rng, {}), "ordinary") for case in cases if case]


def test_both_sides_compute_the_same_in_both_settings(library: Library) -> None:
    rule = library.get("merge-2-linears")
    trials = trials_of(rule, 4)
    assert [is_stored(rule, name) for name in trials[0].case.instance.types] == [False, True, True, True, True]
    sides = zip(computed(rule, trials, "source"), computed(rule, trials, "target"), strict=True)
    for source, target in sides:
        first, *others = (side[setting] for side in (source, target) for setting in SETTINGS)
        assert (len(first), len(others)) == (2, 3)
        for other in others:
            for a, b in zip(first, other, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-4)


def test_what_fails_alone_spoils_no_other() -> None:
    """ONNX Runtime has no Attention to no tokens; the trials around it are computed."""
    names = {"q": ["b", "h", "t", "d"], "k": ["b", "h", "s", "d"], "v": ["b", "h", "s", "e"]}
    source = ["Attention", {"scale": 0.5}, "q", "k", "v"]
    rule = rule_from_json("alone", "test", [source], [source], {n: {"shape": s} for n, s in names.items()})
    failing = empty_trials(rule, np.random.default_rng(0))[:1]
    trials = [*trials_of(rule, 1), *failing, *trials_of(rule, 2)]
    assert [list(outputs) for outputs in computed(rule, trials, "source")] == [
        [*SETTINGS],
        [],
        [*SETTINGS],
        [*SETTINGS],
    ]


def test_nothing_is_computed_of_nothing(library: Library) -> None:
    assert computed(library.get("merge-2-linears"), [], "source") == []
