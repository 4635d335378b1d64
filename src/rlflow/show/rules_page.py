"""The content of a page of rules: each with its picture, its condition and its certificate.

page.write(Path("rules.html"), "Rules", rules_content(library), page.RULES)
"""

from __future__ import annotations

from typing import Any

from rlflow.rules import portability
from rlflow.rules.certificate import ASSUMPTIONS
from rlflow.rules.library import Library
from rlflow.rules.rule import Rule
from rlflow.show.page_graphs import panel_content
from rlflow.show.rule_boxes import condition, rule_panels


def rules_content(library: Library) -> dict[str, Any]:
    """Return what the page of a library shows."""
    declared = sum(bool(rule.declared_at) for rule in library.rules)
    words = (
        f"{len(library.rules)} rules, {declared} of them declared and the others found by enumeration. All are "
        "verified: the certificate of a rule says how. Search by a name or an operator; click a rule to see it."
    )
    return {"words": words, "rules": {rule.id: rule_content(rule) for rule in library.rules}}


def rule_content(rule: Rule) -> dict[str, Any]:
    """Return what a page shows of a rule: its picture, its condition, its certificate in words, and its origin."""
    notes = [f"It holds for elements of {', '.join(sorted(rule.element_types))}."]
    notes += [f"It assumes that {ASSUMPTIONS[name]}." for name in rule.assumes]
    if rule.certificate is not None:
        certificate = rule.certificate
        notes.append(
            f"Verified at {certificate.shapes} shapes, with {certificate.trials} exact trials or more each, and "
            f"{certificate.float_cases} times in floats."
        )
    if measured := portability.in_words(rule):
        notes.append(f"Measured {measured}.")
    notes.append(f"Declared at {rule.declared_at}." if rule.declared_at else f"Found by enumeration: {rule.origin}.")
    return {
        "name": rule.name,
        "family": rule.family,
        "equation": rule.equation(),
        "condition": condition(rule),
        "panels": {title: panel_content(panel) for title, panel in rule_panels(rule).items()},
        "notes": notes,
    }
