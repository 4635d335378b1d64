"""Compose conf/ into params.yaml, the only thing that DVC compares: the `config` stage of dvc.yaml.

`dvc repro` never composes conf/, while `dvc exp run` composes it before the first stage. So this stage composes, unless
an experiment has just done so with overrides that must not be lost. A user's own model enters by its sha256: DVC
compares parameters, so a changed file must be a changed parameter.
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

PARAMETERS = Path("params.yaml")


def main(overrides: Sequence[str]) -> None:
    """Write params.yaml in the working folder."""
    config = _composed_by_dvc() if not overrides else None
    if not config:
        config = compose_configuration(overrides)
    text = OmegaConf.to_yaml(complete_graph(config), resolve=True)

    with written_whole(PARAMETERS) as draft:
        draft.write_text(text)


def compose_configuration(overrides: Sequence[str] = (), folder: Path = Path("conf")) -> DictConfig:
    """The configuration of conf/config.yaml under `overrides`, without the hash of a graph's file."""
    with initialize_config_dir(str(folder.resolve()), version_base="1.3"):
        return compose("config", overrides=list(overrides))


def complete_graph(config: DictConfig) -> DictConfig:
    """The configuration with the name and the sha256 of its graph's file; as it is if the graph is from the zoo.

    Raises InputError if the file does not exist.
    """
    if config.graph.kind != "file":
        return config

    path = Path(config.graph.path)
    if not path.is_file():
        raise InputError(f"graph.path: {path} does not exist; give the path of an ONNX file, graph.path=my.onnx")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    completion = {"graph": {"name": config.graph.name or path.stem, "sha256": digest}}
    merged = OmegaConf.merge(config, completion)
    assert isinstance(merged, DictConfig)
    return merged


def _composed_by_dvc() -> DictConfig | None:
    """The params.yaml that `dvc exp run` has just written, overrides included; None outside of an experiment."""
    if "DVC_EXP_NAME" not in os.environ or not PARAMETERS.is_file():
        return None
    config = OmegaConf.load(PARAMETERS)
    assert isinstance(config, DictConfig)
    return config


if __name__ == "__main__":
    main(sys.argv[1:])
