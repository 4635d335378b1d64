"""The graphs of conf/graph by name, for environments, which read no conf/: run this file to write them anew.

A wheel has no conf/. A test compares what ships with what conf/ says, so that its numbers live there alone.
"""

import json
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from tracking.composition import compose_configuration

from rlflow.atomic_file import written_whole
from rlflow.zoo.named import CONFIGURED

CONF = Path(__file__).parents[2] / "conf"


def configured() -> dict[str, dict[str, Any]]:
    """Return the zoo's entry and the settings of each graph but a file."""
    names = sorted(file.stem for file in (CONF / "graph").glob("*.yaml") if file.stem != "file")
    config = compose_configuration([f"graph=[{','.join(names)}]"], CONF)
    graphs: Any = OmegaConf.to_container(config.graphs, resolve=True)
    return {name: {"entry": graph["entry"], "settings": graph["settings"]} for name, graph in graphs.items()}


if __name__ == "__main__":
    with written_whole(CONFIGURED) as draft:
        lines = (f"  {json.dumps(name)}: {json.dumps(graph)}" for name, graph in configured().items())
        draft.write_text("{\n" + ",\n".join(lines) + "\n}\n")
