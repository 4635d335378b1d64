"""The documents of the study."""

from rlflow.schemas.portability import Portability

DOCUMENTS = {"portability/metrics.json": Portability}
"""Types of results files, by the pattern that the end of a file's path matches."""
