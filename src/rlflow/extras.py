"""The optional parts of an installation, and the message if one is needed that is not installed.

`pip install rlflow` brings what `rlflow optimise` needs. Training, experiments and pictures are extras: a package or
module of RLFlow that builds on one says so before it imports anything of it,

    require("learn", "rlflow.world_model")

and where it is missing the error says "rlflow.world_model needs torch and gymnasium, which are not installed: pip
install 'rlflow[learn]'" instead of a traceback. Nothing is imported to find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec

from rlflow.errors import InputError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "learn": ("torch", "stable_baselines3", "sb3_contrib", "gymnasium", "safetensors", "cma"),
    "experiments": ("dvc", "mlflow", "hydra", "omegaconf", "filelock", "jinja2", "sqlalchemy", "yaml"),
    "plots": ("matplotlib",),
    "frameworks": ("onnx2torch",),
    "xla": ("jax", "jaxlib"),
    "xla-onnx": ("torch_mlir",),
}
"""The extras of pyproject.toml with the modules that RLFlow imports from them. One that is not here has one module, of
its own name.
"""


class MissingExtraError(InputError, ImportError):
    """Something was asked for that needs an extra which is not installed."""


def modules_of(extra: str) -> tuple[str, ...]:
    """Return the modules that RLFlow imports from an extra."""
    return EXTRAS.get(extra, (extra,))


def require(extra: str, needed_by: str) -> None:
    """Raise `MissingExtraError` naming `needed_by` unless every module of `extra` is installed."""
    missing = [module for module in modules_of(extra) if find_spec(module) is None]
    if missing:
        *first, last = missing
        named = f"{', '.join(first)} and {last}" if first else last
        verb = "are" if first else "is"
        raise MissingExtraError(f"{needed_by} needs {named}, which {verb} not installed: pip install 'rlflow[{extra}]'")


@contextmanager
def needs(extra: str, needed_by: str) -> Iterator[None]:
    """Guard the imports in a `with` block: `require`, where imports follow it in the same module."""
    require(extra, needed_by)
    yield
