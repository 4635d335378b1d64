"""NASNet-A against torch modules put together from the tables of the cells; transformers has none."""

import numpy as np
import pytest
import torch
from support.twins import Unit, twin_output
from torch import nn
from torch.nn import functional as F

from rlflow import zoo
from rlflow.errors import InputError

DEPTH = 5 * 4 * 6 + 30
"""In each of five cells a Relu and two convolutions, twice, with their normalisations; sums, poolings, the ends."""
EPS = 1e-3


class Separable(nn.Module):
    """Relu, depthwise, pointwise, normalisation, all twice; the stride is in the first."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        for index, (width, step) in enumerate(((inputs, stride), (outputs, 1))):
            layer = nn.Module()
            layer.depth = nn.Conv2d(width, width, kernel, step, kernel // 2, groups=width, bias=False)
            layer.point = Unit(width, outputs, eps=EPS)
            self.add_module(f"layer_{index}", layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in (self.layer_0, self.layer_1):
            x = layer.point(layer.depth(x.relu()))
        return x


class Halves(nn.Module):
    """Pixels of even and of odd places, each giving half of the channels."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.half_0 = nn.Conv2d(inputs, outputs // 2, 1, bias=False)
        self.half_1 = nn.Conv2d(inputs, outputs // 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=EPS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        odd = x[..., 1::2, 1::2]
        if x.shape[-1] % 2:
            odd = F.pad(odd, (0, 1, 0, 1))
        return self.norm(torch.cat([self.half_0(x[..., ::2, ::2]), self.half_1(odd)], 1))


NORMAL = (("h sep5", "p sep3"), ("p sep5", "p sep3"), ("h avg", "p"), ("p avg", "p avg"), ("h sep3", "h"))
REDUCTION = (("h sep5", "p sep7"), ("h max", "p sep7"), ("h avg", "p sep5"), ("1", "0 avg"), ("0 sep3", "h max"))
"""Figure 4 of Zoph et al. (2018): in each pair what is summed, h this cell's input, p the one before, 0, 1 the sums."""


class Cell(nn.Module):
    def __init__(self, pairs, before: nn.Module | None, p: int, h: int, filters: int, stride: int) -> None:
        super().__init__()
        self.pairs, self.stride = pairs, stride
        self.before, self.current = before, Unit(h, filters, eps=EPS)
        widths = {"h": filters, "p": p if before is None else filters, "0": filters}
        for index, pair in enumerate(pairs):
            sides = nn.ModuleDict()
            for side, operand in zip(("left", "right"), pair, strict=True):
                of, _, kind = operand.partition(" ")
                if kind.startswith("sep"):
                    sides[side] = Separable(widths[of], filters, int(kind[3:]), self.stride_of(of))
            self.add_module(f"sum_{index}", sides)

    def stride_of(self, operand: str) -> int:
        """Sums have the smaller size already."""
        return 1 if operand in "01" else self.stride

    def operand(self, index: int, side: str, values: dict[str, torch.Tensor]) -> torch.Tensor:
        of, _, kind = self.pairs[index][side == "right"].partition(" ")
        if kind == "avg":
            return F.avg_pool2d(values[of], 3, self.stride_of(of), 1, count_include_pad=False)
        if kind == "max":
            return F.max_pool2d(values[of], 3, self.stride_of(of), 1)
        return getattr(self, f"sum_{index}")[side](values[of]) if kind else values[of]

    def forward(self, before: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        if self.before is not None:
            before = self.before(before.relu())
        values = {"h": self.current(current.relu()), "p": before}
        for index in range(5):
            values[str(index)] = self.operand(index, "left", values) + self.operand(index, "right", values)
        sums = [values[str(index)] for index in range(5)]
        return torch.cat([before, *sums] if self.stride == 1 else sums[1:], 1)


class Nasnet(nn.Module):
    """Figure 2 of Zoph et al. (2018), right: two reduction cells, then normal cells with reductions between."""

    def __init__(self, width: int, cells: int, classes: int) -> None:
        super().__init__()
        self.stem = Unit(3, 32, 3, 2, eps=EPS)
        self.stem.conv.padding = (0, 0)
        plan = {"entry.cell_0": ("r", width // 4), "entry.cell_1": ("r", width // 2)}
        for stage in range(3):
            if stage > 0:
                plan[f"stage_{stage}.reduce"] = ("r", width * 2**stage)
            plan |= {f"stage_{stage}.cell_{index}": ("n", width * 2**stage) for index in range(cells)}
        self.order = list(plan)
        channels, halvings = [32, 32], [0, 0]  # of the two tensors before
        for path, (kind, filters) in plan.items():
            fit: nn.Module | None = None if channels[-2] == filters else Unit(channels[-2], filters, eps=EPS)
            if halvings[-2] != halvings[-1]:
                fit = Halves(channels[-2], filters)
            if path == "entry.cell_0":
                fit = None
            pairs, stride = (REDUCTION, 2) if kind == "r" else (NORMAL, 1)
            stage, name = path.split(".")
            if not hasattr(self, stage):
                self.add_module(stage, nn.Module())
            cell = Cell(pairs, fit, channels[-2], channels[-1], filters, stride)
            getattr(self, stage).add_module(name, cell)
            channels.append((4 if kind == "r" else 6) * filters)
            halvings.append(halvings[-1] + stride - 1)
        self.classifier = nn.Linear(channels[-1], classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        before = current = self.stem(image)
        for path in self.order:
            before, current = current, self.get_submodule(path)(before, current)
        return self.classifier(current.relu().mean((2, 3)))


@pytest.mark.parametrize(("width", "cells", "size"), [(16, 1, 65), (8, 2, 40)])
def test_equals_torch(width, cells, size, run, parameters, assert_close):
    """Sizes 32, 16, 8, 4, 2 and 19, 10, 5, 3, 2: even and odd ones are halved."""
    model = zoo.build("nasnet_a", width=width, cells=cells, image=size, batch="batch", classes=10)
    image = np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32)
    expected = twin_output(Nasnet(width, cells, 10), parameters(model), image)
    assert_close(run(model, {"image": image})["logits"], expected, depth=DEPTH, terms=24 * width)


def test_the_cell_before_reaches_the_next(run, parameters, reorder, assert_differs):
    """The skip from the cell before last is alive in every cell but the first, where both inputs are one."""
    model = zoo.build("nasnet_a", width=16, cells=2, image=40, classes=10)
    image = np.random.default_rng(0).standard_normal((1, 3, 40, 40), dtype=np.float32)
    (expected,) = run(model, {"image": image}).values()
    skips = [name for name in parameters(model) if name.endswith(("before/weight", "before/half_1/weight"))]
    assert len(skips) == 2 + 3 * 2 + 2 - 1
    for name in skips:
        assert_differs(run(reorder(model, name), {"image": image})["logits"], expected, depth=DEPTH, terms=24 * 16)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"width": 6}, "nasnet_a: width=6 is not a multiple of 4"),
        ({"image": 34}, "nasnet_a: the layers leave nothing of an image of 34 pixels; give 35 or more"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        zoo.build("nasnet_a", **settings)
