"""JSON Schemas of every results file and every `--json` output, and the one function that checks against
them.
"""

from rlflow.schemas.validation import names, schema, validate

__all__ = ["names", "schema", "validate"]
