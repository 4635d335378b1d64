"""The page of results: every table of the papers that was reproduced here, beside what the papers print.

    page(results, published)        Markdown, of which every number follows from a results file

results: documents by name, those of the papers' parts (studies.paper.documents) and those of other studies. published:
the papers' figures (conf/study/published.yaml). A part that was not run has no section, and the page says so at its
head.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiment.formatting import WIDTH, rendered

from studies.paper import figures

PARTS = ("graphs", "agents", "unseen", "temperatures", "rewards", "candidates", "shapes", "frameworks")
"""The parts of the evaluations, each of which has sections of its own."""
_TEMPLATE = Path(__file__).with_name("results.md.j2")


def page(results: Mapping[str, Any], published: Mapping[str, Any]) -> str:
    """The page, with a section for each part that was run."""
    missing = [part for part in PARTS if part not in results]
    values = {"results": results, "published": published, "parts": PARTS, "missing": missing}
    text = rendered(_TEMPLATE, vars(figures) | values)
    return "\n\n".join(map(_filled, re.split(r"\n\n+", text.strip()))) + "\n"


def _filled(paragraph: str) -> str:
    """The paragraph broken into lines anew; headings and tables stay as they are, items of a list begin lines."""
    if paragraph.startswith(("|", "#")):
        return paragraph
    prose = " ".join(paragraph.split())
    items = re.split(r" (?=\d\. )", prose) if prose.startswith("1. ") else [prose]
    return "\n".join(textwrap.fill(item, WIDTH, subsequent_indent="   " * (len(items) > 1)) for item in items)
