"""A study finds options by their names, and its folder again as long as settings and code are the same."""

from pathlib import Path

import pytest
from hydra import initialize_config_dir
from studies.program import checkpoint_of, option


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


def test_an_option_has_what_it_takes_from_the_program(repository: Path):
    """Random search takes its seed and its horizon from there, and there they may be overridden."""
    with initialize_config_dir(str(repository / "conf/study"), version_base="1.3"):
        random = option("headroom", ["seed=7"], "search", "random")
        graph = option("headroom", [], "graph", "bert_one_token_two_layers")
    assert (random["method"], random["options"]["seed"], random["options"]["episode_steps"]) == ("random", 7, 150)
    assert (graph["settings"]["layers"], graph["settings"]["head"], graph["settings"]["hidden"]) == (2, "cls", 768)
