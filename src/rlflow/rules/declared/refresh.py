"""A library brought up to date with the declarations, without enumerating anything again.

New and changed rules come without a certificate, unchanged ones keep theirs, removed ones go, and every one names the
place where it is declared today. The order is that of a library made from nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from rlflow.rules.library import Library
from rlflow.rules.rule import Rule


def refreshed(library: Library, declared: Sequence[Rule]) -> Library:
    """The library with these declared rules in place of its own; what is new or changed has no certificate."""
    certificates = {_content(rule): rule.certificate for rule in library.rules if rule.is_declared}
    today = [replace(rule, certificate=certificates.get(_content(rule))) for rule in declared]
    enumerated = Library(tuple(rule for rule in library.rules if not rule.is_declared))
    return Library(tuple(today)).extended(enumerated)


def _content(rule: Rule) -> str:
    """All that a certificate speaks of."""
    return json.dumps(rule.to_json() | {"certificate": None}, sort_keys=True)
