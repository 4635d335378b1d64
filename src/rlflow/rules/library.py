"""The rule library: a readable file, one rule a line, every rule with its certificate."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError, RuleError
from rlflow.rules.certificate import Certificate, check_certificate
from rlflow.rules.rule import Rule, declare


@dataclass(frozen=True)
class Library:
    """Certified rules in a fixed order; `hash` identifies the set."""

    rules: tuple[Rule, ...]

    @cached_property
    def hash(self) -> str:
        return sha256("\n".join(r.id for r in self.rules).encode()).hexdigest()[:16]

    @cached_property
    def _by_id(self) -> dict[str, Rule]:
        return {r.id: r for r in self.rules}

    def get(self, key: str) -> Rule:
        """The rule of this id or name; `InputError` if there is none."""
        rule = self._by_id.get(key) or next((r for r in self.rules if r.name == key), None)
        if rule is None:
            raise InputError(f"the library has no rule {key!r}: `rlflow rules list` shows all {len(self.rules)}")
        return rule

    def select(self, ids: Sequence[str]) -> Library:
        """The rules of these ids, in this order."""
        return Library(tuple(self.get(i) for i in ids))

    def without(self, keys: Iterable[str]) -> Library:
        """All rules but those of these ids or names."""
        dropped = {self.get(key).id for key in keys}
        return Library(tuple(r for r in self.rules if r.id not in dropped))

    def save(self, path: Path) -> None:
        """Write whole or not at all."""
        with written_whole(path) as draft:
            draft.write_text("".join(json.dumps(r.to_json()) + "\n" for r in self.rules))


@dataclass(frozen=True)
class LibraryDifference:
    """Rules that only one of two libraries has, and those that both have with another certificate."""

    added: tuple[Rule, ...]
    removed: tuple[Rule, ...]
    recertified: tuple[Rule, ...]
    unchanged: int


def difference(before: Library, after: Library) -> LibraryDifference:
    """From one library to another, by stable id; rules in the order of their library."""
    old, new = ({rule.id: rule for rule in library.rules} for library in (before, after))
    both = [rule for rule in after.rules if rule.id in old]
    recertified = tuple(rule for rule in both if rule.certificate != old[rule.id].certificate)
    return LibraryDifference(
        added=tuple(rule for rule in after.rules if rule.id not in old),
        removed=tuple(rule for rule in before.rules if rule.id not in new),
        recertified=recertified,
        unchanged=len(both) - len(recertified),
    )


def load(path: Path | None = None) -> Library:
    """The library of a file, or the one that ships with the package.

    `CertificateError` naming the rule whose certificate is missing or does not belong to it, `RuleError` naming the
    line that cannot be read, `InputError` if there is no such file.
    """
    try:
        text = path.read_text() if path else resources.files("rlflow.rules").joinpath("library.jsonl").read_text()
    except FileNotFoundError:
        raise InputError(f"there is no rule library {path}: make one with `rlflow rules generate`") from None
    rules = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            rule = read_rule(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise RuleError(f"line {number} of {path or 'the shipped library'} is no rule: {error}") from None
        check_certificate(rule)
        rules.append(rule)
    return Library(tuple(rules))


def read_rule(written: Mapping[str, Any]) -> Rule:
    """A rule from what `Rule.to_json` wrote; `RuleError` if its id is another one."""
    rule = declare(
        written["name"],
        written["family"],
        written["source"],
        written["target"],
        written["variables"],
        attributes=written["attributes"],
        where=written["where"],
        worth=written.get("worth", ()),
        opset=written["opset"],
        origin=written["origin"],
        certificate=Certificate(**written["certificate"]) if written["certificate"] else None,
    )
    if rule.id != written["id"]:
        raise RuleError(f"rule {written['id']} ({rule.name}) was changed: its content now has the id {rule.id}")
    return rule
