"""What the declarations say is what the library holds, rule by rule and in order; and nothing is declared twice."""

import json
from collections import Counter
from pathlib import Path

from rlflow.rules.declared import catalogue
from rlflow.rules.declared.catalogue import declared_rules, false_controls
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


def test_no_name_is_declared_twice() -> None:
    names = Counter(rule.name for rule in (*declared_rules(), *false_controls()))
    assert not [name for name, count in names.items() if count > 1]


def test_every_declared_rule_and_control_is_found_by_its_name() -> None:
    """Who reads a name in a report finds it by grep."""
    text = "".join(p.read_text() for p in Path(catalogue.__file__).parent.glob("*.py"))
    names = [rule.name for rule in (*declared_rules(), *false_controls())]
    assert [name for name in names if f'"{name}"' not in text] == []
