"""A verdict says in which setting models were compared, and how far the original is from itself."""

import math
from dataclasses import replace

import pytest

from rlflow.equivalence.report import EquivalenceReport

ONE = EquivalenceReport(True, "", 1e-7, 2e-7, 1e-6, draws=3, non_vacuous_draws=3)
BOTH = replace(
    ONE, max_relative_error=5e-7, by_setting={"as_written": ONE, "deployed": replace(ONE, max_relative_error=5e-7)}
)


def test_both_errors_are_told() -> None:
    assert BOTH.summary == (
        "equivalent: largest relative error 2.0e-07 as written, 5.0e-07 as deployed, tolerance 1.0e-06 "
        "(3 of 3 draws informative)"
    )
    assert ONE.summary.startswith("equivalent: largest relative error 2.0e-07, tolerance")


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (2e-2, "the original itself differs by 2.0e-02 between as written and as deployed"),
        (
            math.inf,
            "the original itself differs in NaN, infinities or whole numbers between as written and as deployed",
        ),
        (1e-6, ""),
    ],
)
@pytest.mark.parametrize("equivalent", [True, False])
def test_an_original_that_differs_from_itself_is_told_of(own: float, told: str, equivalent: bool) -> None:
    report = replace(BOTH, own_error=own, equivalent=equivalent, reason="" if equivalent else "output 'y' differs")
    assert report.differs_by_setting == bool(told)
    assert told in report.summary
    assert ("itself" in report.summary) == bool(told)


def test_infinite_errors_are_null_in_json() -> None:
    report = replace(BOTH, max_relative_error=math.inf, own_error=math.inf)
    assert report.errors_json() == {
        "max_absolute_error": 1e-7,
        "max_relative_error": None,
        "own_error": None,
        "by_setting": {
            "as_written": {"max_absolute_error": 1e-7, "max_relative_error": 2e-7},
            "deployed": {"max_absolute_error": 1e-7, "max_relative_error": 5e-7},
        },
    }
