"""Tables, intervals and templates in Markdown."""

from pathlib import Path

import jinja2
import pytest
from experiment.formatting import markdown_table, names_text, rendered, with_interval


def test_columns_of_numbers_are_aligned_to_the_right():
    table = markdown_table(("graph", "method", "%"), [["bert", "greedy", "1"]], texts=2)
    assert table == "| graph | method | % |\n| :-- | :-- | --: |\n| bert | greedy | 1 |\n"


def test_names_and_intervals():
    assert (names_text([]), names_text(["bert", "vit"])) == ("none", "bert, vit")
    assert with_interval(5.5, (5.0, 6.0), 1) == "5.5 [5.0, 6.0]"


def test_a_template_has_a_value_for_every_name(tmp_path: Path):
    """Or it is refused, where Jinja by itself would leave a gap."""
    template = tmp_path / "page.md.j2"
    template.write_text('{{ saved | number(".2f") }} on {{ graphs | names }}\n{{ row("bert", 1) }}\n')
    assert rendered(template, {"saved": 1.005, "graphs": ["bert"]}) == "1.00 on bert\n| bert | 1 |\n"
    with pytest.raises(jinja2.UndefinedError):
        rendered(template, {"saved": 1.0})
