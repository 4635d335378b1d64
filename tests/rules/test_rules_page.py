"""docs/rules.md: its rules are verified, and its sentences about errors are true."""

import re
from pathlib import Path

import pytest

from rlflow.errors import RuleError
from rlflow.rules.dsl.files import read_declarations
from rlflow.rules.library import Library
from rlflow.rules.user_rules import verified
from rlflow.rules.verification.verify import VerificationConfig

PAGE = (Path(__file__).parents[2] / "docs/rules.md").read_text()
FILES = {name: text for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL)}


@pytest.mark.parametrize("name", ["my_rules.py", "three_rules.py"])
def test_the_rules_of_the_page_are_verified(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name])
    library, refused = verified(path, VerificationConfig())
    assert len(library.rules) == {"my_rules.py": 1, "three_rules.py": 3}[name]
    assert refused == {"my_rules.py": 1, "three_rules.py": 0}[name]


def test_the_three_rules_are_those_of_the_library(tmp_path: Path, library: Library) -> None:
    path = tmp_path / "three_rules.py"
    path.write_text(FILES["three_rules.py"])
    for declaration in read_declarations(path):
        (rule,) = declaration.rules
        assert rule.id.removeprefix("user-") == library.get(rule.name).id.partition("-")[2]


def test_the_error_of_the_page_is_the_error(tmp_path: Path) -> None:
    (told,) = re.findall(r"```text\n(my_rules\.py:.*)\n```", PAGE)
    path = tmp_path / "my_rules.py"
    path.write_text("# my_rules.py\n" + FILES["my_rules.py"].replace("perm=q), x, where", "prm=q), x, where"))
    with pytest.raises(RuleError) as error:
        read_declarations(path)
    shown, message = str(error.value).removeprefix(f"{tmp_path}/").split(": ", 1)
    assert message == told.split(": ", 1)[1]
    assert shown == told.split(": ", 1)[0]


def test_what_the_table_writes_is_exported() -> None:
    import rlflow.rules.dsl as dsl

    table = PAGE.split("### What a rule may say")[1].split("The note on an attribute")[0]
    for name in ("Tensor", "Shape", "CONSTANT", "LITERAL", "Attribute", "PermutationOf", "Rewrite", "rules", "rule"):
        assert name in table
        assert hasattr(dsl, name)
