"""Printing documents with `--json`, each checked against the type of its command."""

import json
from typing import Any

import typer

from rlflow import schemas


def print_json(command: str, document: Any) -> None:
    """Print a command's document, of which any part may be an object of its class. RLFlowError if it is wrong."""
    content = schemas.plain(document)
    schemas.validate(schemas.OF_COMMANDS[command], content)
    typer.echo(json.dumps(content, indent=1))
