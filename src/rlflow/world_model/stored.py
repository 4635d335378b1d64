"""A world model on disk: weights as safetensors, and as JSON all that is needed to build the network again.

No pickles: reading a model runs no code. Operators and features are named, so that a model is read by name, whatever
the order in today's code. The invariant: equal models give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError
from rlflow.representation.vocabulary import Vocabulary

M = TypeVar("M", bound=nn.Module)
_LONGEST_REASON = 240  # characters


def save(model: nn.Module, description: dict[str, Any], folder: Path) -> None:
    """Write `world_model.safetensors` and `world_model.json`; equal models give equal bytes."""
    with written_whole(folder / "world_model.safetensors") as draft:
        save_model(model, str(draft))
        draft.chmod(0o644)  # safetensors lets nobody but the owner read it
    with written_whole(folder / "world_model.json") as draft:
        draft.write_text(json.dumps(description, indent=2) + "\n")


def is_pooled(folder: Path) -> bool:
    """Tell if the world model in a folder is of the pooled formulation, whose actions are rules that it names.

    The other one is of match tokens. `InputError` if there is no world model.
    """
    try:
        return "rule_ids" in json.loads((folder / "world_model.json").read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"world model: {folder} cannot be read ({error}); run fit_world_model") from error


def load(folder: Path, build: Callable[[dict[str, Any]], M]) -> M:
    """Read what `save` wrote, ready for use. Raises InputError where the folder holds no such world model.

    build: makes the network of its description, in which the vocabulary is a `Vocabulary` already.
    """
    try:
        description = json.loads((folder / "world_model.json").read_text())
        if "vocabulary" not in description:
            raise InputError(
                f"world model: {folder} does not name its operators and features, so that nobody can tell what its "
                "numbers mean: it is of an earlier version; run fit_world_model"
            )
        model = build(description | {"vocabulary": Vocabulary.from_json(description["vocabulary"])})
        load_model(model, str(folder / "world_model.safetensors"))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:_LONGEST_REASON]  # torch tells of each tensor on a line of its own
        raise InputError(f"world model: {folder} cannot be read ({reason}); run fit_world_model") from error
    return model.eval().requires_grad_(False)
