"""The settings of a stage of the small project."""

from omegaconf import OmegaConf

CONFIG = OmegaConf.create(
    {
        "seed": 7,
        "temperature": 1.0,
        "first": {"size": 3},
        "graph": {"kind": "zoo", "name": "small", "path": "conf/graph/small.yaml"},
    }
)
