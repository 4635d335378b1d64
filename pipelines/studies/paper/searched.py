"""A search on one graph: greedy, TASO's, equality saturation, random. The rows of methods that learn nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlflow.method import Budget
from rlflow.rules import library
from studies.paper.rows import Row, method_row
from studies.search_task import SearchTask, carried_out
from studies.subject import Subject


@dataclass(frozen=True)
class SearchCell:
    """A search by its name (`rlflow.optimise.methods`) and the name that it has in the tables."""

    subject: Subject
    variant: str
    method: str
    options: Mapping[str, Any]
    budget: Budget

    def run(self) -> dict[str, Row]:
        finding = carried_out(SearchTask(self.subject, self.method, self.options, self.budget))
        return {self.variant: method_row(finding.graph, finding.result, self.subject.prices(), library.load())}
