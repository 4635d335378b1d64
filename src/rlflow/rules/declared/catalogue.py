"""All declared rules, file by file: what enumeration over small operators does not reach.

The order of the files, and of the declarations in each, is the order of the rules in a library, and part of its hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from rlflow.rules.declared import (
    along_axis,
    constants,
    convolution,
    fused,
    groups,
    joins,
    linear,
    microsoft,
    movement,
    padding,
    preprocessing,
    pushdown,
    quantised,
    reordering,
    slices,
    transformer,
    verifier_controls,
    winograd,
)
from rlflow.rules.dsl import Declaration, declarations
from rlflow.rules.rule import Rule

FILES = (
    verifier_controls,
    linear,
    reordering,
    transformer,
    convolution,
    fused,
    microsoft,
    groups,
    preprocessing,
    constants,
    pushdown,
    along_axis,
    slices,
    movement,
    winograd,
    padding,
    joins,
    quantised,
)


def rules_of(*files: ModuleType) -> list[Rule]:
    """The rules that these files declare, without certificates."""
    return [rule for d in _declarations(files) if not d.is_false_control for rule in d.rules]


def controls_of(*files: ModuleType) -> list[Rule]:
    """The false controls of these files."""
    return [rule for d in _declarations(files) if d.is_false_control for rule in d.rules]


def declared_rules() -> list[Rule]:
    """All declared rules, without certificates; each is verified like any other."""
    return rules_of(*FILES)


def false_controls() -> list[Rule]:
    """Rules that are wrong, each in a way that a weak verifier overlooks. All must be refused in every run."""
    return controls_of(*FILES)


def _declarations(files: Sequence[ModuleType]) -> list[Declaration]:
    return [declaration for file in files for declaration in declarations(vars(file))]
