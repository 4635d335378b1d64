"""The file of a page: what it holds, that it is small, and that no name of a model becomes markup."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from immutables import Map
from support.pages import NARROW, changes, content_of, optimised, rewritten

from rlflow import schemas
from rlflow.ir import Ref
from rlflow.ir.structural_hash import structural_hash
from rlflow.optimise.report_page import optimisation_content
from rlflow.rules.library import load
from rlflow.show.page import RULES, page
from rlflow.show.rules_page import rules_content
from rlflow.show.side_by_side import side_by_side

_HOSTILE = "</script><script>alert('caught')</script><img src=x onerror=alert(1)>&amp;"
_MOST_BYTES = 2_000_000


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def elements(text: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Elements()
    parser.feed(text)
    return parser.tags


def test_names_never_become_markup() -> None:
    """The file has the same elements whatever its names hold, and the script reads the names as they are."""
    before, after = rewritten(1)
    graphs = []
    for graph in (before, after):
        first = graph.order[0]
        named = graph.nodes[first].with_names((_HOSTILE,))
        graphs.append(replace(graph, nodes=graph.nodes.set(first, replace(named, label=_HOSTILE))))
    plain, hostile = changes(before, after), changes(*graphs)
    assert elements(hostile) == elements(plain)
    told = content_of(hostile)["graphs"][0]["sides"][0]
    assert any(node.get("name") == _HOSTILE for block in told for node in block.get("nodes", ()))
    assert elements(page(_HOSTILE, content_of(plain) | {})) == elements(plain)


def test_nothing_is_fetched_and_no_other_script_may_run() -> None:
    text = changes(*rewritten(1))
    assert [attributes for _, attributes in elements(text) if {"src", "href"} & attributes.keys()] == []
    policy = next(attributes["content"] for tag, attributes in elements(text) if "http-equiv" in attributes)
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='$", policy)
    assert "@import" not in text
    assert "url(" not in text


@pytest.mark.parametrize("layers", [12, pytest.param(60, marks=pytest.mark.slow)])
def test_it_is_small(layers: int) -> None:
    """Twelve layers are the graph of BERT-Base, of which the page holds no weight; sixty have 2,000 operators."""
    before, after = rewritten(layers)
    assert len(before.order) > 33 * layers
    text = changes(before, after)
    assert len(text.encode()) < _MOST_BYTES
    told = content_of(text)["graphs"][0]["sides"]
    assert [sum(len(block.get("nodes", ())) for block in side) for side in told] == [
        len(before.order),
        len(after.order),
    ]


def test_an_optimisation_tells_what_saved_most() -> None:
    """Rules in the order of what their steps saved together, which is what the graph's price fell by; every step has a
    place before, and each place of the last graph is of blocks that only it has.
    """
    done = optimised("bert", layers=2, **NARROW)
    told = optimisation_content(done, ["rlflow", "optimise", "a model.onnx"])
    report = done.report
    saved = [entry["saved"] for entry in told["saved"]]
    assert saved == sorted(saved, reverse=True)
    assert sum(saved) == pytest.approx(report.cost_before_ms - report.cost_after_ms, abs=1e-4)
    assert len(told["steps"]) == len(report.steps) > 3
    library = load()
    assert {library.get(rule).name for rule in told["rules"]} == {rule["name"] for rule in told["rules"].values()}
    after = told["graphs"][0]["sides"][1]
    for step in told["steps"]:
        assert step["before"]
        assert all(after[block]["kind"] == "added" for block in step["after"])
    assert sum(block.get("ms", 0.0) for block in after) == pytest.approx(report.cost_after_ms, abs=1e-4)
    assert told["replay"]["commands"][0][1] == "rlflow optimise 'a model.onnx'"
    assert done.result.trajectory.from_json(told["replay"]["file"]["text"]) == done.result.trajectory
    assert schemas.plain(told) == told, "it is JSON through and through"


def test_the_way_to_the_last_graph_makes_no_difference() -> None:
    """A race numbers the nodes of its graphs otherwise than the steps do: the page is the same to the last place."""
    done = optimised("bert", layers=2, **NARROW)
    best = done.result.best
    gap = best.next_id
    moved = {i: i if i in best.inputs else i + gap for i in best.nodes}

    def there(ref: Ref | None) -> Ref | None:
        return ref and Ref(moved[ref.node], ref.index)

    other = replace(
        best,
        nodes=Map({moved[i]: replace(node, inputs=tuple(map(there, node.inputs))) for i, node in best.nodes.items()}),
        outputs=tuple(Ref(moved[ref.node], ref.index) for ref in best.outputs),
        consumers=Map({moved[i]: tuple(moved[reader] for reader in found) for i, found in best.consumers.items()}),
        next_id=2 * gap,
        edit=None,
    )
    assert structural_hash(other) == structural_hash(best)
    rewriting = replace(done.rewriting, searched=(done.rewriting.searched[0], other))
    again = replace(done, result=replace(done.result, best=other))
    for way in (again, replace(again, rewriting=rewriting), replace(done, rewriting=rewriting)):
        assert optimisation_content(way) == optimisation_content(done)


def test_a_loop_has_a_page_of_its_body() -> None:
    """With its own step, or the reason why it is left as it is, where timing finds it to be slower."""
    told = optimisation_content(optimised("loop"))
    assert [graph["title"] for graph in told["graphs"]] == ["main graph", "the body of loop/Loop"]
    assert {block["title"] for block in told["graphs"][1]["sides"][0]} >= {"state"}
    has_step = any(step["graph"] == 1 for step in told["steps"])
    assert has_step != any("the body of loop/Loop" in title for title, _ in told["tried"])


def test_a_library_is_one_small_page_that_shows_each_rule() -> None:
    """With both sides drawn, and what its certificate assumes in words."""
    library = load()
    text = page("Rules", rules_content(library), RULES)
    assert len(text.encode()) < _MOST_BYTES
    shown = content_of(text)["rules"]
    assert list(shown) == [rule.id for rule in library.rules]
    for rule in library.rules:
        assert list(shown[rule.id]["panels"]) == ["replace", "by"]
        assert sum("It assumes" in note for note in shown[rule.id]["notes"]) == len(rule.assumes)
        assert shown[rule.id]["notes"][0].endswith(f"{', '.join(sorted(rule.element_types))}.")


def test_measured_prices_are_said_to_be() -> None:
    """Every layer of both graphs has one, since the search went by them."""
    told = optimisation_content(optimised("tiny_chain", "measured"))
    assert told["prices"] == "measured on this machine, part by part"
    blocks = [block for side in told["graphs"][0]["sides"] for block in side if block["kind"] != "value"]
    assert all(block["ms"] > 0 for block in blocks)
    assert optimisation_content(optimised("tiny_chain"))["prices"] == "by the cost model analytic, not measured"


def test_operators_add_up() -> None:
    """Prices of layers are divided among their operators without rest."""
    before, after = rewritten(1)
    told = content_of(changes(before, after))
    laid = side_by_side(before, after)
    assert laid.after is not None
    for side, blocks in enumerate(told["graphs"][0]["sides"]):
        whole = sum(block.get("ms", 0.0) for block in blocks)
        assert whole > 0
        assert sum(row["ms"][side] for row in told["operators"]) == pytest.approx(whole, abs=1e-4)
