"""What the declarations say is what the library holds, rule by rule and in order; and nothing is declared twice."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.rewrites import assert_fires_on_a_model, each_of

from rlflow.rules.declared import along_axis, catalogue, groups, movement, pushdown, quantised, slices, winograd
from rlflow.rules.declared.catalogue import declared_rules, false_controls, rules_of
from rlflow.rules.library import Library
from rlflow.rules.rule import Rule

FALSE_CONTROLS = Path(__file__).with_name("false_controls.json")
"""Names and ids, which are digests of what a rule says; recorded before the controls were written in the language."""


def _text(rule: Rule) -> str:
    """All that a certificate covers, and the order in which attributes are drawn."""
    return json.dumps(rule.to_json() | {"certificate": None})


def test_the_library_holds_the_declared_rules_in_their_order(library: Library) -> None:
    """Not vacuous: the shipped file is compared with what the modules declare, to the letter."""
    shipped = [_text(rule) for rule in library.rules if rule.origin == "declared"]
    assert [_text(rule) for rule in declared_rules()] == shipped
    assert len(shipped) >= 453


def test_false_controls_say_what_they_said() -> None:
    recorded = json.loads(FALSE_CONTROLS.read_text())
    declared = {control.name: control.id for control in false_controls()}
    assert {name: declared.get(name) for name in recorded} == recorded


@pytest.mark.parametrize("of", [lambda rule: rule.name, lambda rule: rule.id], ids=["names", "ids"])
def test_nothing_is_declared_twice(of: Callable[[Rule], str]) -> None:
    """An id is what a rule says: the library would drop one of two that say the same."""
    found = Counter(map(of, (*declared_rules(), *false_controls())))
    assert not [what for what, count in found.items() if count > 1]


@each_of(rules_of(pushdown, along_axis, slices, groups, movement, winograd, quantised))
def test_a_rule_fires_on_a_model(rule: Rule) -> None:
    assert_fires_on_a_model(rule)


def test_every_declared_rule_and_control_is_found_by_its_name() -> None:
    """Who reads a name in a report finds it by grep."""
    text = "".join(p.read_text() for p in Path(catalogue.__file__).parent.glob("*.py"))
    names = [rule.name for rule in (*declared_rules(), *false_controls())]
    assert [name for name in names if f'"{name}"' not in text] == []
