"""A search of your own: take the first rewrite that helps, until none does.

Give the class to `rlflow.optimise`, as below; or let your package announce it in its pyproject.toml, so that
`rlflow optimise --method first-improvement` knows it:

    [project.entry-points."rlflow.methods"]
    first-improvement = "own_method:FirstImprovement"

In RLFlow itself it is a module in `search/`, a line in `optimise/methods.py` and a test in `tests/search/`; to compare
it with the others, `conf/search/NAME.yaml` and a line in `conf/evaluation/default.yaml`.
"""

from dataclasses import dataclass

import rlflow
from rlflow import zoo
from rlflow.method import OnProgress, State, Workspace
from rlflow.search.base import Search


@dataclass(frozen=True)
class FirstImprovement(Search):
    """`Search` brings the library, the rewriter and the cost model; the workspace counts time and prices."""

    least_gain: float = 1e-9
    name: str = "first-improvement"

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        while not work.is_spent:
            enough = state.runtime_ms * (1 - self.least_gain)
            better = next((option for option in work.options(state) if option.runtime_ms < enough), None)
            if better is None:
                break
            state = work.take(state, better)
        return state


if __name__ == "__main__":
    optimised = rlflow.optimise(
        zoo.build("tiny_chain"), method=FirstImprovement, options={"least_gain": 0.01}, cost_model="analytic"
    )
    print(optimised.report.summary())
