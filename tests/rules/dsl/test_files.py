"""Files of declarations, and the text that belongs to a place."""

from pathlib import Path

import pytest

from rlflow.errors import InputError, RuleError
from rlflow.rules.dsl.files import declaration_text, read_declarations
from rlflow.rules.library import Library


def test_every_declared_rule_of_the_library_has_its_text(library: Library) -> None:
    """Not vacuous: the text has the name, so that it is the declaration of this rule."""
    for rule in library.rules[::5]:
        text = declaration_text(rule.declared_at) if rule.declared_at else None
        assert (text is not None) == rule.is_declared
        if text is not None:
            assert f'"{rule.name}"' in text
            assert text.startswith(("@rule", "@law"))


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
    (tmp_path / "rules.jsonl").write_text("")
    with pytest.raises(InputError, match="name it by --library"):
        read_declarations(tmp_path / "rules.jsonl")


HEAD = "from rlflow.rules.dsl import Rewrite, Tensor, rule\nfrom rlflow.rules.dsl.operators import *\n"


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        (
            '@rule("a")\ndef a(x: Tensor) -> Rewrite:\n    return Rewrite(Relu(x, prm=1), x)\n',
            5,
            "'a': Relu has no attr",
        ),
        ('@rule("a")\ndef a(x) -> Rewrite:\n    return Rewrite(Relu(x), x)\n', 3, "'a': the parameter 'x' has no anno"),
        ('@rule("a")\ndef a(x: Tensor) -> Rewrite:\n    return Rewrite(x, x)\n', 3, "'a': both sides are the same"),
        (
            "@rule\ndef a(x: Tensor) -> Rewrite:\n    return Rewrite(Relu(x), x)\n",
            3,
            'a rule needs a name: write @rule("',
        ),
        ("\nfrom rlflow.rules.dsl.operators import Frobnicate\n", 4, "the library knows no operator Frobnicate"),
        ("x = 1\nx / 0\n", 4, "ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", 4, "SystemExit: 3"),
        ("def a(:\n", 3, "invalid syntax"),
        ("\0", 1, "source code string cannot contain null bytes"),
        ("\nx = (1\n", 4, ""),
    ],
)
def test_an_error_is_told_once_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool, text: str, line: int, sentence: str
) -> None:
    """Also where the file is named by a relative path, as on the command line: Python knows it by an absolute one."""
    monkeypatch.chdir(tmp_path)
    path = Path("own.py") if relative else tmp_path / "own.py"
    path.write_text(HEAD + text)
    with pytest.raises(RuleError) as error:
        read_declarations(path)
    told = str(error.value).replace("ValueError: source", "source")  # a null byte, before Python 3.11.4
    assert told.startswith(f"{path}:{line}: {sentence}")
    assert told.count("own.py") == 1
