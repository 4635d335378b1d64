"""The documents of `rlflow rules ... --json` and of `rlflow zoo list --json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from rlflow.schemas.figures import (
    NOT_EMPTY,
    Assumption,
    Cases,
    Count,
    Document,
    Error,
    Hash,
    Positive,
    Seconds,
    Seed,
    Text,
)
from rlflow.schemas.portability import RuleGains


class NamedRule(Document):
    """A rule by its id and name."""

    id: Text
    """Stable id."""
    name: Text
    equation: Text
    """Source => target, and the condition."""


class ListedRule(NamedRule):
    """A rule of the library."""

    family: Text
    origin: Text
    """Declared, or how it was enumerated."""
    shapes: Count
    """At which the verifier compared both sides."""
    assumes: list[Assumption]
    """What it assumes of the values that a model carries: that they are finite, that they are of ordinary size."""
    element_types: Annotated[list[Text], NOT_EMPTY]
    """For which it holds: those of floats, of whole numbers that wrap around as well, or any."""
    digest: Text
    """Binds the certificate to the rule."""


class RulesList(Document):
    """Every rule of the library that holds a valid certificate."""

    library_hash: Hash
    rules: list[ListedRule]


class Variable(Document):
    """A tensor of a rule."""

    shape: list[int | str] | UnsetType = UNSET
    """Template: numbers, symbols, at most one leading ...name."""
    constant: bool | UnsetType = UNSET
    literal: bool | UnsetType = UNSET

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        yield from ((key, "it is true or absent") for key in ("constant", "literal") if document.get(key) is False)


class Semantics(Document):
    """Digests of the meanings that the certificate rests on, by operator."""

    OTHERS: ClassVar[Mapping[str, Any]] = {r".*": Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]}

    verifier: str


class Certificate(Document):
    """The proof that a rule is true."""

    method: Text
    trials: Cases
    shapes: Cases
    refuted_without_condition: Count
    float_cases: Count
    assumes: list[Assumption]
    """What it assumes of the values that a model carries: that they are finite, that they are of ordinary size."""
    semantics: Semantics
    digest: Text
    """Binds the certificate to the rule."""


class RuleRecord(Document):
    """One rule as the library file holds it."""

    id: Text
    """Stable id."""
    name: Text
    family: Text
    variables: dict[str, Variable]
    """What a variable may be bound to, where that is not everything."""
    attributes: dict[str, list]
    """What an attribute variable may be."""
    source: Annotated[list[list], NOT_EMPTY]
    """A term for each output: [operator, attributes, operands...]."""
    target: Annotated[list, NOT_EMPTY]
    where: list
    """Conditions in the closed language of rules/expression.py."""
    opset: Count
    """First opset that has all operators of the target."""
    origin: Text
    """Declared, or how it was enumerated."""
    certificate: Certificate
    worth: list | UnsetType = UNSET
    """Conditions under which the rule is tried, which its truth does not need."""
    declared_at: Annotated[str, Meta(pattern="^.+:[0-9]+$")] | UnsetType = UNSET
    """File and line of the declaration; absent for a rule that enumeration found."""
    declaration: Text | UnsetType = UNSET
    """The text of the declaration, where its file is at hand."""
    measured: RuleGains | UnsetType = UNSET
    """What it gains in each runtime; absent where that was not measured."""


class RulePlace(Document):
    """A place in a model."""

    graph: Text
    """The main graph, or the body that it is."""
    root: str
    """The operator whose value the rule would replace, by the model's name for it."""
    found: str | None
    """What stands in the way, by the model's name for it; null where that is no value."""


class RuleObstacle(Document):
    """One reason why a rule does not match, and all places where it is the reason."""

    reason: Text
    missing: Count
    """Operators of the rule's source that are not there."""
    places: Annotated[list[RulePlace], NOT_EMPTY]


class RulesWhy(Document):
    """The places at which a rule matches in a model, and those at which it nearly does."""

    rule: NamedRule
    model: Text
    """Path as given."""
    matches: list[RulePlace]
    near: list[RuleObstacle]
    """The nearest first."""
    lacking: list[str]
    """Operators of the rule's source that the model has nowhere."""


class RulesVerify(Document):
    """Every rule of a library, verified again with fresh instances."""

    library_hash: Hash
    seed: Seed
    rules_verified: Cases
    false_controls_refused: Cases
    assuming: dict[Assumption, Count]
    """Rules that assume that values are finite, or of ordinary size."""
    mean_ms: Positive
    """CPU time of one rule."""
    max_relative_error: Error


class Family(Document):
    """One family of rules, from the enumeration to the kept ones."""

    enumerated: Count
    classes: Count
    duplicate_pairs: Count
    after_renaming: Count
    after_instance: Count
    refuted: Count
    kept: Count
    cpu_s: Seconds
    verified: Count | UnsetType = UNSET


class RulesGenerate(Document):
    """The rules that were enumerated, pruned and kept."""

    output: Text
    """Path as given."""
    library_hash: Hash
    declared: Count
    false_controls_refused: Cases
    cpu_s: Seconds
    families: dict[str, Family]


class RecallTotals(Document):
    """Equations of another set, by what the library makes of them."""

    instance: Count
    """One rule leads from one side to the other."""
    derived: Count
    """Several rules do."""
    conditional: Count
    """False somewhere, derived under the stated condition."""
    refuted: Count
    """False at the shapes of the counter-example."""
    not_found: Count
    """True wherever it was tried, and not derived."""


class Recalled(Document):
    """An equation of the other set, and its outcome."""

    number: Count
    equation: Text
    outcome: Literal["instance", "derived", "conditional", "refuted", "not_found"]
    condition: Text | UnsetType = UNSET
    counter_example: Text | UnsetType = UNSET
    """Or why none could be sought."""


class RulesRecall(Document):
    """The outcome of each rule of another set in the library."""

    library_hash: Hash
    totals: RecallTotals
    false_controls_accepted: Count
    """False equations that were taken for true: 0, or nothing here can be trusted."""
    equations: Annotated[list[Recalled], NOT_EMPTY]


class RulesDiff(Document):
    """The differences of two libraries."""

    before: Hash
    after: Hash
    unchanged: Count
    added: list[NamedRule]
    """In the second alone."""
    removed: list[NamedRule]
    """In the first alone."""
    recertified: list[NamedRule]
    """The same rule with another certificate."""


class ZooModel(Document):
    """A model that `rlflow zoo build` knows."""

    name: Text
    family: Text
    summary: Text
    settings: dict[str, str | float | bool | list | None]
    """Setting -> default."""


ZooList = Annotated[list[ZooModel], NOT_EMPTY]
"""The models that `rlflow zoo build` knows."""
