"""All stages of the tiny experiment in one process: what `make debug` runs, and a sweep over whole experiments."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tracking.declaration import read_declarations

FOLDER = "outputs/all_stages"


@pytest.mark.study  # a minute
@pytest.mark.parametrize("own", [False, True])
def test_every_stage_writes_what_it_declares(own: bool, repository: Path, tmp_path: Path, command: Callable):
    """Of the tiny graphs, or of a model of one's own; the outputs of the checkout stay as they are."""
    published = (repository / "data/results/evaluate/metrics.json").read_bytes()
    settings = [f"hydra.run.dir={tmp_path / FOLDER}"]
    if own:
        command("rlflow", "zoo", "build", "mlp", "-o", str(tmp_path / "my.onnx"), cwd=tmp_path)
        settings += ["graph=file", f"model={tmp_path / 'my.onnx'}"]
    program = ("python", "pipelines/all_stages.py", "experiment=smoke")
    command(*program, *settings, cwd=repository, DVC_ROOT=str(tmp_path))
    folder = tmp_path / FOLDER
    stages = [stage for name, stage in read_declarations(repository).items() if name not in ("code", "config")]
    assert [path for stage in stages for path in stage.outputs if not (folder / path).exists()] == []
    assert sorted(path.name for path in (folder / "data/models").iterdir()) == (
        ["my"] if own else ["bert_tiny", "t5_tiny"]
    )
    assert (repository / "data/results/evaluate/metrics.json").read_bytes() == published


def test_a_wrong_setting_ends_it_with_one_sentence(repository: Path, command: Callable):
    """Of a sweep too, before its first job."""
    for values in ("hot", "0.5,hot"):
        program = ("python", "pipelines/all_stages.py", *(["--multirun"] if "," in values else []))
        refused = command(*program, f"temperature={values}", cwd=repository, check=False)
        assert refused.returncode == 1
        assert refused.stderr.splitlines()[-1] == "temperature: Expected `float`, got `str`, and it is 'hot'"
        assert "Traceback" not in refused.stderr
