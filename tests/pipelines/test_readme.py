"""README's figures are those of the results."""

from pathlib import Path

import pytest
from support.checkouts import checkout_of
from support.readme import TABLE, publishable_tables, with_table

from rlflow.evaluation.results import check_results

pytestmark = pytest.mark.results


def test_the_table_is_one_that_is_published(repository: Path):
    """The committed one, whatever a run of one's own has written since, or the one that is to be committed with it."""
    tables, readme = publishable_tables(repository), (repository / "README.md").read_text()
    assert tables, "no evaluation has ever been committed"
    fitting = [table for table in tables if with_table(repository, readme, table) == readme]
    assert fitting, "run `python docs/results_table.py`"


def test_a_table_that_was_never_published_is_noticed(repository: Path):
    readme = (repository / "README.md").read_text()
    edited = readme.replace("| bert | greedy |", "| bert | greedier |")
    assert edited != readme
    assert all(with_table(repository, edited, table) != edited for table in publishable_tables(repository))


def test_an_own_run_leaves_readme_right(repository: Path, tmp_path: Path):
    """In a checkout whose results were made anew, as `make repro` leaves it on another machine."""
    checkout = checkout_of(repository, ["README.md", TABLE, "docs/results_table.py"], tmp_path)
    published = (checkout / TABLE).read_text()
    own = published + "| another graph | greedy |\n"
    (checkout / TABLE).write_text(own)
    assert publishable_tables(checkout) == [published, own]


def test_every_link_leads_somewhere(repository: Path):
    """In all documents, links to files of this repository."""
    documents = [repository / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    broken = [
        f"{document.name}: {link}"
        for document in (*documents, *(repository / "docs").glob("*.md"))
        for link in _links(document.read_text())
        if not (document.parent / link).exists()
    ]
    assert broken == []
    assert len(_links((repository / "README.md").read_text())) >= 5


def _links(text: str) -> list[str]:
    targets = [part.split(")")[0] for part in text.split("](")[1:]]
    return [target for target in targets if "://" not in target]


def test_the_published_figures_follow_their_schemas(repository: Path):
    published = repository / "data/results"
    assert check_results(published) == []
    assert len(list(published.rglob("metrics.json"))) >= 7
