"""MLflow's pages and DVC's plots as a browser shows them: headless Chromium, on a real store."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.browser import browser_page, chromium, comparison, plots_page, run_page, runs_table, user_interface
from tracking.run import open_run
from tracking.store import SWEPT_TAG, Store, open_store
from tracking.ui import show_columns

pytestmark = [
    pytest.mark.study,  # a server and a browser are started
    pytest.mark.skipif(chromium() is None, reason="Chromium is not installed: make services"),
]


@pytest.fixture
def store(store_root: Path) -> Store:
    return open_store(store_root)


@pytest.fixture
def sweep(store: Store, tmp_path: Path) -> tuple[str, list[str]]:
    """A parent and its two jobs, as `--multirun` makes them; a third one failed."""
    picture = tmp_path / "curves.txt"
    picture.write_text("the curves of the training")
    tags = {SWEPT_TAG: "learning_rate"}
    with open_run(store, "train_controller by learning_rate", parameters={}, tags=tags) as parent:
        parent.describe("What a sweep of the learning rate found.")
        jobs = []
        for rate in (0.001, 0.01):
            name, parameters = f"learning_rate={rate}", {"graph": "bert", "learning_rate": rate}
            with open_run(store, name, parameters=parameters, tags={}, parent_id=parent.run_id) as job:
                for step in range(20):
                    job.log(step, {"bert/return_percent": rate * step})
                job.head({"saved_percent": 123 * rate, "speedup": 1.25})
                job.artifact(picture)
                jobs.append(job.run_id)
        with (
            suppress(ValueError),
            open_run(store, "learning_rate=hot", parameters={}, tags={}, parent_id=parent.run_id),
        ):
            raise ValueError("hot")
    return parent.run_id, jobs


def test_the_table_a_run_and_a_sweep_are_to_be_seen(store: Store, sweep: tuple[str, list[str]], tmp_path: Path):
    """With the names, the columns, the curves and the files that people look for, and no error in the console."""
    parent, jobs = sweep
    errors: list[str] = []
    show_columns(store)
    with user_interface(store.uri) as address, browser_page() as page:
        page.on("pageerror", lambda error: errors.append(str(error)))
        runs_table(page, address, store.experiment_id, "train_controller by learning_rate")
        table = page.inner_text("body")
        runs_table(page, address, store.aside_id, "learning_rate=hot")
        run_page(page, address, store.experiment_id, parent, "What a sweep of the learning rate found.")
        run_page(page, address, store.experiment_id, jobs[0], "saved_percent")
        run_page(page, address, store.experiment_id, f"{jobs[0]}/model-metrics", "bert/return_percent")
        run_page(page, address, store.experiment_id, f"{jobs[0]}/artifacts", "curves.txt")
        comparison(page, address, store.experiment_id, jobs)
        shown = page.inner_text("body")
    assert [word for word in ("saved_percent", "speedup", "graph", "3 matching runs") if word not in table] == []
    assert [word for word in ("learning_rate=0.001", "learning_rate=0.01", "1.23", "1.25") if word not in shown] == []
    assert errors == []


def test_plots_are_drawn(repository: Path, tmp_path: Path, command: Callable[..., Any]):
    """Those that dvc.yaml declares, of the committed figures, and no script fails."""
    command("dvc", "plots", "show", "-o", str(tmp_path / "plots"), cwd=repository)
    errors: list[str] = []
    with browser_page() as page:
        page.on("pageerror", lambda error: errors.append(str(error)))
        assert plots_page(page, tmp_path / "plots/index.html") >= 6
    assert errors == []
