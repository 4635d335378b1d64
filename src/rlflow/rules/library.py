"""The rule library: a readable file, one rule a line, every rule with its certificate."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError, RuleError
from rlflow.git_lfs import require_content
from rlflow.rules import definitions
from rlflow.rules.certificate import Certificate, check_certificate
from rlflow.rules.rule import Rule, rule_from_json


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

    def strict(self) -> Library:
        """The rules that assume nothing of the values that a model carries."""
        return Library(tuple(rule for rule in self.rules if not rule.assumes))

    def extended(self, other: Library) -> Library:
        """These rules, and behind them those of the other library; of rules that say the same, the first alone."""
        rules: dict[str, Rule] = {}
        for rule in (*self.rules, *other.rules):
            rules.setdefault(_content(rule), rule)
        return Library(tuple(rules.values()))

    def save(self, path: Path) -> None:
        """Write whole or not at all."""
        with written_whole(path) as draft:
            draft.write_text("".join(json.dumps(r.record()) + "\n" for r in self.rules))


def _content(rule: Rule) -> str:
    """The id without the family: equal for rules that say the same."""
    return rule.id.removeprefix(f"{rule.family}-")


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


SHIPPED = Path(str(resources.files("rlflow.rules"))) / "library.jsonl"


def load(path: Path | None = None) -> Library:
    """The library of a file, by default the one that ships with the package, every certificate checked.

    `CertificateError` naming the rule whose certificate does not hold, and the errors of `read`.
    """
    return _shipped() if path is None else _checked(path)


@cache
def _shipped() -> Library:
    return _checked(SHIPPED)


def _checked(path: Path) -> Library:
    library = read(path)
    for rule in library.rules:
        check_certificate(rule)
    definitions.forget()
    return library


def read(path: Path) -> Library:
    """The rules of a file as they are written, whatever their certificates are worth.

    `RuleError` naming the line that cannot be read, `InputError` if there is no such file.
    """
    require_content(path)
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        raise InputError(f"there is no rule library {path}: make one with `rlflow rules generate`") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no rule library: {error}") from None
    rules = []
    for number, line in enumerate(lines, start=1):
        try:
            rules.append(read_rule(json.loads(line)))
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise RuleError(f"line {number} of {path} is no rule: {error}") from None
    return Library(tuple(rules))


_KINDS = dict.fromkeys(("name", "family", "origin", "declared_at"), str) | {"attributes": Mapping, "opset": int}


def read_rule(written: Mapping[str, Any]) -> Rule:
    """A rule from what `Rule.record` wrote; `RuleError` if its id is another one, any error of Python for no record."""
    for name, kind in _KINDS.items():
        if not isinstance(written.get(name, ""), kind):
            raise TypeError(f"its {name} is {written[name]!r}")
    rule = rule_from_json(
        written["name"],
        written["family"],
        written["source"],
        written["target"],
        written["variables"],
        attributes=written["attributes"],
        where=written["where"],
        profitable_if=written.get("worth", ()),
        opset=written["opset"],
        origin=written["origin"],
        certificate=Certificate.from_json(written["certificate"]),
        declared_at=written.get("declared_at", ""),
    )
    if rule.id != written["id"]:
        raise RuleError(f"rule {written['id']} ({rule.name}) was changed: its content now has the id {rule.id}")
    return rule
