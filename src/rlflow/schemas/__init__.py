"""Documents: the types of what commands print with `--json`, and what the types of results files are made of.

schemas.validate(schemas.OF_COMMANDS["optimise"], document)
schemas.json_schema(schemas.OF_COMMANDS["optimise"])     # for those who check documents elsewhere
"""

from rlflow.schemas.checking import validate
from rlflow.schemas.commands import OF_COMMANDS
from rlflow.schemas.figures import Kind, plain
from rlflow.schemas.json_schema import json_schema
from rlflow.schemas.reproduction import Place, top

__all__ = ["OF_COMMANDS", "Kind", "Place", "json_schema", "plain", "top", "validate"]
