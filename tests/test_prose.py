"""The first line of every docstring is a plain sentence: a stranger who reads it alone understands it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "rlflow"
PACKAGES = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())
FORBIDDEN = frozenset("As By How Of So Than That Then Those What When Where Whether Which Who Why".split())
"""Words that open a fragment ("Whether the graph ...", "Of each rule ...") instead of a sentence or a noun phrase."""


REFUSED = re.compile(r"\b(whoever|whom|gone on with|(is|are|was) told by|what there is)\b", re.IGNORECASE)
"""Turns that hide the subject of a sentence, or make a noun of "what"."""
PIPELINES = Path(__file__).parents[1] / "pipelines"


def test_the_worst_turns_are_refused() -> None:
    """In code, docstrings and messages of the library and of the experiment; not vacuous, as the next line shows."""
    assert REFUSED.search("Whoever needs it is told by the cost model") is not None
    paths = [path for folder in (SOURCE, PIPELINES) for path in sorted(folder.rglob("*.py"))]
    lines = [(path, number, line) for path in paths for number, line in enumerate(path.read_text().splitlines(), 1)]
    found = [f"{path}:{number}: {line.strip()}" for path, number, line in lines if REFUSED.search(line)]
    assert found == []


def openings(source: str) -> Iterator[tuple[str, str]]:
    """Name and first word of every docstring in a module's source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "module"), text.split()[0].strip(",.:;")


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_open_with_a_sentence(package: str) -> None:
    """Not vacuous: every package has many docstrings, and the next test shows that an offender is found."""
    found = []
    for path in sorted((SOURCE / package).rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        found += [(name, owner, word) for owner, word in openings(path.read_text())]
    assert found
    assert [entry for entry in found if entry[-1] in FORBIDDEN] == []


def test_modules_outside_packages_open_with_a_sentence() -> None:
    found = [(path.name, *one) for path in sorted(SOURCE.glob("*.py")) for one in openings(path.read_text())]
    assert found
    assert [entry for entry in found if entry[-1] in FORBIDDEN] == []


def test_the_pipelines_open_with_a_sentence_too() -> None:
    found = [(path.name, *one) for path in sorted(PIPELINES.rglob("*.py")) for one in openings(path.read_text())]
    assert found
    assert [entry for entry in found if entry[-1] in FORBIDDEN] == []


def test_an_offender_is_found() -> None:
    source = (
        '"""What it is."""\n\n\nclass Good:\n    """A thing."""\n\n    def bad(self):\n        """Whether it is."""\n'
    )
    assert dict(openings(source)) == {"module": "What", "Good": "A", "bad": "Whether"}
