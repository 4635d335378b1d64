"""The method "rlflow": what was learned beforehand guides the search.

Without options that is the policy that ships with the library, which acts on any graph, by any rules and prices. Other
policies come from their folders: those of `make study NAME=policy` and `rlflow train`, and those of `dvc repro` for the
graphs that it trains on, which alone want PyTorch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlflow.agents.match_level import guide
from rlflow.agents.match_level.guide import Guide
from rlflow.cost.base import CostModel
from rlflow.extras import needs
from rlflow.method import Method
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.factory import make_search


def trained_policy(
    library: Library,
    rewriter: Rewriter,
    cost_model: CostModel,
    *,
    folder: Path | str | None = None,
    trained_on: str | None = None,
    **options: Any,
) -> Method:
    """Make the method of the policy in `folder`; None: of the one that ships, unless `trained_on` names a graph.

    The other options are those of `Guide.search`, or of `experiment_policy` where `folder` is that of `dvc
    repro`. `InputError` for a policy or an option that there is not.
    """
    parts = (library, rewriter, cost_model)
    if folder is None and trained_on is None:
        return make_search(guide.shipped().search, parts, options, "the method rlflow")
    place = Path("data" if folder is None else folder)
    if trained_on is None and (place / guide.FILE).exists():
        return make_search(Guide.load(place).search, parts, options, f"the policy in {place}")
    with needs("learn", f"a policy of `dvc repro`, such as those of {place},"):
        from rlflow.agents.experiment_policy import experiment_policy

    named = {"folder": place, "trained_on": trained_on, **options}
    return make_search(experiment_policy, parts, named, f"the policy in {place}")
