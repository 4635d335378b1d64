"""A reader of equations in the notation of TASO's published library, which gives them no shapes.

A line is one rule, with or without a leading number; its equations, one for each output, are separated by ";":

    70: relu(a) == split_0(1,relu(concat(1,a,b))) ; relu(b) == split_1(1,relu(concat(1,a,b)))

An operator has its numbers (axes, sizes, codes) before its operands. Text after a # is a remark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlflow.errors import InputError
from rlflow.git_lfs import require_content

_ARITY = {  # numbers, then operands
    "ewadd": (0, 2),
    "ewmul": (0, 2),
    "smul": (0, 2),
    "relu": (0, 1),
    "matmul": (0, 2),
    "transpose": (0, 1),
    "concat": (1, 2),
    "split_0": (1, 1),
    "split_1": (1, 1),
    "conv2d": (4, 2),
    "poolavg": (5, 1),
    "poolmax": (5, 1),
    "enlarge": (2, 1),
    "Imatmul": (0, 0),
    "Iconv": (2, 0),
    "Cpool": (2, 0),
    "Iewmul": (0, 0),
}
_CODES = {"conv2d": {2: (0, 1), 3: (0, 2)}, "poolavg": {4: (0, 1)}, "poolmax": {4: (0, 1)}}
"""Numbers that are codes, by their place: 0 "same" or 1 "valid" padding; 0 no activation or 2 relu."""

_OF_AXES = ("concat", "split_0", "split_1")
_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|\d+|[(),])")
_NUMBER = re.compile(r"\s*(\d+)\s*:")


@dataclass(frozen=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True)
class Call:
    """An operator or a constant with its numbers and its operands."""

    name: str
    numbers: tuple[int, ...] = ()
    operands: tuple[Formula, ...] = ()


Formula = Name | Call


@dataclass(frozen=True)
class Equations:
    """One rule: the pairs (left, right) of all its outputs, and its text."""

    number: int
    text: str
    pairs: tuple[tuple[Formula, Formula], ...]


def read_equations(path: Path) -> list[Equations]:
    """Read all rules of a file, numbered or else counted; `InputError` naming the line that cannot be read."""
    require_content(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from None

    rules: list[Equations] = []
    for place, line in enumerate(lines, start=1):
        written = line.partition("#")[0].strip()
        if not written:
            continue
        try:
            rules.append(parse_line(written, number=len(rules)))
        except InputError as error:
            raise InputError(f"{path}, line {place}: {error}") from None
    if not rules:
        raise InputError(f"{path} holds no equation; write one a line, as in relu(relu(a)) == relu(a)")
    return rules


def parse_line(line: str, number: int = 0) -> Equations:
    """Read one rule, which gets `number` if it has none; `InputError` says what is wrong with it."""
    leading = _NUMBER.match(line)
    text = (line[leading.end() :] if leading else line).strip().rstrip("; \t")
    pairs = []
    for equation in text.split(";"):
        sides = equation.split("==")
        if len(sides) != 2:
            raise InputError(f"{equation.strip()!r} is no equation: expected left == right")
        left, right = map(_parse, sides)
        pairs.append((left, right))
    return Equations(int(leading.group(1)) if leading else number, text, tuple(pairs))


def parts(formula: Formula) -> Iterator[Formula]:
    """Yield a formula and all its parts."""
    yield formula
    if isinstance(formula, Call):
        for operand in formula.operands:
            yield from parts(operand)


def names(*formulas: Formula) -> tuple[str, ...]:
    """Return the names of the variables, in the order of their first occurrence."""
    found = (part.name for formula in formulas for part in parts(formula) if isinstance(part, Name))
    return tuple(dict.fromkeys(found))


def _parse(text: str) -> Formula:
    tokens = _tokens(text)
    try:
        formula = _formula(tokens)
    except RecursionError:
        raise InputError("the formula is nested too deeply") from None
    if tokens:
        raise InputError(f"{text.strip()!r}: {tokens[-1]!r} follows the end of the formula")
    return formula


def _tokens(text: str) -> list[str]:
    """Cut a text into tokens, the last one first, so that they can be popped."""
    found, place, text = [], 0, text.strip()
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise InputError(f"{text!r}: {text[place:].lstrip()[0]!r} is not understood")
        found.append(token.group(1))
        place = token.end()
    return found[::-1]


def _formula(tokens: list[str]) -> Formula:
    """Read a formula off the end of `tokens`, by recursive descent."""
    name = tokens.pop() if tokens else ""
    if not name or not (name[0].isalpha() or name[0] == "_"):
        raise InputError(f"expected an operator or a variable, found {name or 'nothing'!r}")
    if not tokens or tokens[-1] != "(":
        return Call(name) if _ARITY.get(name) == (0, 0) else Name(_variable(name))
    if name not in _ARITY:
        raise InputError(f"unknown operator {name!r}; known are {', '.join(_ARITY)}")
    tokens.pop()

    numbers: list[int] = []
    operands: list[Formula] = []
    while tokens and tokens[-1] != ")":
        if tokens[-1].isdigit() and not operands:
            numbers.append(int(tokens.pop()))
        else:
            operands.append(_formula(tokens))
        if tokens and tokens[-1] == ",":
            tokens.pop()
    if not tokens:
        raise InputError(f"{name} lacks its closing parenthesis")
    tokens.pop()

    if (len(numbers), len(operands)) != _ARITY[name]:
        wanted = "{} numbers and {} operands".format(*_ARITY[name])
        raise InputError(f"{name} has {len(numbers)} numbers and {len(operands)} operands, not {wanted}")
    for place, number in enumerate(numbers):
        codes = _CODES.get(name, {}).get(place)
        is_wrong = number not in codes if codes else number < 1 and name not in _OF_AXES
        if is_wrong:
            raise InputError(f"{name}: number {place + 1} is {number}, expected {codes or 'at least 1'}")
    return Call(name, tuple(numbers), tuple(operands))


def _variable(name: str) -> str:
    if name in _ARITY:
        raise InputError(f"{name} is an operator and needs its operands in parentheses")
    return name
