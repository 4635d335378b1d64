"""The finders of an examination by their names, in the order in which they look."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from rlflow.plugins import Registry

if TYPE_CHECKING:
    from rlflow.doctor.finding import Finding
    from rlflow.doctor.subject import Subject

    Finder: TypeAlias = Callable[[Subject], Iterable[Finding]]
"""Looks for one thing. Raises `NotLookedFor` where it cannot."""

FINDERS: Registry[Finder] = Registry(
    noun="finder",
    group="rlflow.finders",
    built_in={
        "not a number": "rlflow.doctor.findings.not_numbers:not_numbers",
        "wrong fusions": "rlflow.doctor.findings.wrong_fusions:wrong_fusions",
        "subnormal weights": "rlflow.doctor.findings.subnormal_weights:subnormal_weights",
        "subnormal activations": "rlflow.doctor.findings.subnormal_activations:subnormal_activations",
        "weights stored twice": "rlflow.doctor.findings.stored_twice:stored_twice",
        "larger file": "rlflow.doctor.findings.larger_file:larger_file",
        "harmful fusions": "rlflow.doctor.findings.harmful_fusions:harmful_fusions",
        "half precision": "rlflow.doctor.findings.half_precision:half_precision",
        "quantisation": "rlflow.doctor.findings.quantisation:quantisation",
        "threads": "rlflow.doctor.findings.threads:threads",
        "open dimensions": "rlflow.doctor.findings.open_dimensions:open_dimensions",
    },
)
