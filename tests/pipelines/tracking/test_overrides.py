"""Settings that a stage would ignore are refused before it begins, by its program and by each kind of override."""

from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf
from tracking.overrides import RefuseOverrides, refuse_ignored

from rlflow.errors import InputError

CONFIG = OmegaConf.create(
    {
        "seed": 0,
        "temperature": 1.0,
        "model": "conf/graph/file.yaml",
        "graphs": {"small": {"kind": "zoo", "entry": "bert", "settings": {"layers": 2}}},
        "first": {"size": 3, "heat": "${temperature}"},
    }
)
OPTIONS = {
    "graph/small.yaml": "# @package graphs.small\nkind: zoo",
    "graph/large.yaml": "# @package graphs.large\nkind: zoo",
    "first/large.yaml": "size: 9",
    "style/plain.yaml": "# @package _global_\nfirst: {size: 4}\nsecond: {}",
    "style/of/plain.yaml": "# @package _global_\nother: 1",
    "taste/sweet.yaml": "# @package _global_\ndefaults:\n  - override /graph: large",
    "unread/any.yaml": "value: 1",
}
STAGES = """
stages:
  first:
    cmd: "true"
    params: [seed, first]
    outs: [data/first]
  second:
    cmd: "true"
    params: [seed, second]
    outs: [data/second.txt]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {f"conf/{name}": text for name, text in OPTIONS.items()}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "dvc.yaml").write_text(STAGES)
    return tmp_path


@pytest.mark.parametrize(
    ("script", "override", "is_read"),
    [
        ("first", "first=large", True),
        ("second", "first=large", False),
        ("second", "first=large,small", False),
        ("second", "~first", False),
        ("first", "first.size=range(3)", True),
        ("second", "first.size=4", False),
        ("first", "temperature=0.5", True),  # first.heat refers to it
        ("second", "temperature=0.5", False),
        ("second", "+second.size=3", True),
        ("second", "++anything.else=3", False),
        ("first", "graph=large", True),  # every stage works on the graphs of the experiment
        ("first", "graph=[small,large]", True),
        ("first", "model=my.onnx", True),
        ("first", "graphs.small.settings.layers=3", False),
        ("second", "seed=0,1,2", True),
        ("second", "workers=2", True),
        ("second", "style=plain", True),  # what an option fills is in its file
        ("second", "style@_global_=of/plain", True),
        ("second", "style@first=plain", False),
        ("second", "taste=sweet", True),  # it takes another graph
        ("first", "unread=any", False),
        ("first", "+unread@first.more=any", True),
        ("study", "anything=3", True),  # no stage of dvc.yaml
    ],
)
def test_what_a_stage_reads_is_what_it_declares(script: str, override: str, is_read: bool, root: Path):
    """And what that refers to, and where the work of every stage lies."""
    if is_read:
        refuse_ignored(script, [override], CONFIG, [root / "conf"], root)
    else:
        with pytest.raises(InputError, match=f"^{script} ignores "):
            refuse_ignored(script, ["seed=1", override], CONFIG, [root / "conf"], root)


def test_a_refusal_names_the_setting_the_stage_and_who_reads_it(root: Path):
    sentence = r"^second ignores first=large,small: first is read by first; leave it out$"
    with pytest.raises(InputError, match=sentence):
        refuse_ignored("second", ["first=large,small"], CONFIG, [root / "conf"], root)
    with pytest.raises(InputError, match=r"^first ignores unread=any: unread is read by no stage; leave it out$"):
        refuse_ignored("first", ["unread=any"], CONFIG, [root / "conf"], root)


@pytest.fixture
def config(root: Path, monkeypatch: pytest.MonkeyPatch) -> DictConfig:
    """What Hydra hands to callbacks of a stage that was started with settings that it reads."""
    monkeypatch.chdir(root)
    hydra = {
        "job": {"name": "second"},
        "overrides": {"task": ["seed=1"]},
        "sweeper": {"params": None},
        "runtime": {"config_sources": [{"path": str(root / "conf"), "schema": "file", "provider": "main"}]},
    }
    merged = OmegaConf.merge(CONFIG, {"hydra": hydra})
    assert isinstance(merged, DictConfig)
    return merged


@pytest.mark.parametrize("start", [RefuseOverrides.on_run_start, RefuseOverrides.on_multirun_start])
def test_single_runs_and_sweeps_are_left_alike(start: Callable[..., None], config: DictConfig):
    """By an exit, as Hydra makes warnings of errors."""
    start(RefuseOverrides(), config, config_name="config")
    config.hydra.overrides.task.append("first.size=2")
    with pytest.raises(SystemExit, match=r"^second ignores first\.size=2: first\.size is read by first; leave it out$"):
        start(RefuseOverrides(), config, config_name="config")


@pytest.mark.parametrize(
    "override", ["first.heat=0.5", "temperature=0.5,1", "temperature=range(2)", "graph=small,large"]
)
def test_a_sweep_over_settings_of_their_types_begins(config: DictConfig, override: str):
    """It does not exit, as it does at the same place for the values of the next test."""
    config.hydra.job.name = "first"
    config.hydra.overrides.task.append(override)
    RefuseOverrides().on_multirun_start(config)


@pytest.mark.parametrize("override", ["temperature=0.5,hot", "temperature=hot,0.5", "seed=0,1.5"])
def test_a_sweep_is_left_for_any_value_of_a_wrong_type(config: DictConfig, override: str):
    """Before the job that has it, which may be the last."""
    config.hydra.job.name = "first"
    config.hydra.overrides.task.append(override)
    with pytest.raises(SystemExit, match=r": Expected `(float|int)`, got `(str|float)`, and it is "):
        RefuseOverrides().on_multirun_start(config)


def test_a_model_is_looked_for_where_a_sweep_names_it(config: DictConfig, root: Path):
    """Not where conf/ does, which is no model."""
    config.hydra.job.name = "first"
    config.graphs = {"file": {"kind": "file", "path": "${model}"}}
    for name in ("one", "other"):
        (root / f"{name}.onnx").write_text(name)
    config.hydra.overrides.task.append("model=one.onnx,other.onnx")
    RefuseOverrides().on_multirun_start(config)
    config.hydra.overrides.task[-1] = "model=one.onnx,third.onnx"
    with pytest.raises(SystemExit, match=r"^model=third\.onnx does not exist"):
        RefuseOverrides().on_multirun_start(config)


def test_what_a_search_would_draw_is_refused(config: DictConfig):
    """The settings of a sweeper are on no command line."""
    config.hydra.sweeper.params = {"temperature": "interval(0.5, 1.5)"}
    with pytest.raises(
        SystemExit, match=r"^second ignores temperature=interval\(0\.5, 1\.5\): temperature is read by first"
    ):
        RefuseOverrides().on_multirun_start(config)
    config.hydra.job.name = "first"
    RefuseOverrides().on_multirun_start(config)


@pytest.mark.slow
def test_a_program_ends_before_its_first_job(project: Path, command: Callable):
    """With one sentence, and without a trace: no run, no folder, no output."""
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    refused = command("python", "pipelines/second.py", "--multirun", "first.size=1,2", cwd=project, check=False)
    assert refused.returncode == 1
    assert refused.stderr == "second ignores first.size=1,2: first.size is read by first; leave it out\n"
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before
