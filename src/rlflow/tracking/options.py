"""Options of conf/ by their names, for a Hydra program that goes through several graphs, costs or searches.

graphs = [option("headroom", overrides, "graph", name) for name in ("bert", "vit")]
"""

from collections.abc import Sequence
from typing import Any

from hydra import compose
from omegaconf import OmegaConf


def option(program: str, overrides: Sequence[str], group: str, name: str) -> dict[str, Any]:
    """Return one option of a group; what it takes from elsewhere comes from the program's own configuration.

    program: the configuration's name. overrides: those that the program was started with.
    """
    composed: Any = OmegaConf.to_container(compose(program, [*overrides, f"+{group}={name}"]), resolve=True)
    section: dict[str, Any] = composed[group]
    return section
