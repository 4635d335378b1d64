"""Reading and writing results files: a document is written if it follows its type, else the file stays as it was."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError, RLFlowError
from rlflow.schemas import validate
from rlflow.schemas.figures import plain


def write_results(path: Path, kind: Any, document: Any) -> None:
    """Write a document of the type `kind`, of which any part may be an object of its class, as JSON to `path`.

    Raises RLFlowError when the document is at fault; the file is then as it was.
    """
    content = plain(document)
    try:
        validate(kind, content)
    except RLFlowError as error:
        raise RLFlowError(f"refused to write {path}: {error}") from error
    with written_whole(path) as draft:
        draft.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def read_results(path: Path) -> Any:
    """The JSON document at `path`. Raises InputError when it is missing or not strict JSON (NaN is not)."""
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path} as JSON: {error}") from error


def parsed(text: str) -> Any:
    """The JSON document that `text` is. Raises ValueError if it is not strict JSON."""
    return json.loads(text, parse_constant=_refuse_constant)


def type_of(path: Path, documents: Mapping[str, Any]) -> Any:
    """The type of a results file: that of the first pattern which the end of its path matches, None if none does."""
    return next((kind for pattern, kind in documents.items() if path.match(pattern)), None)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
