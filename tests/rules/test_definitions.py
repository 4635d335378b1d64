"""Digests of source text: the same where the meaning is the same, another where it may be another."""

import ast
from pathlib import Path

import pytest

from rlflow.errors import RuleError
from rlflow.rules import definitions
from rlflow.rules.definitions import PACKAGE, Module, Name, closure

TEXT = """
import numpy as np
from rlflow.ops import batch
from rlflow.ops.batch import matmul as product

LIMIT = 3


def outer(x: int) -> int:
    return inner(x) + batch.moved(x) + np.sum(x)


def inner(x: int) -> int:
    if x > LIMIT:
        raise ValueError(f"{x} is too large")
    return product(x, x)


class Box:
    size: int = 1

    def area(self):
        return self.size * inner(self.size)


def unused(x):
    return x
"""


def digests(text: str) -> dict[str, str]:
    module = Module("made.up", text)
    return {name: module.definitions(name)[0].digest for name in ("LIMIT", "outer", "inner", "Box", "Box.area")}


SAME = {
    "a comment": ("    return inner", "    # doubled\n    return inner"),
    "a docstring": ("def inner(x: int) -> int:\n", 'def inner(x: int) -> int:\n    """Words."""\n'),
    "the docstring of a value": ("LIMIT = 3\n", 'LIMIT = 3\n"""The last one."""\n'),
    "formatting": ("inner(x) + batch", "(\n        inner( x )\n    ) + batch"),
    "annotations": ("def inner(x: int) -> int", "def inner(x)"),
    "the wording of an error": ("{x} is too large", "at most {LIMIT}, not {x}"),
    "another function": ("def unused(x):", "def unused_and_renamed(x):"),
}
OTHER = {
    "a number": ("LIMIT = 3", "LIMIT = 4", {"LIMIT"}),
    "its type": ("LIMIT = 3", "LIMIT = 3.0", {"LIMIT"}),
    "an operator": ("x > LIMIT", "x >= LIMIT", {"inner"}),
    "the kind of an error": ("ValueError", "TypeError", {"inner"}),
    "the order of operands": ("inner(x) + batch.moved(x)", "batch.moved(x) + inner(x)", {"outer"}),
    "a decorator": ("    def area", "    @property\n    def area", {"Box", "Box.area"}),
    "a field": ("size: int = 1", "size: int = 2", {"Box"}),
}


@pytest.mark.parametrize(("before", "after"), SAME.values(), ids=SAME)
def test_what_does_not_count_changes_no_digest(before: str, after: str) -> None:
    changed = TEXT.replace(before, after)
    assert changed != TEXT
    assert digests(changed) == digests(TEXT)


@pytest.mark.parametrize(("before", "after", "named"), OTHER.values(), ids=OTHER)
def test_what_counts_changes_the_digest_of_its_definition(before: str, after: str, named: set[str]) -> None:
    old, new = digests(TEXT), digests(TEXT.replace(before, after))
    assert {name for name in old if old[name] != new[name]} == named


def test_what_a_definition_uses_is_found_by_name() -> None:
    """Of its own module, of an imported module and by an imported name; other libraries are names and no more."""
    module = Module("made.up", TEXT)
    (outer,), (inner,) = module.definitions("outer"), module.definitions("inner")
    own = "made.up"
    assert outer.uses == {Name(own, "inner"), Name("rlflow.ops.batch", "moved")}
    assert inner.uses == {Name(own, "LIMIT"), Name("rlflow.ops.batch", "matmul")}
    assert module.definitions("product") == module.definitions("absent") == []


def test_a_closure_reaches_what_is_used_by_what_is_used() -> None:
    """`matmul` uses `aligned`, which uses `of_rank`; where the module is not followed, neither counts."""
    batch = definitions.module("rlflow.ops.batch")
    root = Name("rlflow.ops.batch", "matmul")
    expected = {batch.definitions(name)[0].digest for name in ("matmul", "aligned", "of_rank")}
    assert closure([root], ["rlflow.ops"], []) == expected
    assert closure([root], ["rlflow.ir"], []) == {batch.definitions("matmul")[0].digest}
    assert closure([root], ["rlflow.ops"], [Name("rlflow.ops.batch", "aligned")]) == {
        batch.definitions("matmul")[0].digest
    }


def test_a_function_is_found_by_its_code() -> None:
    """Nested ones, decorated ones and lambdas, of which several may be on one line with the same arguments."""
    text = (
        "import functools\n@functools.cache\ndef f(a):\n    return lambda b: a\ng = (lambda x: -x), (lambda x: x * 2)\n"
    )
    scope: dict[str, object] = {}
    exec(compile(text, "made up", "exec"), scope)
    module = Module("made.up", text)
    outer = scope["f"].__wrapped__  # type: ignore[attr-defined]
    assert module.of_code(outer.__code__) == module.definitions("f")
    (inner,) = module.of_code(outer(0).__code__)
    assert inner != module.definitions("f")[0]
    first, second = (module.of_code(function.__code__) for function in scope["g"])  # type: ignore[attr-defined]
    assert len(first) == len(second) == 1
    assert first != second


def test_a_module_without_text_is_refused() -> None:
    with pytest.raises(RuleError, match=r"rlflow\.ops\.absent"):
        definitions.module(f"{PACKAGE}.ops.absent")


def test_the_digests_of_this_package_survive_a_reformatting(repository: Path) -> None:
    """`ast.unparse` writes every file anew, without comments and with other line breaks."""
    files = sorted((repository / "src" / PACKAGE / "ops").glob("*.py"))
    assert len(files) > 10
    for file in files:
        text = file.read_text()
        other = ast.unparse(ast.parse(text))
        assert other != text
        one, two = Module("made.up", text), Module("made.up", other)
        for statement in ast.parse(text).body:
            name = getattr(statement, "name", "")
            assert one.definitions(name) == two.definitions(name)
