"""JSON Schemas of every results file and every `--json` output, the one function that checks against them, and what
they say of a figure that is computed again.
"""

from rlflow.schemas.reproduction import Kind, Place, top
from rlflow.schemas.validation import names, schema, validate

__all__ = ["Kind", "Place", "names", "schema", "top", "validate"]
