"""The digest of a stage's code: what changes it, and what does not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tracking.code import digest_of

FILES = {
    "pipelines/stage.py": "from rlflow.rules.apply import apply\nfrom rlflow.unit import SCALE\nprint(apply(SCALE))\n",
    "src/rlflow/rules/__init__.py": "",
    "src/rlflow/rules/apply.py": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from rlflow.other import Other\n\n\n"
        'def apply(x: "Other") -> float:\n    """Twice."""\n    return 2 * x  # because\n'
    ),
    "src/rlflow/unit.py": "SCALE = 0.5\n",
    "src/rlflow/other.py": "class Other: ...\n",
    "src/rlflow/rules/library.jsonl": "{}\n",
}
Edit = Callable[[Path], object]


def replaced(path: str, old: str, new: str) -> Edit:
    def edit(root: Path) -> None:
        text = (root / path).read_text()
        assert old in text, "or the edit does nothing"
        (root / path).write_text(text.replace(old, new))

    return edit


def moved(root: Path) -> None:
    """To another package, as its importer is told; there the imports stand in another order."""
    (root / "src/rlflow/measures").mkdir()
    (root / "src/rlflow/unit.py").rename(root / "src/rlflow/measures/unit.py")
    (root / "src/rlflow/measures/__init__.py").touch()
    stage = root / "pipelines/stage.py"
    first, second, *rest = stage.read_text().splitlines(keepends=True)
    stage.write_text("".join([second.replace("rlflow.unit", "rlflow.measures.unit"), first, *rest]))


SAME: dict[str, Edit] = {
    "a comment": replaced("src/rlflow/rules/apply.py", "because", "for two are better than one"),
    "a docstring": replaced("src/rlflow/rules/apply.py", "Twice.", "Two times x."),
    "a file moves": moved,
    "a module that is imported for its types": replaced("src/rlflow/other.py", "...", "pass"),
}
OTHER: dict[str, Edit] = {
    "the script": replaced("pipelines/stage.py", "apply(SCALE)", "apply(2 * SCALE)"),
    "a function": replaced("src/rlflow/rules/apply.py", "2 * x", "3 * x"),
    "a number": replaced("src/rlflow/unit.py", "0.5", "0.25"),
    "the name under which something is imported": replaced(
        "pipelines/stage.py", "apply import apply", "apply import use"
    ),
    "data in the package": replaced("src/rlflow/rules/library.jsonl", "{}", "[]"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


def after(edit: Edit, root: Path) -> tuple[str, str]:
    """The digests before and after; of a copy, since what has been read is remembered by its path."""
    before = digest_of(root / "pipelines/stage.py", root)
    edited = root.rename(root.with_name("edited"))
    edit(edited)
    return before, digest_of(edited / "pipelines/stage.py", edited)


@pytest.mark.parametrize("edit", SAME.values(), ids=SAME)
def test_what_computes_the_same_has_one_digest(edit: Edit, root: Path):
    before, now = after(edit, root)
    assert before == now


@pytest.mark.parametrize("edit", OTHER.values(), ids=OTHER)
def test_what_may_compute_something_else_has_another(edit: Edit, root: Path):
    before, now = after(edit, root)
    assert before != now
