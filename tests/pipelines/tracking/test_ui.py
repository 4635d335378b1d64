"""The user interface opens on the runs."""

from tracking.ui import runs_address


def test_the_address_is_the_page_of_the_runs() -> None:
    assert runs_address("7", 5001) == "http://127.0.0.1:5001/#/experiments/7/runs"
