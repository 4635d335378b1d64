"""What the torch twins of the image models share: their convolution, and how they take the zoo's weights."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

_PARTS = {
    "weight": "conv.weight",
    "gain": "norm.weight",
    "shift": "norm.bias",
    "mean": "norm.running_mean",
    "variance": "norm.running_var",
}


class Unit(nn.Module):
    """A convolution without a bias, padded so that stride 1 keeps the image's size, and its normalisation."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))


def twin_output(model: nn.Module, parameters: Mapping[str, np.ndarray], image: np.ndarray) -> np.ndarray:
    """The twin's answer with the zoo's weights, which bear its modules' names: all of them, and no others."""
    state = {}
    for name, values in parameters.items():
        _, *place, part = name.split("/")
        path = ".".join(place)
        if hasattr(model.get_submodule(path), "norm"):
            part = _PARTS[part]
        state[f"{path}.{part}"] = torch.tensor(values)
    assert set(state) == {key for key in model.state_dict() if not key.endswith("num_batches_tracked")}
    model.load_state_dict(state, strict=False)
    with torch.no_grad():
        return model.eval()(torch.tensor(image)).numpy()
