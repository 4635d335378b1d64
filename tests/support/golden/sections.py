"""The sections of the golden set, by name."""

from collections.abc import Callable, Mapping

from support.golden import (
    agents,
    documents,
    egraphs,
    fits,
    library,
    models,
    passes,
    pictures,
    policy,
    rollouts,
    searches,
)
from support.golden.entries import Compute
from support.golden.file import PROCESSOR

Section = Mapping[str, Compute]


def processor() -> Section:
    """Return all that may differ between processors and between versions of libraries."""
    parts = {
        "fits": fits.entries(),
        "pass ordering": passes.learned(),
        "pictures": pictures.entries(),
        "searches": searches.learned(),
    }
    named = {f"{part}/{name}": compute for part, entries in parts.items() for name, compute in entries.items()}
    return {**agents.entries(), **named}


SECTIONS: Mapping[str, Callable[[], Section]] = {
    "library": library.entries,
    "policy": policy.entries,
    "models": models.entries,
    "documents": documents.entries,
    "pass ordering": passes.entries,
    "rollouts": rollouts.entries,
    "egraphs": egraphs.entries,
    "searches": searches.entries,
    PROCESSOR: processor,
}
"""Each section's entries, the quick sections first."""
