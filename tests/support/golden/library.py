"""The section `library`: which rules ship, in which order, and what they say."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from rlflow.rules.library import Library
from rlflow.rules.rule import Rule
from support.golden.digests import Value, digest
from support.golden.entries import Compute
from support.walks import LIBRARY

_ABOUT_THE_CODE = ("certificate", "declared_at")
"""The keys of a rule's record that tell of the code: digests of the verifier's definitions, and a place in a file."""


def entries(library: Library = LIBRARY) -> Mapping[str, Compute]:
    """Return the entries of a library."""
    families = dict.fromkeys(rule.family for rule in library.rules)
    return {
        "hash": lambda: library.hash,
        "ids in order": lambda: digest([rule.id for rule in library.rules]),
        **{f"family {family}": partial(_family, library, family) for family in families},
    }


def _family(library: Library, family: str) -> Value:
    rules = [rule for rule in library.rules if rule.family == family]
    return {"records": digest([_said(rule) for rule in rules]), "rules": len(rules)}


def _said(rule: Rule) -> dict[str, Any]:
    return {key: value for key, value in rule.record().items() if key not in _ABOUT_THE_CODE}
