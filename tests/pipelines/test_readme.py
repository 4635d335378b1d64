"""README's figures are those of the results."""

from pathlib import Path

from studies.documents import check_results
from support.checkouts import checkout_of
from support.checkouts import publishable as publishable_of
from support.readme import TABLE, with_table


def test_the_table_is_one_that_is_published(repository: Path, publishable: tuple[Path, ...]):
    """The committed one, whatever a run of one's own has written since, or the one that is to be committed with it."""
    readme = (repository / "README.md").read_text()
    tables = [(root / TABLE).read_text() for root in publishable]
    assert readme in [with_table(repository, readme, table) for table in tables], "run `python docs/results_table.py`"


def test_a_table_that_was_never_published_is_noticed(repository: Path, publishable: tuple[Path, ...]):
    readme = (repository / "README.md").read_text()
    edited = readme.replace("| bert | greedy |", "| bert | greedier |")
    assert edited != readme
    tables = [(root / TABLE).read_text() for root in publishable]
    assert edited not in [with_table(repository, edited, table) for table in tables]


def test_what_is_publishable_is_the_last_commit_and_the_working_tree(repository: Path, tmp_path: Path):
    """In a checkout whose results were made anew, as `make repro` leaves it on another machine."""
    checkout = checkout_of(repository, [TABLE], tmp_path / "checkout")
    published = (checkout / TABLE).read_text()
    own = published + "| another graph | greedy |\n"
    (checkout / TABLE).write_text(own)
    roots = publishable_of(checkout, tmp_path / "last_commit")
    assert [(root / TABLE).read_text() for root in roots] == [published, own]
    (tmp_path / "outside").mkdir()
    assert publishable_of(tmp_path / "outside", tmp_path / "none") == (tmp_path / "outside",)


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
