"""A library that is generated in seconds: a family that takes a moment, then one that takes longer."""

from dataclasses import replace

from rlflow.rules.verification.verify import VerificationConfig
from rlflow.synthesis.enumeration import Leaf, OperatorChoice
from rlflow.synthesis.families import FAMILIES, Family
from rlflow.synthesis.generate import GenerationReport, GeneratorConfig, LibraryConfig
from support.movement import some

QUICK = GeneratorConfig(FAMILIES["algebra"], max_operators=1, verification=VerificationConfig(shapes=16))
SLOW = GeneratorConfig(some("Transpose", "Concat"), max_operators=2)
SMALL_LIBRARY = LibraryConfig(families=(QUICK, SLOW), declared=())
TRANSPOSE = OperatorChoice("Transpose", 1, {"perm": (1, 0)})
SMALL = GeneratorConfig(
    Family(
        "small",
        (Leaf("a", ("m", "k")), Leaf("b", ("m", "k")), Leaf("c", ("m", "k"))),
        (OperatorChoice("Add", 2), OperatorChoice("Relu", 1), TRANSPOSE),
        {"m": 2, "k": 3},
    ),
    max_operators=2,
    verification=VerificationConfig(shapes=24),
)


def with_leaves(*leaves: Leaf) -> GeneratorConfig:
    return replace(SMALL, family=replace(SMALL.family, leaves=leaves))


def equations(report: GenerationReport) -> set[str]:
    return {rule.equation() for rule in report.rules}
