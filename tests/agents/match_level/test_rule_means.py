"""Means of rules are those of what an expert did, and are found again."""

from pathlib import Path

import pytest
from support.detours import INTO, OUT, detour_process, detours, rules_astray, walked
from support.taught import lessons_of

from rlflow.agents.match_level.rule_means import RuleMeans
from rlflow.errors import InputError

RULES = rules_astray()


@pytest.fixture(scope="module")
def means() -> RuleMeans:
    """Of an expert who takes the detour in one place, and none of the other matches."""
    process = detour_process(1, RULES)
    return RuleMeans.of(lessons_of(process, [walked(detours(1), (OUT, INTO), RULES)]))


def test_means_are_those_of_what_the_expert_did(means: RuleMeans):
    """Of one match of each of the two rules at its time, he took it; of the rules that lead astray, none."""
    out, into = RULES.get(OUT).id, RULES.get(INTO).id
    astray = {rule.id for rule in RULES.rules} - {out, into}
    assert means.taken[out] == means.taken[into] == 1.0
    assert {means.taken[rule] for rule in astray & means.taken.keys()} == {0.0}
    assert astray & means.taken.keys()
    assert set(means.gain) == {out, into}
    assert means.gain[into] > 0
    assert means.saving[into] > 0 > means.saving[out]


def test_means_are_found_again(means: RuleMeans, tmp_path: Path):
    means.save(tmp_path)
    assert RuleMeans.load(tmp_path) == means
    with pytest.raises(InputError, match=r"means of rules: .* cannot be read"):
        RuleMeans.load(tmp_path / "elsewhere")
