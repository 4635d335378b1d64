"""The rules that an agent acts with: chosen by use, the same each time, tied to their library."""

import dataclasses
import json

import pytest

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.chains import Chains
from rlflow.search.rule_selection import RuleSet, SelectionConfig, select_rules

# one expansion, after which no chain has begun
QUICK = SelectionConfig(size=6, backtracking_expansions=3, random_rewrites=30, random_searches=2, chain_expansions=1)


@pytest.fixture(scope="module")
def chosen(shipped, bert):
    return select_rules(shipped, bert, AnalyticCost(), QUICK)


@pytest.mark.slow
def test_the_choice_is_the_same_each_time(shipped, bert, chosen):
    assert select_rules(shipped, bert, AnalyticCost(), QUICK) == chosen


def test_every_choice_says_why(shipped, bert, chosen):
    """Uses come first, then gain, then effect, then matches; matches and one effect are counted anew here."""
    assert len(chosen.choices) == 6
    found = Rewriter(shipped.rules).matches(bert)
    matches = {r.id: len(m) for r, m in zip(shipped.rules, found, strict=True)}
    for choice in chosen.choices:
        assert choice.uses or abs(choice.effect_percent) >= QUICK.least_gain_percent
        assert choice.matches == matches[choice.id]
        assert choice.name == shipped.get(choice.id).name
    keys = [(-c.uses, -c.gain_percent, -abs(c.effect_percent), -c.matches) for c in chosen.choices]
    assert keys == sorted(keys)
    assert chosen.choices[0].uses > 0
    assert any(c.gain_percent > 0 for c in chosen.choices)


def test_the_effect_is_that_of_a_rewrite(shipped, bert, chosen):
    model, rewriter = AnalyticCost(), Rewriter(shipped.rules)
    start = model.runtime_ms(bert)
    places = dict(zip((r.id for r in shipped.rules), rewriter.matches(bert), strict=True))
    for choice in chosen.choices:
        after = [model.runtime_ms(rewriter.apply(bert, match)) for match in places[choice.id]]
        savings = [round(100 * (start - ms) / start, 4) for ms in after]
        assert choice.effect_percent in (savings or [0.0])
    assert any(c.effect_percent for c in chosen.choices)


def test_rules_that_do_nothing_are_left_out(shipped, bert):
    """A limit as large as the library still leaves out what was not used and changes no price."""
    everything = select_rules(shipped, bert, AnalyticCost(), dataclasses.replace(QUICK, size=1000))
    assert len(everything.choices) < sum(1 for found in Rewriter(shipped.rules).matches(bert) if found)


@pytest.mark.slow
def test_all_rules_of_a_chain_are_chosen(shipped):
    """A decoder that reads its last token: no rewrite that leaves the other tokens out saves anything by itself. Six
    rules are not enough for that, and those beyond are the ones of chains, which make most of what all rules make.
    """
    settings = {"layers": 1, "hidden": 256, "heads": 4, "intermediate": 512, "sequence": 32, "memory": 32}
    decoder = from_onnx(zoo.build("t5_decoder", **settings, vocabulary=50, head="last"))

    def reached(rules: Library) -> float:
        search = Chains(rules, Rewriter(rules.rules), AnalyticCost())
        return search.optimise(decoder, Budget(expansions=400)).improvement_percent

    without = select_rules(shipped, decoder, AnalyticCost(), QUICK)
    chosen = select_rules(shipped, decoder, AnalyticCost(), dataclasses.replace(QUICK, chain_expansions=400))
    assert len(without.choices) == 6 < len(chosen.choices)
    assert all(choice.chained for choice in chosen.choices[6:])
    best = reached(shipped)
    assert reached(chosen.rules(shipped)) > 0.7 * best > 20.0
    assert reached(without.rules(shipped)) < 0.1 * best


def test_no_rule_undoes_another(shipped, bert):
    """With both directions of one equation in the library and room for both, one is chosen."""
    names = ["residual-bias-to-sum", "sum-to-residual-bias", "merge-3-linears"]
    few = shipped.select([shipped.get(name).id for name in names])
    chosen = {c.name for c in select_rules(few, bert, AnalyticCost(), QUICK).choices}
    assert "residual-bias-to-sum" in chosen
    assert "sum-to-residual-bias" not in chosen


def test_no_rule_undoes_itself(shipped, bert):
    """A rule that turns a sum of three round is back after at most three rewrites, up to the order of operands. Not
    vacuous: where any effect is enough, all rules that match are chosen but these."""
    circles = {"Add(a, Add(b, c)) => Add(c, Add(a, b))", "Add(a, b) => Add(b, a)"}
    names = circles | {"residual-bias-to-sum", "merge-3-linears"}
    few = shipped.select([rule.id for rule in shipped.rules if rule.name in names])
    assert all(Rewriter(few.rules).matches(bert))
    any_effect = dataclasses.replace(QUICK, least_gain_percent=0.0)
    assert {c.name for c in select_rules(few, bert, AnalyticCost(), any_effect).choices} == names - circles


def test_the_set_is_a_library_in_its_own_order(shipped, chosen):
    rules = chosen.rules(shipped)
    assert [r.id for r in rules.rules] == [c.id for c in chosen.choices]


def test_a_library_that_lacks_a_rule_of_the_set_is_refused_by_its_name(shipped, chosen):
    lacking = chosen.choices[0].id
    with pytest.raises(InputError, match=f"another library, which had {lacking}: run the generate_rules stage again"):
        chosen.rules(shipped.without([lacking]))


def test_rules_that_were_added_since_change_nothing(shipped, chosen):
    """The library is the one of the set with the others in another order and one more or less."""
    others = [rule for rule in shipped.rules if rule.id not in {c.id for c in chosen.choices}]
    mixed = Library((*others[1:], *reversed(chosen.rules(shipped).rules)))
    assert mixed.hash != chosen.library
    assert chosen.rules(mixed) == chosen.rules(shipped)


def test_a_saved_set_is_the_same_set(chosen, tmp_path):
    path = tmp_path / "new" / "rule_set.json"
    chosen.save(path)
    assert RuleSet.load(path) == chosen
    assert [p.name for p in path.parent.iterdir()] == ["rule_set.json"]


@pytest.mark.parametrize("damage", ["no json", "{}", "[]", '{"version": 2, "library": "x", "rules": [{"id": "a"}]}'])
def test_a_damaged_set_is_refused(damage, tmp_path):
    (tmp_path / "r.json").write_text(damage)
    with pytest.raises(InputError, match=r"is no rule set .* run the generate_rules stage"):
        RuleSet.load(tmp_path / "r.json")


def test_a_missing_set_and_one_of_another_version_are_refused(chosen, tmp_path):
    with pytest.raises(InputError, match="run the generate_rules stage"):
        RuleSet.load(tmp_path / "none.json")
    chosen.save(tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text()) | {"version": 99}
    (tmp_path / "r.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="version 99"):
        RuleSet.load(tmp_path / "r.json")
