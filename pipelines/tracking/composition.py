"""Compose conf/ into params.yaml, the only thing that DVC compares: the `config` stage of dvc.yaml.

`dvc repro` never composes conf/, while `dvc exp run` composes it before the first stage. So this stage composes, unless
an experiment has just done so with overrides that must not be lost. A user's own model enters by its sha256: DVC
compares parameters, so a changed file must be a changed parameter.

The invariant: what a stage is given has the types of its sections, and each graph has a name of its own.
"""

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError
from tracking.sections import check_types

PARAMETERS = Path("params.yaml")


def main(overrides: Sequence[str]) -> None:
    """Write params.yaml in the working folder."""
    config = _composed_by_dvc() if not overrides else None
    if not config:
        config = compose_configuration(overrides)
    text = OmegaConf.to_yaml(completed(config), resolve=True)

    with written_whole(PARAMETERS) as draft:
        draft.write_text(text)


def compose_configuration(overrides: Sequence[str] = (), folder: Path = Path("conf")) -> DictConfig:
    """The configuration of conf/config.yaml under `overrides`, as conf/ says it."""
    with initialize_config_dir(str(folder.resolve()), version_base="1.3"):
        return compose("config", overrides=list(overrides))


def graph_names(config: DictConfig) -> tuple[str, ...]:
    """The names of the experiment's graphs, in the order in which they were chosen."""
    return tuple(map(str, config.get("graphs", ())))


def completed(config: DictConfig) -> DictConfig:
    """The configuration as stages read it: a graph of a file has the file's name, and its sha256.

    Raises InputError if such a file does not exist, if two graphs have one name or there is none, and for a setting of
    another type than its section has.
    """
    check_types(config)
    graphs = [_named(name, graph) for name, graph in config.get("graphs", {}).items()]
    names = [name for name, _ in graphs]
    if not names:
        raise InputError("there is no graph: choose one or several, graph=bert or graph=[bert,vit]")
    if doubled := {name for name in names if names.count(name) > 1}:
        raise InputError(f"two graphs are named {', '.join(doubled)}: give the file of your own another name")
    whole = config.copy()
    whole.graphs = dict(graphs)
    return whole


def _named(name: str, graph: DictConfig) -> tuple[str, DictConfig | dict[str, str]]:
    """The graph by its name, or by that of its file."""
    if graph.kind != "file":
        return name, graph
    path = Path(graph.path)
    if path.suffix == ".yaml":  # what conf/config.yaml says where there is no such graph
        raise InputError("graph=file is a model of your own: give the path of its ONNX file, graph=file model=my.onnx")
    if not path.is_file():
        raise InputError(
            f"model={path} does not exist; give the path of an ONNX file, an absolute one with --temp and --queue, "
            "which copy what git tracks alone"
        )
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return path.stem, {"kind": "file", "path": str(path), "sha256": digest}


def _composed_by_dvc() -> DictConfig | None:
    """The params.yaml that `dvc exp run` has just written, overrides included; None outside of an experiment."""
    if "DVC_EXP_NAME" not in os.environ or not PARAMETERS.is_file():
        return None
    config = OmegaConf.load(PARAMETERS)
    assert isinstance(config, DictConfig)
    return config


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(str(error))
