"""Numbers, tables and pages as Markdown has them: one form for all that is published.

    markdown_table(["graph", "saved %"], [["bert", with_interval(5.5, (5.0, 6.0))]])
    rendered(Path("results.md.j2"), {"saved": 5.5})              a template in which every name must have a value

In templates `x | number(".2f")` is a number as an f-string has it, `x | names` names with commas between them,
`x | wrapped` a paragraph in lines of their own length, and `row(x, y)` a line of a table.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

WIDTH = 120
"""Columns of a page."""


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """Return a table in Markdown, of which so many first columns are texts and the others numbers."""
    alignment = [":--"] * texts + ["--:"] * (len(head) - texts)
    return "".join(table_row(*cells) + "\n" for cells in [head, alignment, *rows])


def table_row(*cells: Any) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def with_interval(value: float, interval: Sequence[float], digits: int = 2) -> str:
    """Return a figure with both ends of its interval."""
    low, high = interval
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def names_text(names: Iterable[str]) -> str:
    """Return names with commas between them, or that there are none."""
    return ", ".join(names) or "none"


def wrapped(paragraph: str) -> str:
    """Return a paragraph broken into lines anew."""
    return textwrap.fill(" ".join(paragraph.split()), WIDTH) + "\n"


def rendered(template: Path, values: Mapping[str, Any]) -> str:
    """Return the text of a Jinja template. Raises `jinja2.UndefinedError` for a name without a value."""
    environment = Environment(
        loader=FileSystemLoader(template.parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": format, "names": names_text, "wrapped": wrapped}
    environment.globals |= {"markdown_table": markdown_table, "row": table_row, "with_interval": with_interval}
    return environment.get_template(template.name).render(values)
