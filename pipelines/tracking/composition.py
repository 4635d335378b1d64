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
SLOTS = ("graph", "second_graph")


def main(overrides: Sequence[str]) -> None:
    """Write params.yaml in the working folder."""
    config = _composed_by_dvc() if not overrides else None
    if not config:
        config = compose_configuration(overrides)
    text = OmegaConf.to_yaml(complete_graphs(config), resolve=True)

    with written_whole(PARAMETERS) as draft:
        draft.write_text(text)


def compose_configuration(overrides: Sequence[str] = (), folder: Path = Path("conf")) -> DictConfig:
    """The configuration of conf/config.yaml under `overrides`, without the hashes of graphs' files."""
    with initialize_config_dir(str(folder.resolve()), version_base="1.3"):
        return compose("config", overrides=list(overrides))


def graph_names(config: DictConfig) -> dict[str, str]:
    """The names of the experiment's graphs by their section: `graph` and, unless it is empty, `second_graph`."""
    sections = {slot: config[slot] for slot in SLOTS if slot in config}
    for slot, section in sections.items():
        if not isinstance(section, DictConfig):
            raise InputError(f"{slot} is {section!r}, but must be settings; choose a graph by graph@{slot}={section}")
    return {slot: str(section.name) for slot, section in sections.items() if section.kind != "none"}


def complete_graphs(config: DictConfig) -> DictConfig:
    """The configuration with the name and the sha256 of each graph that is a file.

    Raises InputError if such a file does not exist, or if two graphs have one name.
    """
    files = [slot for slot in graph_names(config) if config[slot].kind == "file"]
    merged = OmegaConf.merge(config, {slot: _identity(slot, config[slot]) for slot in files})
    assert isinstance(merged, DictConfig)

    names = list(graph_names(merged).values())
    if len(set(names)) < len(names):
        raise InputError(f"graph and second_graph are both named {names[0]}; set second_graph.name to another name")
    return merged


def _identity(slot: str, graph: DictConfig) -> dict[str, str]:
    """The name and the sha256 of a graph's file."""
    path = Path(graph.path)
    if not path.is_file():
        raise InputError(f"{slot}.path: {path} does not exist; give the path of an ONNX file, {slot}.path=my.onnx")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": graph.name or path.stem, "sha256": digest}


def _composed_by_dvc() -> DictConfig | None:
    """The params.yaml that `dvc exp run` has just written, overrides included; None outside of an experiment."""
    if "DVC_EXP_NAME" not in os.environ or not PARAMETERS.is_file():
        return None
    config = OmegaConf.load(PARAMETERS)
    assert isinstance(config, DictConfig)
    return config


if __name__ == "__main__":
    main(sys.argv[1:])
