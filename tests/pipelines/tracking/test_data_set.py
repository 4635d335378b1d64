"""Files that a run has read, as data sets: a digest tells other content and other names."""

from pathlib import Path

from tracking.data_set import content_digest, data_sets


def test_a_digest_is_of_names_and_contents(tmp_path: Path) -> None:
    """Compiled Python is no content; another name or another byte is other content."""
    folder = tmp_path / "rollouts"
    folder.mkdir()
    (folder / "a.json").write_text("1")
    first = content_digest(folder)
    (folder / "a.pyc").write_text("compiled")
    assert content_digest(folder) == first
    (folder / "a.json").write_text("2")
    second = content_digest(folder)
    (folder / "a.json").rename(folder / "b.json")
    assert len({first, second, content_digest(folder)}) == 3


def test_a_data_set_has_a_name_a_digest_and_a_kind(tmp_path: Path) -> None:
    prices = tmp_path / "generate_rules.json"
    prices.write_text("{}")
    (found,) = data_sets({"data/prices/generate_rules.json": prices})
    assert found.dataset.name == "data/prices/generate_rules.json"
    assert content_digest(prices).startswith(found.dataset.digest)
    assert len(found.dataset.digest) <= 36, "MLflow takes no more"
    assert [(tag.key, tag.value) for tag in found.tags] == [("mlflow.data.context", "generate_rules")]
