"""The trial of the policy: rows become one document, without graphs on which a search is missing."""

from studies.policy.documents import DOCUMENTS
from studies.policy.trial import GREEDY, PORTFOLIO, RLFLOW, WITHOUT, Key, summary

from rlflow.schemas import plain, validate


def rows(graph: str) -> dict[Key, float]:
    """Two numbers of rewrites, of which the greater lets both searches find more."""
    searches = {
        ("gpu", graph, method, rewrites): found + int(rewrites) / 100
        for rewrites in ("200", "500")
        for method, found in ((RLFLOW, 2.0), (WITHOUT, 1.0))
    }
    return {("gpu", graph, GREEDY, ""): 1.0, ("gpu", graph, PORTFOLIO, ""): 5.0, **searches}


def test_rows_become_a_document():
    found = rows("bert") | rows("vit")
    del found["gpu", "vit", WITHOUT, "500"]
    document = plain(summary(found))
    validate(DOCUMENTS["policy/trial.json"], document)
    assert document == {
        "gpu": {
            "bert": {
                "greedy_percent": 1.0,
                "portfolio_percent": 5.0,
                "searches": [
                    {"rewrites": 200, "rlflow_percent": 4.0, "without_controller_percent": 3.0},
                    {"rewrites": 500, "rlflow_percent": 7.0, "without_controller_percent": 6.0},
                ],
            }
        }
    }
