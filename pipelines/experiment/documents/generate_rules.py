"""The document of `generate_rules`: how the rules were made."""

from typing import Annotated

from rlflow.schemas.figures import EQUAL, NOT_EMPTY, Cases, Count, Document, Figure, Hash, Seconds, Seed, Text


class Family(Document):
    """One family of rules, from the enumeration to the verified ones."""

    operators: Annotated[list[Text], NOT_EMPTY]
    """Operators that the enumeration uses."""
    max_operators: Cases
    """Most operators in one graph."""
    graphs_enumerated: Count
    distinct_fingerprints: Count
    candidate_pairs: Count
    """Pairs of graphs with one fingerprint."""
    after_renaming: Count
    """Pairs left after removing renamings of one another."""
    after_common_subgraph: Count
    """Pairs left after removing those that follow from smaller ones."""
    verified: Count
    rejected: Count
    rules: Count
    """What was verified, in every direction that is sound."""
    cpu_s: Seconds


class Declared(Document):
    """The rules that are written by hand."""

    rules: Count
    verified: Count
    rejected: Count


class Library(Document):
    """The library that was written."""

    rules: Count
    selected: dict[str, Count]
    """Graph -> rules that an agent acts with on it; empty where it acts with all rules."""
    hash: Hash


class GenerateRules(Document):
    """The generator's enumeration, its pruning, and what verification let through."""

    generated: Annotated[dict[str, Family], NOT_EMPTY]
    """Family of rules -> what came of it."""
    declared: Declared
    library: Library
    unsound_rules_accepted: Annotated[Figure, EQUAL]
    """Planted unsound rules that verification lets pass; baseline: all of them, unchecked."""
    shapes_checked: Count
    """Shape assignments over all rules."""
    float_checks: Count
    """Rules executed in ONNX Runtime."""
    generation_s: Seconds
    seed: Seed
    generation_cpu_s: Seconds
    """Enumeration, pruning and verification of all families and of the declared rules."""
