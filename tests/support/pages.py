"""Pages for tests to look at, and the graphs that they are made of.

`PYTHONPATH=tests python -m support.pages` leaves a screenshot of a report in docs/images.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import rlflow
from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.optimise.api import Optimised
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.report_page import optimisation_content
from rlflow.show.changes_page import MAIN, changes_content
from rlflow.show.page import page
from support.repository import REPOSITORY
from support.walks import REWRITER, walk

NARROW = {"hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50, "positions": 16}


def optimised(name: str, cost_model: str = "analytic", **settings: Any) -> Optimised:
    """What a short search makes of a model of the zoo, checked on one input; timing decides if it is delivered."""
    gate = GateConfig(draws=1, rounds=2)
    model = zoo.build(name, **settings)
    return rlflow.optimise(model, method="greedy", shortlist=0, cost_model=cost_model, gate=gate)


def rewritten(layers: int, seed: int = 0, steps: int = 8) -> tuple[Graph, Graph]:
    """A narrow BERT, and what random rewrites make of it."""
    before = from_onnx(zoo.build("bert", layers=layers, **NARROW))
    return before, walk(before, REWRITER, np.random.default_rng(seed), steps)


def changes(before: Graph, after: Graph) -> str:
    """The page of two graphs."""
    content = changes_content({MAIN: before}, {MAIN: after}, AnalyticCost(), ["a.onnx", "b.onnx"])
    return page("a.onnx → b.onnx", content)


def content_of(text: str) -> Mapping[str, Any]:
    """What a page says, as its script reads it."""
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))  # type: ignore[no-any-return]


def main() -> None:
    """Take the picture of the report of a narrow BERT, where its first layers stand."""
    from support.browser import browser_page  # a browser is for who takes pictures

    with TemporaryDirectory() as folder, browser_page() as shown:
        path = Path(folder, "report.html")
        path.write_text(page("bert.onnx", optimisation_content(optimised("bert", layers=4, **NARROW))))
        shown.set_viewport_size({"width": 1400, "height": 820})
        shown.goto(path.as_uri())
        shown.locator("#graph").screenshot(path=REPOSITORY / "docs/images/report.png")


if __name__ == "__main__":
    main()
