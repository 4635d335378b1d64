"""README's figures are those of the results."""

import runpy
from pathlib import Path

from rlflow.evaluation.results import check_results


def test_table_is_the_one_of_the_results(repository: Path):
    table = repository / "data/results/evaluate/table.md"
    readme = (repository / "README.md").read_text()
    if not table.exists():
        assert "No results have been committed yet" in readme
        return
    with_table = runpy.run_path(str(repository / "docs/results_table.py"))["with_table"]
    assert with_table(readme, table.read_text()) == readme, "run `python docs/results_table.py`"


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
