"""Controllers on disk: weights as safetensors, and beside them, as JSON, what it takes to build the network again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError

Arguments = TypeVar("Arguments")
Policy = TypeVar("Policy", bound=nn.Module)


def save(policy: nn.Module, description: Mapping[str, Any], folder: Path) -> None:
    """Write `controller.safetensors` and `controller.json`; equal policies give equal bytes."""
    with written_whole(folder / "controller.safetensors") as draft:
        save_model(policy, str(draft))  # not save_file: it refuses shared tensors
    (folder / "controller.json").write_text(json.dumps(description, indent=2) + "\n")


def load(
    folder: Path, arguments_of: Callable[[dict[str, Any]], Arguments], new_policy: Callable[[Arguments], Policy]
) -> tuple[Policy, Arguments]:
    """Read what `save` wrote: the policy, frozen, and its arguments. `InputError` where there is no controller.

    arguments_of makes arguments of a description, and new_policy an untrained policy of the right shape of these.
    """
    try:
        arguments = arguments_of(json.loads((folder / "controller.json").read_text()))
        policy = new_policy(arguments)
        load_model(policy, str(folder / "controller.safetensors"))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise InputError(f"controller: {folder} cannot be read ({error}); run train_controller") from error
    return policy.eval().requires_grad_(False), arguments
