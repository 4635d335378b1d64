"""A study finds options by their names, and its folder again as long as settings and code are the same."""

from pathlib import Path

import pytest
from hydra import initialize_config_dir
from studies.program import OpenStudy, checkpoint_of, option
from tracking.share import Share

from rlflow.errors import InputError, RLFlowError


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with code and configuration, such as they are."""
    (tmp_path / "src/rlflow").mkdir(parents=True)
    (tmp_path / "src/rlflow/search.py").write_text("best = 1")
    (tmp_path / "conf").mkdir()
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_is_found_again_until_settings_or_code_change(checkout: Path):
    folder = checkpoint_of("headroom", {"seed": 0})
    (folder / "kept").touch()
    assert (checkpoint_of("headroom", {"seed": 0}) / "kept").exists()
    assert folder.parent == checkout / ".checkpoints/headroom"

    others = [checkpoint_of("headroom", {"seed": 1}), checkpoint_of("latency", {"seed": 0})]
    for file, text in {"src/rlflow/search.py": "best = 2", "conf/headroom.yaml": "seed: 0"}.items():
        (checkout / file).write_text(text)
        others.append(checkpoint_of("headroom", {"seed": 0}))
    assert len({folder, *others}) == 5
    assert not any((other / "kept").exists() for other in others)


def test_compiled_code_is_no_code(checkout: Path):
    folder = checkpoint_of("headroom", {})
    (checkout / "src/rlflow/search.pyc").write_bytes(b"compiled")
    assert checkpoint_of("headroom", {}) == folder


def test_cells_without_a_row_are_named(tmp_path: Path):
    """And they alone: `b` does not come, and `a` has come."""
    study = OpenStudy("tiny study", {}, tmp_path, run=None, share=Share())
    assert study.gathered([("a", 0), ("b", 0)], [(("a", 0), 1)], lambda *_: "") == {("a", 0): 1}
    with pytest.raises(RLFlowError, match=r"without a result, to be tried again by the next run: b 0$"):
        study.check_complete()


def test_workers_share_the_cells_and_one_alone_publishes(tmp_path: Path):
    cells = dict(zip([("a", 0), ("b", 0), ("c", 0)], ([2, 1], [4, 3], [6, 5]), strict=True))
    workers = [OpenStudy("tiny study", {"longest_s": 60.0}, tmp_path, None, Share(*each)) for each in ((1, 2), (0, 1))]
    rows = [study.rows(cells, sorted, lambda *_: "") for study in workers]
    assert rows == [{("b", 0): [3, 4]}, {("a", 0): [1, 2], ("b", 0): [3, 4], ("c", 0): [5, 6]}]
    assert [study.publishes for study in workers] == [False, True]


def test_an_option_has_what_it_takes_from_the_program(repository: Path):
    """Random search takes its seed and its horizon from there, and there they may be overridden."""
    with initialize_config_dir(str(repository / "conf/study"), version_base="1.3"):
        random = option("headroom", ["seed=7"], "search", "random")
        graph = option("headroom", [], "graph", "bert_one_token_two_layers")
    assert (random["method"], random["options"]["seed"], random["options"]["episode_steps"]) == ("random", 7, 150)
    assert (graph["settings"]["layers"], graph["settings"]["head"], graph["settings"]["hidden"]) == (2, "cls", 768)


def test_an_option_that_there_is_not_is_refused():
    with pytest.raises(InputError, match=r"there is no cost 'dear': choose one of analytic, as_written, .*predicted"):
        option("policy", [], "cost", "dear")
