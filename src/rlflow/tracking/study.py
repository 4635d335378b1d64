"""Studies: Hydra programs beside the pipeline, each of which goes through many graphs, costs or searches.

graph = option("headroom", overrides, "graph", "bert")        a section of conf/, by its name
folder = checkpoint_of("headroom", settings)                  for what a killed study has done already
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import compose
from omegaconf import OmegaConf

from rlflow.tracking.store import main_root

_CODE = ("src/rlflow", "conf")


def option(program: str, overrides: Sequence[str], group: str, name: str) -> dict[str, Any]:
    """Return one option of a group; what it takes from elsewhere comes from the program's own configuration.

    program: the configuration's name. overrides: those that the program was started with.
    """
    composed: Any = OmegaConf.to_container(compose(program, [*overrides, f"+{group}={name}"]), resolve=True)
    section: dict[str, Any] = composed[group]
    return section


def checkpoint_of(study: str, settings: Mapping[str, Any]) -> Path:
    """Make the folder that outlives the process until the study has ended well.

    It is the same for the same settings and code; the code is that of the working folder, with its rules and conf/.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for file in sorted(path for folder in _CODE for path in Path(folder).rglob("*")):
        if file.is_file() and file.suffix != ".pyc":
            digest.update(str(file).encode() + file.read_bytes())
    folder = main_root() / ".checkpoints" / study / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder
