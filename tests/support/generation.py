"""A library that is generated in seconds: a family that takes a moment, then one that takes longer."""

from rlflow.rules.synthesis.families import FAMILIES
from rlflow.rules.synthesis.generate import GeneratorConfig, LibraryConfig
from rlflow.rules.verification.verify import VerificationConfig

QUICK = GeneratorConfig(FAMILIES["algebra"], max_operators=1, verification=VerificationConfig(shapes=16))
SLOW = GeneratorConfig(FAMILIES["join"], max_operators=2)
SMALL_LIBRARY = LibraryConfig(families=(QUICK, SLOW), declared=False)
