"""Files of declared rules: what a file declares, and the text of a declaration that a library names by its place."""

from __future__ import annotations

import ast
import traceback
from importlib import util
from pathlib import Path

from rlflow.errors import InputError, RLFlowError, RuleError
from rlflow.rules.dsl.declarations import RULES_FOLDER, Declaration, declarations


def read_declarations(path: Path) -> tuple[Declaration, ...]:
    """Run a Python file and return what it declares.

    `InputError` if there is no such file, `RuleError` with file and line if it cannot be run or declares nothing.
    """
    if not path.is_file():
        raise InputError(f"there is no file of rules {path}")
    if path.suffix == ".jsonl":
        raise InputError(f"{path} is a library of rules, not a Python file that declares some: name it by --library")
    spec = util.spec_from_file_location(f"rules_of_{path.stem}", path)
    if spec is None or spec.loader is None or spec.origin is None:
        raise InputError(f"{path} is no file of rules: its name must end in .py")

    module = util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise RuleError(f"{path}:{error.lineno or 1}: {error.msg}") from None
    except RLFlowError as error:
        text = str(error).replace(f"{spec.origin}:", f"{path}:")  # as the caller calls the file
        is_placed = text.startswith(f"{path}:")
        raise RuleError(text if is_placed else f"{path}:{_line_of(error, spec.origin)}: {text}") from None
    except (Exception, SystemExit) as error:
        raise RuleError(f"{path}:{_line_of(error, spec.origin)}: {type(error).__name__}: {error}") from error

    found = declarations(vars(module))
    if not found:
        raise RuleError(f"{path} declares no rules: a rule is a function under @rule(...), see docs/rules.md")
    return found


def _line_of(error: BaseException, file: str) -> int:
    """The last line of the file that was running when the error came."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno for f in reversed(frames) if f.filename == file and f.lineno), 1)


def declaration_text(place: str) -> str | None:
    """The text of the declaration at a place that a library records; None where its file is not at hand, or changed."""
    name, _, line = place.rpartition(":")
    path = RULES_FOLDER / name
    if not path.is_file() or not line.isdigit():
        return None
    text = path.read_text()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list and node.decorator_list[0].lineno == int(line):
            return "\n".join(text.splitlines()[int(line) - 1 : node.end_lineno])
    return None
