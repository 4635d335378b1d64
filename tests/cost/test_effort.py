"""Efforts add up, and are published under the names of the schemas."""

from functools import reduce
from operator import add

import pytest
from experiment.documents.evaluate import Result

from rlflow.cost.effort import Effort
from rlflow.schemas.forms import Form
from rlflow.schemas.optimise import OptimiseReport
from rlflow.schemas.optimise_parts import Subgraph


def test_efforts_add_up_figure_by_figure():
    parts = [Effort(1, 2, 3, 0.5, 0.25, 0.125), Effort(10, 20, 30, 4.0, 2.0, 1.0), Effort()]
    assert reduce(add, parts) == Effort(11, 22, 33, 4.5, 2.25, 1.125)


def test_an_effort_is_read_as_it_was_published():
    """Every figure is different, so that none can stand for another."""
    effort = Effort(1, 2, 3, 0.5, 0.25, 0.125)
    assert Effort.from_json(effort.to_json()) == effort
    assert effort.to_json()["real_interactions"] == 1


def test_an_effort_without_a_figure_is_refused():
    content = Effort().to_json()
    del content["prices_measured"]
    with pytest.raises(KeyError, match="prices_measured"):
        Effort.from_json(content)


@pytest.mark.parametrize("document", [Result, OptimiseReport, Subgraph])
def test_documents_have_its_figures(document):
    assert Effort().to_json().keys() <= Form.of(document).children.keys()
