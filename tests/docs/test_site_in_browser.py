"""The site as people see it: headless Chromium, at a desk's width and at a phone's, from a server of its own folder."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from support.browser import browser_page, chromium

from rlflow.rules.library import load

pytestmark = [
    pytest.mark.slow,  # a browser is started
    pytest.mark.skipif(chromium() is None, reason="Chromium is not installed: make services"),
]

_WIDTHS = {"desk": {"width": 1400, "height": 1000}, "phone": {"width": 390, "height": 844}}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: what is missing is found by the page that asks for it."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_page() as page:
        assert page.context.browser is not None
        yield page.context.browser


@pytest.fixture(params=_WIDTHS)
def opened(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    """A page of the browser. No script may fail, nothing may be missing, and no request may leave the site."""
    context = browser.new_context(viewport=_WIDTHS[request.param], base_url=address)
    page, asked, failed = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.on("console", lambda message: failed.append(message.text) if message.type == "error" else None)
    page.on("response", lambda answer: failed.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None)
    yield page
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert failed == []
    context.close()


def test_every_page_fits_and_shows_its_pictures(opened: Page, site: Path) -> None:
    """Nobody scrolls sideways: tables and code that are wider scroll by themselves."""
    pages = sorted(path.relative_to(site) for path in site.rglob("*.html") if path.name != "404.html")
    assert len(pages) > 20
    for path in pages:
        opened.goto(f"/{path}")
        assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
        if path.name != "all_rules.html":
            assert opened.locator("h1").first.inner_text().strip(), path
        opened.evaluate("document.querySelectorAll('img').forEach(each => each.loading = 'eager')")
        opened.wait_for_function("[...document.images].every(each => each.complete && each.naturalWidth > 0)")


def test_a_rule_is_found_in_the_gallery(opened: Page) -> None:
    """By its name, as each of the library."""
    opened.goto("/reference/all_rules.html")
    shown = " ".join(opened.locator("body").inner_text().split())
    assert [rule.name for rule in load().rules if " ".join(rule.name.split()) not in shown] == []


def test_the_search_leads_to_a_page(opened: Page) -> None:
    opened.goto("/")
    if opened.locator("label[for=__search].md-header__button").is_visible():
        opened.locator("label[for=__search].md-header__button").click()
    opened.locator("input.md-search__input").fill("temperature")
    first = opened.locator("a.md-search-result__link").first
    first.wait_for()
    first.click()
    opened.wait_for_url("**h=temperature**")
    assert opened.locator("h1").count() >= 1
