"""The library file is what the declarations say today; to bring it up to date takes no enumeration."""

from dataclasses import replace

from rlflow.rules.declared.catalogue import declared_rules
from rlflow.rules.declared.refresh import refreshed
from rlflow.rules.library import Library
from rlflow.rules.rule import rule_from_json


def test_the_shipped_library_is_up_to_date(library: Library) -> None:
    """Places included. If this fails, run `rlflow rules certify`."""
    today = refreshed(library, declared_rules())
    assert [rule.record() for rule in today.rules] == [rule.record() for rule in library.rules]
    assert all(bool(rule.declared_at) == rule.is_declared for rule in library.rules)


def test_a_new_rule_takes_its_place_and_a_changed_one_loses_its_certificate(library: Library) -> None:
    first, second, third, *rest = declared_rules()
    new = rule_from_json("new", "test", [["Sqrt", ["Sqrt", ["Sqrt", "x"]]]], [["Pow", {"exponent": 0.125}, "x"]])
    changed = replace(second, name="another name")
    after = refreshed(library, [first, new, changed, *rest]).rules

    assert [rule.id for rule in after[:3]] == [first.id, new.id, second.id]
    assert [rule.certificate is None for rule in after[:4]] == [False, True, True, False]
    assert third.id not in {rule.id for rule in after}
    assert len(after) == len(library.rules)


def test_an_enumerated_rule_that_somebody_declares_keeps_the_declared_name(library: Library) -> None:
    enumerated = next(rule for rule in library.rules if not rule.is_declared)
    declared = replace(enumerated, name="by-hand", family="test", origin="declared", certificate=None)
    after = refreshed(library, [*declared_rules(), declared])
    assert enumerated.id not in {rule.id for rule in after.rules}
    assert after.get("by-hand").certificate is None
    assert len(after.rules) == len(library.rules)
