"""MLflow's pages and DVC's plots as a browser shows them: headless Chromium, on a real store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.browser import browser_page, chromium, comparison, plots_page, run_page, runs_table, user_interface
from tracking.run import open_run
from tracking.store import Store, open_store

pytestmark = [
    pytest.mark.study,  # a server and a browser are started
    pytest.mark.skipif(chromium() is None, reason="Chromium is not installed: make services"),
]


@pytest.fixture
def store(store_root: Path) -> Store:
    return open_store(store_root)


@pytest.fixture
def sweep(store: Store) -> tuple[str, list[str]]:
    """A parent and its two jobs, as `--multirun` makes them."""
    with open_run(store, "train_controller", parameters={}, tags={}) as parent:
        parent.describe("What a sweep of the learning rate found.")
        jobs = []
        for rate in (0.001, 0.01):
            name, parameters = f"learning_rate={rate}", {"learning_rate": rate}
            with open_run(store, name, parameters=parameters, tags={}, parent_id=parent.run_id) as job:
                job.log(0, {"real_score_percent": 100 * rate})
                jobs.append(job.run_id)
    return parent.run_id, jobs


def test_the_table_a_run_and_a_sweep_are_to_be_seen(store: Store, sweep: tuple[str, list[str]], tmp_path: Path):
    """With the names, the description and the figures that people look for, and no error in the console."""
    parent, jobs = sweep
    errors: list[str] = []
    with user_interface(store.uri) as address, browser_page() as page:
        page.on("pageerror", lambda error: errors.append(str(error)))
        runs_table(page, address, store.experiment_id, "train_controller")
        run_page(page, address, store.experiment_id, parent, "What a sweep of the learning rate found.")
        run_page(page, address, store.experiment_id, jobs[0], "real_score_percent")
        comparison(page, address, store.experiment_id, jobs)
        shown = page.inner_text("body")
    assert "learning_rate=0.001" in shown
    assert "learning_rate=0.01" in shown
    assert errors == []


def test_plots_are_drawn(repository: Path, tmp_path: Path, command: Callable[..., Any]):
    """Those that dvc.yaml declares, of the committed figures, and no script fails."""
    command("dvc", "plots", "show", "-o", str(tmp_path / "plots"), cwd=repository)
    errors: list[str] = []
    with browser_page() as page:
        page.on("pageerror", lambda error: errors.append(str(error)))
        assert plots_page(page, tmp_path / "plots/index.html") >= 6
    assert errors == []
