"""A user's own rules: read from a Python file, verified, and used like those of the library.

    load().extended(load_rules(Path("my_rules.py")))

No rule is trusted: what a Python file declares is verified when it is loaded, and what a library file
holds must have its certificates. Running a Python file runs what it says; a library file is data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from rlflow.errors import InputError, RuleError
from rlflow.rules.certificate import Certificate
from rlflow.rules.dsl.files import read_declarations
from rlflow.rules.library import Library, load
from rlflow.rules.rule import Rule
from rlflow.rules.verification.verify import VerificationConfig, certified, verify

OnRule = Callable[[int, int, Rule], None]
"""Called with (rules done, rules to do, the next one)."""


def load_rules(path: Path) -> Library:
    """The rules of a library file (.jsonl), or those that a Python file declares, verified once in each process.

    `InputError` for a file that is neither, `RuleError` with file and line if a rule is refuted.
    """
    if path.suffix == ".jsonl":
        return load(path)
    if path.suffix != ".py":
        raise InputError(f"{path} holds no rules: give a library (.jsonl) or a file that declares rules (.py)")
    if not path.is_file():
        raise InputError(f"there is no file of rules {path}")
    return _verified_once(path, path.read_text())


def library_of(given: Library | Path | str | None) -> Library:
    """The library itself, that of a file, or the shipped one. The kind of the file decides how it is read."""
    if isinstance(given, Library):
        return given
    return load() if given is None else load_rules(Path(given))


@cache
def _verified_once(path: Path, text: str) -> Library:
    return verified(path, VerificationConfig())[0]


def verified(path: Path, config: VerificationConfig, on_rule: OnRule | None = None) -> tuple[Library, int]:
    """The rules that a Python file declares, with certificates, and how many of its false controls were refused.

    `RuleError` naming every rule that is refuted, with file, line and counter-example, and every control that is not.
    """
    declared = [(rule, d.is_false_control) for d in read_declarations(path) for rule in d.rules]
    faults: list[str] = []
    rules: list[Rule] = []
    for number, (rule, is_false) in enumerate(declared):
        if on_rule is not None:
            on_rule(number, len(declared), rule)
        if is_false:
            if isinstance(verify(rule, config), Certificate):
                faults.append(f"{rule.declared_at}: false control {rule.name!r} is true: {rule.equation()}")
            continue
        try:
            rules.append(certified(rule, config))
        except RuleError as error:
            faults.append(str(error))
    if faults:
        raise RuleError("\n".join(faults))
    return Library(tuple(rules)), len(declared) - len(rules)
