"""Files of declarations, and the text that belongs to a place."""

from pathlib import Path

import pytest

from rlflow.errors import InputError, RuleError
from rlflow.rules.dsl.files import declaration_text, read_declarations
from rlflow.rules.library import Library


def test_every_declared_rule_of_the_library_has_its_text(library: Library) -> None:
    """Not vacuous: the text has the name, so that it is the declaration of this rule."""
    for rule in library.rules:
        text = declaration_text(rule.declared_at) if rule.declared_at else None
        assert (text is not None) == rule.is_declared
        if text is not None:
            assert f'"{rule.name}"' in text
            assert text.startswith("@rule")


@pytest.mark.parametrize("place", ["", "declared/nowhere.py:3", "declared/joins.py:1", "declared/joins.py"])
def test_there_is_no_text_where_there_is_no_declaration(place: str) -> None:
    assert declaration_text(place) is None


def test_a_file_must_be_there_and_declare_something(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_declarations(tmp_path / "none.py")
    (tmp_path / "empty.py").write_text("x = 1\n")
    with pytest.raises(RuleError, match="declares no rules"):
        read_declarations(tmp_path / "empty.py")
    (tmp_path / "rules.txt").write_text("x = 1\n")
    with pytest.raises(InputError, match=r"must end in \.py"):
        read_declarations(tmp_path / "rules.txt")
