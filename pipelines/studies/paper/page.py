"""The page of results: every table of the papers that was reproduced here, beside what the papers print.

    page(results, published)        Markdown, of which every number follows from a results file

results: documents by name, those of the papers' parts (schema `paper`) and those of other studies. published: the
papers' figures (conf/study/published.yaml). A part that was not run has no section, and the page says so at its head.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from studies.paper.learning_page import (
    correlations_section,
    figure_8_section,
    questions_section,
    speed_section,
    table_3_section,
    unseen_section,
)
from studies.paper.rewards_page import measured_rewards_section, rewards_section
from studies.paper.savings_page import (
    budget_section,
    figure_6_section,
    figure_7_section,
    figure_10_section,
    frameworks_section,
    latency_section,
    table_1_section,
)
from studies.paper.told import Results, variants_of
from studies.paper.xrlflow_page import candidates_section, claims_section, cost_model_section, shapes_section

PARTS = ("graphs", "agents", "latency", "temperatures", "rewards", "candidates", "shapes", "frameworks")
"""The parts of the evaluations, each of which has sections of its own."""
_WIDTH = 120


def page(results: Results, published: Mapping[str, Any]) -> str:
    """The page, with a section for each part that was run."""
    found = [section(results, published) for needs, section in _SECTIONS if all(name in results for name in needs)]
    return "\n".join(map(_filled, [_head(results), *found]))


def _head(results: Results) -> str:
    sizes = [
        f"| {part} | {', '.join(results[part])} | {max(len(one['seeds']) for one in variants_of(results[part]))} |"
        for part in PARTS
        if part in results
    ]
    missing = [part for part in PARTS if part not in results]
    lacking = f"\nNot run yet at any size: {', '.join(missing)}.\n" if missing else ""
    return f"""# The papers' evaluations

Tables and figures of RLFlow and X-RLflow, from this project's own definitions and code, beside what the papers print.
`make study NAME=paper` runs them at the size of `conf/study/paper.yaml`, which is what stands here;
`conf/study/paper_full.yaml` has the papers' size. `make study NAME=paper.write_page` writes this page from
`data/results`, and a test compares the two.
Figures are medians over seeds with 95 % intervals. What methods save is by the roofline, in percent of the original:
every node costs by itself, as in a framework that fuses little, which is nearest to the papers' setting. What that is
worth where ONNX Runtime fuses at its highest level stands beside it. Compare methods with each other, not numbers
with the papers', which are measured on a GPU against TensorFlow.

| part | graphs | seeds |
| :-- | :-- | --: |
{chr(10).join(sizes)}
{lacking}"""


_SECTIONS: tuple[tuple[tuple[str, ...], Callable[[Results, Mapping[str, Any]], str]], ...] = (
    (("graphs",), table_1_section),
    (("graphs",), correlations_section),
    (("rewards",), rewards_section),
    (("reward_study",), measured_rewards_section),
    (("agents",), figure_6_section),
    (("latency",), latency_section),
    (("frameworks",), frameworks_section),
    (("agents",), figure_7_section),
    (("headroom",), budget_section),
    (("agents",), figure_8_section),
    (("agents",), figure_10_section),
    (("temperatures",), table_3_section),
    (("graphs", "bench", "sample_efficiency"), speed_section),
    (("agents",), unseen_section),
    (("agents", "fit_world_model", "temperature_sweep"), questions_section),
    (("candidates",), candidates_section),
    (("shapes",), shapes_section),
    (("cost_accuracy",), cost_model_section),
    (("candidates", "reward_study"), claims_section),
)
"""Each section after the documents that it is made from."""


def _filled(section: str) -> str:
    """The section with its paragraphs broken into lines anew; headings, tables and lists stay as they are."""
    paragraphs = []
    for paragraph in section.strip().split("\n\n"):
        lines = paragraph.split("\n")
        rows = [line for line in lines if line.startswith(("|", "#"))]
        prose = " ".join(line.strip() for line in lines[len(rows) :])
        items = re.split(r" (?=\d\. )", prose) if prose.startswith("1. ") else [prose]
        filled = [textwrap.fill(item, _WIDTH, subsequent_indent="   " * (len(items) > 1)) for item in items if item]
        paragraphs.append("\n".join(rows) + "\n" * bool(rows and filled) * 2 + "\n".join(filled))
    return "\n\n".join(paragraphs) + "\n"
