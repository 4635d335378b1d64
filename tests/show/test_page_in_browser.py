"""The page as people see it: headless Chromium, at a desk's width and at a phone's, without a network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import browser_page, chromium
from support.pages import NARROW, changes, optimised, rewritten

from rlflow.optimise.report_page import optimisation_content
from rlflow.rules.library import load
from rlflow.show.page import RULES
from rlflow.show.page import page as page_text
from rlflow.show.rule_boxes import condition
from rlflow.show.rules_page import rules_content

pytestmark = [
    pytest.mark.slow,  # a browser is started
    pytest.mark.skipif(chromium() is None, reason="Chromium is not installed: make services"),
]

_DESK, _PHONE = {"width": 1400, "height": 1000}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of an optimisation of a narrow BERT of four layers."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page_text("bert.onnx", optimisation_content(optimised("bert", layers=4, **NARROW))))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with browser_page() as opened:
        yield opened


@pytest.fixture
def opened(browser, report):
    """The report in a fresh page of the browser, offline. No script may fail, and no request may leave the page."""
    context = browser.context.browser.new_context(viewport=_DESK, offline=True)
    shown, asked, failed = context.new_page(), [], []
    shown.set_default_timeout(10_000)
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("pageerror", lambda error: failed.append(str(error)))
    shown.on("console", lambda message: failed.append(message.text) if message.type == "error" else None)
    shown.goto(report.as_uri())
    yield shown
    assert [url for url in asked if not url.startswith(report.as_uri())] == []
    assert failed == []
    context.close()


def test_what_saved_most_comes_first(opened) -> None:
    """In its heading, before the graph, with the rule's picture."""
    titles = opened.locator("section > h2").all_inner_texts()
    assert titles[:2] == ["What saved most", "Before and after"]
    first = opened.locator(".saved > li").first
    name = first.locator("b").first.inner_text()
    assert f": {name}, saves " in opened.locator("#saved > p").first.inner_text()
    assert first.locator("svg.picture").count() == 2
    assert first.locator("svg text", has_text="output").count() >= 2


def test_both_graphs_stand_side_by_side_and_aligned(opened) -> None:
    """What both have is at one height, to a pixel, and left of its twin; dearer layers are of another colour."""
    opened.get_by_label("fold what is the same").uncheck()
    inputs = [
        opened.locator(f'.block.value[data-side="{side}"]', has_text="input_ids").bounding_box()
        for side in ("before", "after")
    ]
    assert inputs[0]["y"] == pytest.approx(inputs[1]["y"], abs=1.0)
    assert inputs[0]["x"] + inputs[0]["width"] < inputs[1]["x"]
    heights = {}
    for side in ("before", "after"):
        same = opened.locator(f'.block.operator[data-side="{side}"]')
        heights[side] = sorted(round(box["y"]) for box in (each.bounding_box() for each in same.all()))
    assert heights["before"] == heights["after"]
    assert heights["before"]
    assert opened.locator(".block.removed").count() > 0
    assert opened.locator(".block.added").count() > 0
    shades = opened.evaluate(
        "[...document.querySelectorAll('.block')].map((block) => getComputedStyle(block).backgroundColor)"
    )
    assert len(set(shades)) > 3


def test_a_layer_opens_and_shuts(opened) -> None:
    """Inside are a picture and as many lines as operators, with their names; below it things move down."""
    block = opened.locator(".block.removed").first
    head = block.locator("button").first
    before = opened.locator(".board").bounding_box()["height"]
    head.click()
    assert head.get_attribute("aria-expanded") == "true"
    assert block.locator(".inside svg.picture").count() == 1
    assert block.locator(".inside li").count() >= 1
    assert "bert/" in block.locator(".inside li").first.inner_text()
    assert opened.locator(".board").bounding_box()["height"] > before
    head.click()
    assert block.locator(".inside").count() == 0


def test_search_finds_what_is_folded_too(opened) -> None:
    """By operator and by name; the find is brought into sight, opened and marked, and the rest stands back."""
    search = opened.get_by_role("searchbox")
    search.fill("layer_3/attention/context")
    search.press("Enter")
    assert opened.get_by_role("status").inner_text().startswith("1 of ")
    marked = opened.locator(".block.hit.open")
    assert marked.count() == 1
    assert "layer_3" in marked.locator("li.hit").first.inner_text()
    pane, box = opened.locator(".pane").bounding_box(), marked.bounding_box()
    assert pane["y"] <= box["y"] < pane["y"] + pane["height"]
    search.fill("softmax")
    assert opened.get_by_role("status").inner_text() == "8 layers", "four in each graph"
    search.fill("nowhere")
    assert opened.get_by_role("status").inner_text() == "0 layers"


def test_a_step_leads_to_its_place_and_a_place_to_its_steps(opened) -> None:
    first = opened.locator(".steps > details").first
    first.locator("button", has_text="show").click()
    targets = opened.locator(".block.target")
    assert targets.count() > 0
    assert targets.first.get_attribute("class").split()[1] in ("removed", "added")
    place = opened.locator(".block.removed.target").first
    place.locator("button").first.click()
    place.locator(".links button").first.click()
    assert opened.locator(".steps > details[open] svg.picture").count() >= 2


def test_changes_are_walked_and_the_graph_zooms(opened) -> None:
    opened.get_by_role("button", name="next change").click()
    assert opened.get_by_role("status").inner_text().startswith("change 1 of ")
    width = opened.locator(".block").first.bounding_box()["width"]
    opened.get_by_role("button", name="zoom in").click()
    assert opened.locator(".block").first.bounding_box()["width"] > width
    for _ in range(8):
        opened.get_by_role("button", name="zoom out").click()
    assert opened.locator(".block").first.bounding_box()["width"] < width


def test_equal_layers_fold_and_unfold(opened) -> None:
    fold = opened.locator(".fold").first
    shown = opened.locator(".block").count()
    assert "the same" in fold.inner_text()
    fold.click()
    assert opened.locator(".block").count() > shown


def test_checks_refusals_and_the_way_to_do_it_again_are_there(opened, tmp_path) -> None:
    text = opened.locator("main").inner_text()
    for wanted in (
        "Tolerance",
        "times as fast",
        "Method greedy",
        "rlflow replay MODEL.trajectory.jsonl MODEL",
        "MatMul",
    ):
        assert wanted in text
    with opened.expect_download() as download:
        opened.get_by_role("button", name="save ").click()
    download.value.save_as(tmp_path / "steps.jsonl")
    assert (tmp_path / "steps.jsonl").read_text().startswith('{"start_hash"')


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(opened, scheme: str) -> None:
    """Nothing is wider than the screen, also where a layer and a step are open; text stands out against its ground."""
    opened.set_viewport_size(_PHONE)
    opened.emulate_media(color_scheme=scheme)
    opened.locator(".block.removed button").first.click()
    opened.locator(".steps summary").first.click()
    assert opened.evaluate("document.documentElement.scrollWidth") <= _PHONE["width"]
    title = opened.locator(".saved b").first.bounding_box()
    assert title["height"] < 80, "a name is not broken into letters"
    assert opened.locator("td").first.bounding_box()["height"] < 80
    dark = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in dark[4:-1].split(",")) < 200) == (scheme == "dark")


def test_a_deep_graph_is_drawn(browser, tmp_path) -> None:
    """Sixty layers of BERT, 2,000 operators, all unfolded."""
    path = tmp_path / "deep.html"
    path.write_text(changes(*rewritten(60)))
    shown = browser.context.browser.new_page()
    shown.goto(path.as_uri())
    shown.get_by_label("fold what is the same").uncheck()
    assert shown.locator(".block").count() > 1500
    shown.close()


def test_rules_are_searched_and_one_is_opened_by_its_address(browser, tmp_path) -> None:
    """All words have to be there; a family without a find goes; a rule is drawn when it is opened, and not before."""
    path, rules = tmp_path / "rules.html", load().rules
    path.write_text(page_text("Substitution rules", rules_content(load()), RULES))
    context = browser.context.browser.new_context(viewport=_PHONE, offline=True)
    shown, wanted = context.new_page(), rules[len(rules) // 2]
    shown.goto(f"{path.as_uri()}#{wanted.id}")
    status = shown.get_by_role("status")
    assert status.inner_text() == f"{len(rules)} rules"
    assert shown.locator("details[open]").count() == 1
    assert shown.locator("details[open] summary b").inner_text() == wanted.name
    assert shown.locator("svg.picture").count() == 2
    assert shown.evaluate("document.documentElement.scrollWidth") <= _PHONE["width"]
    shown.get_by_role("searchbox").fill("merge MATMUL")
    texts = [" ".join((rule.id, rule.name, rule.equation(), condition(rule))).lower() for rule in rules]
    found = [rule for rule, text in zip(rules, texts, strict=True) if "merge" in text and "matmul" in text]
    assert 0 < len(found) < len(rules)
    assert status.inner_text() == f"{len(found)} rules"
    assert shown.locator("details:visible").count() == len(found)
    assert shown.locator("section:visible").count() == len({rule.family for rule in found})
    context.close()
