"""Architectures that the transformers package lacks, each with what makes it itself, a few channels wide."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from support.exports.architecture import Architecture
from support.exports.inputs import Example, floats, image, indices, together

_WORDS = 50
_SENTENCES = indices(_WORDS, 2, 7, batch=0, time=1)
_SEQUENCES = floats(2, 6, 16, batch=0, time=1)
_IMAGE = image(name="x")
_OPEN_IMAGE = image(name="x", is_open=True)


class _Recurrent(nn.Module):
    """Words in, a score of each class for each word out, and the last state."""

    def __init__(self, cell: type[nn.RNNBase], **how: object) -> None:
        super().__init__()
        self.embed = nn.Embedding(_WORDS, 16)
        self.layers = cell(16, 12, batch_first=True, **how)
        self.score = nn.Linear(24 if how.get("bidirectional") else 12, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, state = self.layers(self.embed(x))
        return F.log_softmax(self.score(y), -1), state[0]


class _UnrolledCells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lower, self.upper = nn.LSTMCell(16, 16), nn.GRUCell(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        h = c = g = x.new_zeros(x.shape[0], 16)
        seen = []
        for step in range(4):
            h, c = self.lower(x[:, step], (h, c))
            g = self.upper(h, g)
            seen.append(g)
        return torch.stack(seen, 1)


class _RandomField(nn.Module):
    """The log-partition function of a linear chain."""

    def __init__(self) -> None:
        super().__init__()
        self.scores, self.moves = nn.Linear(16, 5), nn.Parameter(torch.randn(5, 5))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.scores(x)
        total = scores[:, 0]
        for step in range(1, 6):
            total = torch.logsumexp(total.unsqueeze(2) + self.moves, 1) + scores[:, step]
        return torch.logsumexp(total, 1)


def _convolved(inner: int, outer: int, size: int = 3, **how: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inner, outer, size, padding=size // 2, bias=False, **how), nn.BatchNorm2d(outer), nn.ReLU()
    )


def _classified(width: int) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


class _UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([_convolved(3, 8), _convolved(8, 16), _convolved(16, 32)])
        self.up, self.wide = nn.ConvTranspose2d(32, 16, 2, 2), nn.Upsample(scale_factor=2, mode="bilinear")
        self.merge = nn.ModuleList([_convolved(32, 16), _convolved(24, 8)])
        self.mask = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        top = self.down[0](x)
        middle = self.down[1](F.max_pool2d(top, 2))
        bottom = self.up(self.down[2](F.max_pool2d(middle, 2)))
        y = self.merge[0](torch.cat([bottom, middle], 1))
        return torch.sigmoid(self.mask(self.merge[1](torch.cat([self.wide(y), top], 1))))


class _Dense(nn.Module):
    """What comes in, and beside it what a bottleneck makes of it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.narrow = nn.BatchNorm2d(width), nn.Conv2d(width, 16, 1, bias=False)
        self.wide = nn.Sequential(nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 3, padding=1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.wide(self.narrow(F.relu(self.norm(x))))], 1)


class _Shuffled(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        half = width // 2
        self.branch = nn.Sequential(_convolved(half, half, 1), _convolved(half, half, groups=half))

    def forward(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, 1)
        y = torch.cat([left, self.branch(right)], 1)
        batch, width, height, length = y.shape
        return y.view(batch, 2, width // 2, height, length).transpose(1, 2).reshape(batch, width, height, length)


class _Ghost(nn.Module):
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.own, self.copy = _convolved(inner, outer // 2, 1), _convolved(outer // 2, outer // 2, groups=outer // 2)

    def forward(self, x: Tensor) -> Tensor:
        own = self.own(x)
        return torch.cat([own, self.copy(own)], 1)


class _Excited(nn.Module):
    """A convolution whose channels are weighted by what all of the image says, beside what came in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.convolve = _convolved(width, width)
        self.squeeze, self.excite = nn.Linear(width, width // 4), nn.Linear(width // 4, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.convolve(x)
        weights = torch.sigmoid(self.excite(F.relu(self.squeeze(y.mean((2, 3))))))
        return F.relu(x + y * weights.view(*y.shape[:2], 1, 1).expand_as(y))


class _Inception(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            [
                nn.Conv2d(width, 8, 1),
                nn.Sequential(nn.Conv2d(width, 8, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)),
                nn.Sequential(nn.Conv2d(width, 4, 1), nn.ReLU(), nn.Conv2d(4, 8, 5, padding=2)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), nn.Conv2d(width, 8, 1)),
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(torch.cat([branch(x) for branch in self.branches], 1))


class _Residual(nn.Module):
    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x)


def _inverted(width: int, inside: int) -> nn.Module:
    return _Residual(
        nn.Sequential(
            nn.Conv2d(width, inside, 1, bias=False), nn.BatchNorm2d(inside), nn.Hardswish(),
            nn.Conv2d(inside, inside, 5, padding=2, groups=inside, bias=False), nn.BatchNorm2d(inside), nn.ReLU6(),
            nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width),
        )
    )  # fmt: skip


class _Atrous(nn.Module):
    """DeepLab's pyramid of dilated convolutions, resized to the image."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(_convolved(3, 16, stride=2), _convolved(16, 16, stride=2))
        self.near, self.whole = nn.Conv2d(16, 8, 1), nn.Conv2d(16, 8, 1)
        self.far = nn.ModuleList([nn.Conv2d(16, 8, 3, padding=rate, dilation=rate) for rate in (2, 3)])
        self.classes = nn.Conv2d(32, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.features(x)
        mean = F.interpolate(self.whole(F.adaptive_avg_pool2d(seen, 1)), size=seen.shape[-2:], mode="bilinear")
        views = [self.near(seen), *(far(seen) for far in self.far), mean]
        return F.interpolate(self.classes(F.relu(torch.cat(views, 1))), size=x.shape[-2:], mode="bilinear")


class _Gated(nn.Module):
    """WaveNet's stack: causal, dilated, gated, with what is skipped added up."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Conv1d(1, 8, 1), nn.Conv1d(8, 16, 1)
        self.filters, self.gates = (
            nn.ModuleList([nn.Conv1d(8, 8, 2, dilation=2**step) for step in range(4)]) for _ in range(2)
        )
        self.keep, self.skip = (nn.ModuleList([nn.Conv1d(8, 8, 1) for _ in range(4)]) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        total = torch.zeros_like(x)
        for step, (filters, gate) in enumerate(zip(self.filters, self.gates, strict=True)):
            padded = F.pad(x, (2**step, 0))
            y = torch.tanh(filters(padded)) * torch.sigmoid(gate(padded))
            total, x = total + self.skip[step](y), x + self.keep[step](y)
        return self.leave(F.relu(total))


class _Normalised(nn.Module):
    """A convolution reflected at the border, and every other way to normalise."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1, padding_mode="reflect"), nn.GroupNorm(4, 16),
            nn.InstanceNorm2d(16, affine=True), nn.PReLU(16), nn.LocalResponseNorm(3),
            nn.AvgPool2d(2, count_include_pad=False), nn.utils.parametrizations.weight_norm(nn.Conv2d(16, 8, 1)),
        )  # fmt: skip
        self.last = nn.LayerNorm([8, 16, 16])

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.normalize(self.layers(x), dim=1))


class _Detected(nn.Module):
    """Boxes of three shapes at each place of a grid, as YOLO's last layer gives them."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(_convolved(3, 16, stride=2), nn.Conv2d(16, 16, 3, 2, 1), nn.SiLU())
        self.boxes = nn.Conv2d(16, 3 * 9, 1)
        self.register_buffer("shapes", torch.tensor([[10.0, 13], [16, 30], [33, 23]]).view(1, 3, 1, 1, 2))

    def forward(self, x: Tensor) -> Tensor:
        y = self.boxes(self.features(x))
        batch, _, height, width = y.shape
        y = y.view(batch, 3, 9, height, width).permute(0, 1, 3, 4, 2).sigmoid()
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        centres = (y[..., :2] * 2 - 0.5 + torch.stack((columns, rows), -1).float()) * 4
        sizes = (y[..., 2:4] * 2) ** 2 * self.shapes
        corners = torch.cat((centres - sizes / 2, centres + sizes / 2, y[..., 4:5] * y[..., 5:]), -1)
        return corners.view(batch, -1, 8)


class _Transformed(nn.Module):
    """An image turned and moved as it says itself."""

    def __init__(self) -> None:
        super().__init__()
        self.move = nn.Linear(3, 6)

    def forward(self, x: Tensor) -> Tensor:
        grid = F.affine_grid(self.move(x.mean((2, 3))).view(-1, 2, 3), list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)


class _Attended(nn.Module):
    """Attention of four heads by a function of queries, keys and values (batch, heads, time, width)."""

    def __init__(self, attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.project, self.merge, self.attend = nn.Linear(16, 48), nn.Linear(16, 16), attend

    def forward(self, x: Tensor) -> Tensor:
        batch, time, _ = x.shape
        queries, keys, values = self.project(x).view(batch, time, 3, 4, 4).permute(2, 0, 3, 1, 4)
        return self.merge(self.attend(queries, keys, values).transpose(1, 2).reshape(batch, time, 16))


def _summed(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    weights = torch.einsum("bhid,bhjd->bhij", queries, keys).softmax(-1)
    return torch.einsum("bhij,bhjd->bhid", weights, values)


def _causal(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)


class _Mixed(nn.Module):
    """A layer of the MLP-Mixer: across places, then across channels."""

    def __init__(self, places: int, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.across, self.along = (
            nn.Sequential(nn.Linear(size, 32), nn.GELU(), nn.Linear(32, size)) for size in (places, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.across(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.norms[1](x))


class _Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.layers = nn.Conv2d(3, 24, 8, 8), nn.Sequential(_Mixed(16, 24), _Mixed(16, 24))
        self.last = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layers(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


class _PointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.align = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU())
        self.turn, self.points = nn.Linear(16, 9), nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32))
        self.score = nn.Linear(32, 5)

    def forward(self, x: Tensor) -> Tensor:
        turn = self.turn(self.align(x).max(2)[0]).view(-1, 3, 3) + torch.eye(3)
        turned = torch.bmm(x.transpose(2, 1), turn).transpose(2, 1)
        return F.log_softmax(self.score(self.points(turned).max(2)[0]), 1)


class _Recommended(nn.Module):
    """DLRM: bags of words of two kinds and numbers, of which all pairs are multiplied."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(20, 8, mode="sum") for _ in range(2)])
        self.bottom = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(11, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, numbers: Tensor, first: Tensor, second: Tensor) -> Tensor:
        dense = self.bottom(numbers)
        parts = torch.stack([dense, self.bags[0](first), self.bags[1](second)], 1)
        rows, columns = torch.tril_indices(3, 3, -1)
        pairs = torch.bmm(parts, parts.transpose(1, 2))[:, rows, columns]
        return torch.sigmoid(self.top(torch.cat([dense, pairs], 1)))


class _Collaborative(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(30, 16), nn.Embedding(40, 16)
        self.deep, self.last = nn.Sequential(nn.Linear(16, 8), nn.ReLU()), nn.Linear(16, 1)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        (user, own), (item, its) = self.users(user).chunk(2, -1), self.items(item).chunk(2, -1)
        return torch.sigmoid(self.last(torch.cat([user * item, self.deep(torch.cat([own, its], -1))], -1))).squeeze(-1)


class _AutoEncoder(nn.Module):
    """The mean of a variational one, with its distribution."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, 32), nn.ELU(), nn.Linear(32, 8))
        self.decode = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.1), nn.Linear(32, 64), nn.Softplus())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, spread = self.encode(x).chunk(2, -1)
        return self.decode(mean + torch.exp(0.5 * spread)), mean, spread


class _GraphConvolved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        def gathered(values: Tensor) -> Tensor:
            return torch.zeros_like(values).index_add(0, edges[1], values[edges[0]])

        return self.second(gathered(F.relu(self.first(gathered(x)))))


class _GraphAttended(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.left, self.right = nn.Linear(8, 8, bias=False), nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, x: Tensor, neighbours_mask: Tensor) -> Tensor:
        values = self.project(x)
        scores = F.leaky_relu(self.left(values) + self.right(values).transpose(1, 2), 0.2)
        return F.elu(scores.masked_fill(neighbours_mask == 0, -1e9).softmax(-1) @ values)


class _Radiance(nn.Module):
    """NeRF's: places as sines and cosines of them."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.colour = nn.Linear(27, 32), nn.Linear(59, 4)
        self.register_buffer("frequencies", 2.0 ** torch.arange(4))

    def forward(self, x: Tensor) -> Tensor:
        waves = (x[..., None] * self.frequencies).flatten(-2)
        places = torch.cat([x, torch.sin(waves), torch.cos(waves)], -1)
        return self.colour(torch.cat([F.relu(self.hidden(places)), places], -1))


class _Ranked(nn.Module):
    """The largest, all in order, where they are, and sums up to each."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.score(x)
        best, places = y.topk(4, -1)
        ordered, _ = y.sort(-1, descending=True)
        return best, places, ordered, y.gather(-1, places), torch.where(y > 0, y, -y).cumsum(1), y.argmin(-1)


class _PassedOn(nn.Module):
    """Inputs that are outputs, one of them twice, and a weight that is one."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 8)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x, self.project(x) + y, y, self.project.weight, x


class _Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.one(x)) if bool(x.sum() > 0) else torch.tanh(self.other(x)) * 2.0
        return y + x


class _Looping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        seen: list[Tensor] = []
        y = x[:, 0]
        for time in range(x.size(1)):
            y = torch.tanh(self.step(y)) + x[:, time]
            seen.append(y)
        return torch.stack(seen, 1)


def _named(name: str, make: Callable[[], nn.Module], example: Example) -> Architecture:
    draw, axes = example
    return Architecture(name, make, draw, axes)


def _layers(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers)


ARCHITECTURES = (
    _named("lstm", lambda: _Recurrent(nn.LSTM, num_layers=2), _SENTENCES),
    _named("gru_bidirectional", lambda: _Recurrent(nn.GRU, bidirectional=True), _SENTENCES),
    _named("rnn", lambda: _Recurrent(nn.RNN, bidirectional=True, nonlinearity="relu"), _SENTENCES),
    _named("unrolled_cells", _UnrolledCells, _SEQUENCES),
    _named("conditional_random_field", _RandomField, floats(2, 6, 16, batch=0)),
    _named("unet", _UNet, _OPEN_IMAGE),
    _named(
        "densenet",
        lambda: _layers(_convolved(3, 16, 7, stride=2), nn.MaxPool2d(3, 2, 1), _Dense(16), _Dense(24),
                        _convolved(32, 16, 1), nn.AvgPool2d(2), _Dense(16), _classified(24)),
        _IMAGE,
    ),
    _named("shufflenet", lambda: _layers(_convolved(3, 16), _Shuffled(16), _Shuffled(16), _classified(16)), _IMAGE),
    _named(
        "ghostnet",
        lambda: _layers(_convolved(3, 8), nn.Hardswish(), _Ghost(8, 16), _Ghost(16, 16), _classified(16)),
        _IMAGE,
    ),
    _named("senet", lambda: _layers(_convolved(3, 16), _Excited(16), nn.MaxPool2d(2), _classified(16)), _IMAGE),
    _named(
        "googlenet",
        lambda: _layers(_convolved(3, 16, stride=2), nn.MaxPool2d(3, 2, ceil_mode=True), _Inception(16),
                        _Inception(32), _classified(32)),
        _IMAGE,
    ),
    _named(
        "mobilenet_v3",
        lambda: _layers(_convolved(3, 8, stride=2), _inverted(8, 16), _inverted(8, 24), _classified(8)),
        _OPEN_IMAGE,
    ),
    _named("deeplab", _Atrous, _OPEN_IMAGE),
    _named("wavenet", _Gated, floats(1, 1, 64, batch=0, samples=2)),
    _named("normalisations", _Normalised, _IMAGE),
    _named(
        "dcgan",
        lambda: _layers(nn.ConvTranspose2d(16, 32, 4, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                        nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh()),
        floats(1, 16, 1, 1, batch=0),
    ),
    _named("detection_head", _Detected, _IMAGE),
    _named(
        "super_resolution",
        lambda: _layers(nn.Conv2d(3, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 9, 3, padding=1), nn.PixelShuffle(3)),
        _OPEN_IMAGE,
    ),
    _named(
        "video",
        lambda: _layers(nn.Conv3d(3, 8, 3, padding=1, bias=False), nn.BatchNorm3d(8), nn.ReLU(),
                        nn.MaxPool3d((1, 2, 2)), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(8, 5)),
        floats(1, 3, 4, 16, 16, batch=0),
    ),
    _named("spatial_transformer", _Transformed, image(8, name="x")),
    _named("einsum_attention", lambda: _Attended(_summed), _SEQUENCES),
    _named("causal_attention", lambda: _Attended(_causal), _SEQUENCES),
    _named(
        "encoder",
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32), 2, enable_nested_tensor=False),
        floats(6, 2, 16, name="src", time=0, batch=1),
    ),
    _named(
        "decoder",
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, activation="gelu", norm_first=True), 1),
        together(floats(4, 2, 16, name="tgt", time=0, batch=1), floats(6, 2, 16, name="memory", words=0, batch=1)),
    ),
    _named("mlp_mixer", _Mixer, _IMAGE),
    _named("pointnet", _PointNet, floats(2, 3, 20, batch=0, points=2)),
    _named(
        "dlrm",
        _Recommended,
        together(floats(2, 13, name="numbers", batch=0), indices(20, 2, 3, name="first", batch=0),
                 indices(20, 2, 3, name="second", batch=0)),
    ),
    _named(
        "collaborative_filtering",
        _Collaborative,
        together(indices(30, 4, name="user", batch=0), indices(40, 4, name="item", batch=0)),
    ),
    _named("autoencoder", _AutoEncoder, floats(2, 64, batch=0)),
    _named(
        "graph_convolution",
        _GraphConvolved,
        together(floats(6, 8, nodes=0), indices(6, 2, 10, name="edges", edges=1)),
    ),
    _named(
        "graph_attention",
        _GraphAttended,
        together(floats(2, 5, 8, batch=0), indices(2, 2, 5, 5, name="neighbours_mask", batch=0)),
    ),
    _named("radiance_field", _Radiance, floats(10, 3, points=0)),
    _named("ranking", _Ranked, floats(3, 16, batch=0)),
    _named("passed_on", _PassedOn, together(floats(2, 8, batch=0), floats(2, 8, name="y", batch=0))),
    _named("double", lambda: _layers(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3)).double(),
           ((lambda: {"x": torch.randn(2, 8, dtype=torch.float64)}), {"x": {0: "batch"}})),
    _named("half", lambda: _layers(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).half(),
           ((lambda: {"x": torch.randn(2, 8, dtype=torch.float16)}), {"x": {0: "batch"}})),
    _named("branching", lambda: torch.jit.script(_Branching()), floats(2, 8, batch=0)),
    _named("looping", lambda: torch.jit.script(_Looping()), floats(2, 3, 8, batch=0, time=1)),
)  # fmt: skip
