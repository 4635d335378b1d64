"""The definitions of source modules, as digests that change only if what is computed may change.

A definition is a top-level statement that binds a name, or a member of a class. Its normal form is its syntax tree
without docstrings, annotations and the wording of errors; comments and formatting are in no syntax tree. What a
definition uses is found by name: its closure is its own digest with those of all definitions that it uses, directly or
not. In

    def relu(x):                 # digest 1, uses `zero`
        return maximum(x, zero(x))

    def zero(x):                 # digest 2
        return x - x

the closure of `relu` is both digests. Editing or renaming `zero` changes it; moving `zero` to another module does not,
nor does a third function that `relu` does not use.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib import resources
from types import CodeType
from typing import NamedTuple

from rlflow.errors import RuleError

PACKAGE = "rlflow"
_Function = ast.FunctionDef | ast.Lambda
_IGNORED = frozenset({"annotation", "returns", "ctx", "kind", "type_comment"})


class Name(NamedTuple):
    """The name of a definition in its module; a member of a class is `Class.member`."""

    module: str
    definition: str


class Definition(NamedTuple):
    """A digest of the normal form, and the names of this package that it uses."""

    digest: str
    uses: frozenset[Name]


def digest(parts: Iterable[str]) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()


def closure(roots: Iterable[Name], followed: Collection[str], tables: Collection[Name]) -> frozenset[str]:
    """The digests of these definitions and of all that they use in the packages and modules that are `followed`.

    A table is not looked into: of its entries, those count that somebody asks for by `of_code`.
    """
    digests = set[str]()
    waiting = list(roots)
    seen = set(tables)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for definition in module(name.module).definitions(name.definition):
            digests.add(definition.digest)
            waiting += [used for used in definition.uses if is_followed(used.module, followed)]
    return frozenset(digests)


def is_followed(name: str, followed: Collection[str]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in followed)


class Module:
    """The definitions of one module, read from its text."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._imported: dict[str, Name] = {}
        self._statements: dict[str, list[ast.stmt]] = {}
        self._body = ast.parse(text).body
        self._found: dict[str, list[Definition]] = {}
        self._functions: dict[ast.stmt, list[_Function]] = {}
        for statement in self._body:
            self._read(statement)

    def definitions(self, name: str) -> list[Definition]:
        """All statements that bind the name; none for what is imported or built in."""
        if name not in self._found:
            self._found[name] = [self._definition(statement) for statement in self._statements.get(name, ())]
        return self._found[name]

    def of_code(self, code: CodeType) -> list[Definition]:
        """The function or lambda that the code was compiled from, however deep.

        It is known by its first line and its arguments, and lambdas that share both by their columns.
        """
        line, arguments = code.co_firstlineno, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        around = next(statement for statement in reversed(self._body) if _first_line(statement) <= line)
        if isinstance(around, ast.FunctionDef) and _first_line(around) == line:
            return self.definitions(around.name)
        found = [node for node in self._functions_in(around) if _first_line(node) == line]
        found = [node for node in found if tuple(_arguments(node)) == arguments]
        if len(found) > 1:
            found = [node for node in found if _holds(node, code)]
        return [self._definition(node) for node in found]

    def _functions_in(self, statement: ast.stmt) -> list[_Function]:
        if statement not in self._functions:
            self._functions[statement] = [node for node in ast.walk(statement) if isinstance(node, _Function)]
        return self._functions[statement]

    def _read(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Import(names=names):
                self._imported.update((n.asname or n.name, Name(n.name, "")) for n in names)
            case ast.ImportFrom(module=str(source), names=names):
                self._imported.update((n.asname or n.name, Name(source, n.name)) for n in names)
            case ast.ClassDef(name=name, body=body):
                self._bind(name, statement)
                for member in body:
                    if isinstance(member, ast.FunctionDef):
                        self._bind(f"{name}.{member.name}", member)
            case ast.FunctionDef(name=name):
                self._bind(name, statement)
            case ast.Assign(targets=targets):
                for name in (n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)):
                    self._bind(name, statement)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
                self._bind(name, statement)

    def _bind(self, name: str, statement: ast.stmt) -> None:
        self._statements.setdefault(name, []).append(statement)

    def _definition(self, node: ast.AST) -> Definition:
        used: set[tuple[str, str]] = set()
        form = _normal(node, used)
        return Definition(digest([repr(form)]), frozenset(self._resolved(used)))

    def _resolved(self, used: Iterable[tuple[str, str]]) -> Iterator[Name]:
        """The names of this package among `name` and `name.attribute`; names of other packages mean what they say."""
        for name, attribute in used:
            if name in self._statements:
                yield Name(self.name, name)
            elif name in self._imported:
                source, imported = self._imported[name]
                whole = f"{source}.{imported}" if imported else source
                if not whole.startswith(f"{PACKAGE}."):
                    continue
                yield Name(whole, attribute) if _text_of(whole) is not None else Name(source, imported)


def _normal(node: object, used: set[tuple[str, str]]) -> object:
    """The syntax tree as nested tuples; `used` gathers (name, attribute or "") of what it refers to."""
    if isinstance(node, list):
        return [_normal(part, used) for part in node if not _is_docstring(part)]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.Name):
        used.add((node.id, ""))
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        used.add((node.value.id, node.attr))
        return "Attribute", node.value.id, node.attr
    elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return "Raise", _normal(node.exc.func, used)
    values = ((name, getattr(node, name, None)) for name in node._fields if name not in _IGNORED)
    fields = [(name, _normal(value, used)) for name, value in values if value is not None and value != []]
    return type(node).__name__, *fields


def _is_docstring(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _first_line(node: ast.AST) -> int:
    """The line of the first decorator, if there is one, as code objects count."""
    return min(part.lineno for part in (node, *getattr(node, "decorator_list", ())))  # type: ignore[attr-defined]


def _arguments(function: _Function) -> Iterator[str]:
    arguments = function.args
    return (a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _holds(function: _Function, code: CodeType) -> bool:
    """Return True if an instruction of the code lies in the body, or if the code records no columns."""
    places = [(line, column) for line, _, column, end in code.co_positions() if line and column is not None and end]
    body = function.body if isinstance(function, ast.Lambda) else function
    first, last = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    return not places or any(first <= place < last for place in places)


@cache
def module(name: str) -> Module:
    """`RuleError` where its text cannot be read."""
    text = _text_of(name)
    if text is None:
        raise RuleError(f"the source text of {name} is not there: what rules mean cannot be told without it")
    return Module(name, text)


def forget() -> None:
    """Give back the syntax trees, a hundred thousand objects that are not needed after digests are made."""
    module.cache_clear()


@cache
def _text_of(name: str) -> str | None:
    """Find the file: in this package without importing the module, in any other by its import."""
    package, *parts = name.split(".")
    if package != PACKAGE:
        return inspect.getsource(sys.modules[name])
    file = resources.files(PACKAGE).joinpath(*parts[:-1], f"{parts[-1]}.py")
    return file.read_text() if file.is_file() else None
