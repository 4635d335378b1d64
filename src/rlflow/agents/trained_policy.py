"""The method "rlflow": what was learned beforehand guides the search.

Without options that is the policy that ships with the library, which acts on any graph, by any rules and prices. Other
policies come from their folders: those of `make study NAME=policy`, of `rlflow train`, and those that `dvc repro`
trains, one for each of its graphs. Only the paper's formulation, one vector for a graph, wants PyTorch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlflow.agents.match_level import guide
from rlflow.agents.match_level.guide import Guide
from rlflow.cost.base import CostModel
from rlflow.errors import InputError
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

    A folder of `dvc repro` has `policies` by the graph of their training: `trained_on` names it, None is the first. The
    other options are those of `Guide.search`, or of `graph_level_policy`. `InputError` for a policy or an option that
    there is not.
    """
    parts = (library, rewriter, cost_model)
    if folder is None and trained_on is None:
        return make_search(guide.shipped().search, parts, options, "the method rlflow")
    place = Path("data" if folder is None else folder)
    if trained_on is not None or not (place / guide.FILE).exists():
        place = _of_experiment(place, trained_on)
    if (place / guide.FILE).exists():
        return make_search(Guide.load(place).search, parts, options, f"the policy in {place}")
    with needs("learn", f"the policy in {place}"):
        from rlflow.agents.graph_level.graph_level_policy import graph_level_policy

    return make_search(graph_level_policy, parts, {"folder": place, **options}, f"the policy in {place}")


def _of_experiment(folder: Path, trained_on: str | None) -> Path:
    """Return the folder of a policy that `dvc repro` has trained. `InputError` if there is none of that graph."""
    trained = sorted(path.name for path in folder.glob("policies/*/"))
    if not trained:
        raise InputError(
            f"no trained policy in {folder}: train one with `dvc repro`, name its folder with --policy, or choose "
            "--method backtracking"
        )
    if trained_on not in (None, *trained):
        raise InputError(f"no policy in {folder} was trained on {trained_on}: choose from {', '.join(trained)}")
    return folder / "policies" / (trained_on or trained[0])
