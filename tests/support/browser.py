"""A headless Chromium, Debian's, which looks at pages as people do; and MLflow's user interface for it to look at.

`PYTHONPATH=tests python -m support.browser` looks at the runs of this checkout, and leaves screenshots in docs/images.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import vl_convert
from mlflow import MlflowClient
from playwright.sync_api import Page, sync_playwright
from tracking.store import open_store
from tracking.ui import runs_address, show_columns

from support.repository import REPOSITORY
from support.servers import free_port, wait_until_healthy

_WINDOW = {"width": 1600, "height": 1000}
_LONGEST_MS = 60_000
_DRAWING_MS = 5_000  # MLflow's pages never stop asking the server, so that nothing tells when they are drawn


def chromium() -> str | None:
    """The program; None if it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser_page() -> Iterator[Page]:
    """Open an empty page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            page = browser.new_page(viewport=_WINDOW)
            page.set_default_timeout(_LONGEST_MS)
            yield page
        finally:
            browser.close()


@contextmanager
def user_interface(database: str) -> Iterator[str]:
    """Run MLflow's user interface on a store; yields its address."""
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", database, "--workers", "1"]
    server = subprocess.Popen([*command, "--port", str(port)])
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}/health", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def runs_table(page: Page, address: str, experiment: str, name: str) -> None:
    """Show the table of an experiment's runs as `make ui` does, one of which has that name."""
    page.goto(f"{address}/#/{runs_address(experiment).partition('/#/')[2]}")
    page.get_by_text(name).first.wait_for()


def run_page(page: Page, address: str, experiment: str, run: str, text: str) -> None:
    """Show the page of a run, on which a text stands."""
    page.goto(f"{address}/#/experiments/{experiment}/runs/{run}")
    page.get_by_text(text).first.wait_for()


def comparison(page: Page, address: str, experiment: str, runs: list[str]) -> None:
    """Show runs beside each other, with the lines through their parameters and metrics."""
    query = f"runs={quote(json.dumps(runs))}&experiments={quote(json.dumps([experiment]))}"
    page.goto(f"{address}/#/compare-runs?{query}")
    page.get_by_text("Parallel Coordinates Plot").first.wait_for()


def plots_page(page: Page, plots: Path) -> int:
    """Show what `dvc plots show` wrote, with Vega's libraries from their package instead of the network.

    Returns the number of plots that were drawn.
    """
    bundle = vl_convert.javascript_bundle()
    page.route("**/npm/vega@*", lambda route: route.fulfill(body=bundle, content_type="text/javascript"))
    page.route("**/npm/vega-*", lambda route: route.fulfill(body="", content_type="text/javascript"))
    page.goto(plots.as_uri())
    page.wait_for_load_state("networkidle")
    drawn = page.locator(".vega-embed canvas, .vega-embed svg.marks, img")
    drawn.last.wait_for()
    return drawn.count()


def main() -> None:
    """Take the pictures of the last run, of the last sweep, and of the table of both."""
    images = REPOSITORY / "docs/images"
    images.mkdir(exist_ok=True)
    store = open_store()
    show_columns(store)
    experiment, client = store.experiment_id, MlflowClient(store.uri)
    runs = client.search_runs([experiment], max_results=500)
    children: dict[str, list[str]] = {}
    for run in runs:
        children.setdefault(run.data.tags.get("mlflow.parentRunId", ""), []).append(run.info.run_id)
    described = next(run for run in runs if "mlflow.note.content" in run.data.tags)
    sweep = max((found for parent, found in children.items() if parent), key=len)
    with user_interface(store.uri) as address, browser_page() as page:
        runs_table(page, address, experiment, runs[0].info.run_name)
        _taken(page, images / "runs.png")
        run_page(page, address, experiment, described.info.run_id, described.info.run_name)
        _taken(page, images / "run.png")
        comparison(page, address, experiment, sweep[:8])
        _taken(page, images / "comparison.png")


def _taken(page: Page, picture: Path) -> None:
    page.wait_for_timeout(_DRAWING_MS)
    page.screenshot(path=picture)


if __name__ == "__main__":
    main()
