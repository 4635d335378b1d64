"""The times that many fragments of graphs would take inside whole models, measured together.

    for timing in time_batch(models, setting="deployed"):
        if isinstance(timing, FragmentTiming):
            timing.ms, timing.sigma_ms

Most of the time that a price takes goes into filling the caches with something else before each run (`fragments`). In a
batch all fragments share that: each is run once after every eviction, one after another. 16 at a time, a price takes a
sixth of the time that it takes alone.

A price is the mean over a few sessions of their fastest run, since noise only ever adds time and equal sessions differ
for as long as they live, by where their memory lies: by 2 % if a fragment takes 9 ms, by 10 to 15 % if it takes half a
millisecond. The noise of the price, `sigma_ms`, is told from how far the sessions and their turns are apart. Measured
on 57 regions of two convolutional models in four processes, others keeping both cores busy: of the pairs of prices of a
region 5 % differ by more than two sigma, as they should.

*What a model pays once is taken off:* entering and leaving the runtime. A launch is paid by each node and stays. The
two are measured in every batch, by a session without nodes and by one of many views: how warm the runtime's own code is
depends on what ran before it, and that is twice as fast in a batch as it is alone.

*A probe makes prices comparable.* A machine has slow minutes (4 to 8 % on a virtual one, now and then 60 %), and a
price list takes many minutes. So a probe, always the same product, is timed after every eviction, and prices are scaled
by its time. That makes up for a slower processor, not for caches that others fill: callers look at
`FragmentTiming.probe_ms`, and measure again where the probe was slow.

Invariant: fragments that are timed together are timed by the same protocol as each alone, in a batch of one.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.session import Setting, weight_bytes
from rlflow.runtime.timing.fragments import EVICTION_BYTES, Fragment, Run, evict, prepare, prepare_as_is, timed

# Incremented whenever the protocol changes, so that prices of different protocols are never mixed.
PROTOCOL_VERSION = 6
_CHAINED = 64
# Each session holds the weights: so many are held together, times the sessions, and there are few of large ones.
_TOGETHER_BYTES = 256_000_000
_LARGE_BYTES = 100_000_000
_SESSIONS_IF_LARGE = 2
# A run that lost its processor is repeated, up to this multiple of the runs.
_MOST_ATTEMPTS = 3


@dataclass(frozen=True)
class BatchConfig:
    """The settings by which fragments are timed: `size` of them share an eviction of `eviction_bytes`.

    Each is run in `sessions` sessions, `turns` times in each, or once if its runs take more than `time_cap_s` seconds.
    """

    size: int = 16
    sessions: int = 3
    turns: int = 2
    time_cap_s: float = 2.0
    eviction_bytes: int = EVICTION_BYTES
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("sessions", 2), ("turns", 1), ("threads", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; a batch of timings needs at least {least}")


@dataclass(frozen=True)
class FragmentTiming:
    """Milliseconds that a fragment adds to a model that contains it, at least 0, and the noise of that, one sigma.

    `probe_ms` are those of the probe in the same batch.
    """

    ms: float
    sigma_ms: float
    probe_ms: float

    def at_pace(self, probe_ms: float) -> "FragmentTiming":
        """Return the timing on a machine on which the probe takes `probe_ms`."""
        slower = probe_ms / self.probe_ms
        return FragmentTiming(self.ms * slower, self.sigma_ms * slower, probe_ms)


def time_batch(
    models: Sequence[ModelProto],
    *,
    setting: Setting,
    config: BatchConfig = BatchConfig(),
    dimensions: Mapping[str, int] | None = None,
) -> list[FragmentTiming | RLFlowError]:
    """Measure the time that each of `models` adds to a model that contains it; the error where the runtime refuses it.

    All share their evictions, or as many as can be held together with their weights: it is for callers to make batches
    of `config.size`. No session is kept. `dimensions` gives symbolic dimensions their sizes; a model need not have all.
    """
    timings: list[FragmentTiming | RLFlowError] = []
    for group in _held_together(models):
        made = [_prepared(model, setting, config, dimensions) for model in group]
        found = iter(_timings([each for each in made if isinstance(each, Fragment)], config))
        timings.extend(each if isinstance(each, RLFlowError) else next(found) for each in made)
    return timings


def time_launch(config: BatchConfig = BatchConfig()) -> FragmentTiming:
    """Measure the launch of a node that does nothing."""
    (chain,) = _timings([_views(_CHAINED, config.threads, config.sessions)], config)
    return FragmentTiming(chain.ms / _CHAINED, chain.sigma_ms / _CHAINED, chain.probe_ms)


def time_probe_ms(config: BatchConfig = BatchConfig()) -> float:
    """Measure the milliseconds of the probe alone, which tell in a moment whether the machine is slow."""
    (runs,) = _rounds([_probe(config.threads, config.sessions)], config)
    return estimate(runs).ns / 1e6


class Estimate(NamedTuple):
    """Nanoseconds and their noise, one sigma."""

    ns: float
    sigma_ns: float


def estimate(runs: Sequence[Run]) -> Estimate:
    """Return the mean over sessions of their fastest run, of undisturbed ones if the session has any.

    The noise is that of a mean: what sessions differ by, or what the two fastest runs of a session differ by if that is
    more, over the root of the number of sessions.
    """
    fastest, gaps = [], [0.0]
    for session in {run.session for run in runs}:
        own = [run for run in runs if run.session == session]
        first, *others = sorted(run.ns for run in [run for run in own if run.undisturbed] or own)
        fastest.append(first)
        gaps.extend(float(other - first) for other in others[:1])
    between = stdev(fastest) if len(fastest) > 1 else 0.0
    within = math.hypot(*gaps) / math.sqrt(len(fastest))
    return Estimate(fmean(fastest), max(between, within) / math.sqrt(len(fastest)))


def _held_together(models: Sequence[ModelProto]) -> Iterator[Sequence[ModelProto]]:
    """Cut a list of models into parts whose weights fit into memory together; a model that does not is a part."""
    group: list[ModelProto] = []
    for model in models:
        if group and sum(map(weight_bytes, (*group, model))) > _TOGETHER_BYTES:
            yield group
            group = []
        group.append(model)
    yield group


def _prepared(
    model: ModelProto, setting: Setting, config: BatchConfig, dimensions: Mapping[str, int] | None
) -> Fragment | RLFlowError:
    sessions = config.sessions if weight_bytes(model) < _LARGE_BYTES else _SESSIONS_IF_LARGE
    try:
        return prepare(
            model, setting=setting, sessions=sessions, threads=config.threads, seed=config.seed, dimensions=dimensions
        )
    except RLFlowError as error:
        return error


def _timings(fragments: Sequence[Fragment], config: BatchConfig) -> list[FragmentTiming]:
    """Time fragments in one batch, beside the probe and what is taken off or added."""
    if not fragments:
        return []
    aids = (
        _probe(config.threads, config.sessions),
        _views(0, config.threads, config.sessions),
        _views(_CHAINED, config.threads, config.sessions),
    )
    probe, overhead, chain, *own = map(estimate, _rounds([*aids, *fragments], config))
    launch_ns = max(0.0, chain.ns - overhead.ns) / _CHAINED
    return [
        FragmentTiming(
            # Views that were taken off cost a launch each; entering and leaving the runtime is the model's cost.
            ms=max(0.0, run.ns + fragment.views * launch_ns - overhead.ns) / 1e6,
            sigma_ms=math.hypot(run.sigma_ns, overhead.sigma_ns) / 1e6,
            probe_ms=probe.ns / 1e6,
        )
        for fragment, run in zip(fragments, own, strict=True)
    ]


def _rounds(fragments: Sequence[Fragment], config: BatchConfig) -> list[list[Run]]:
    """Run the first of the fragments, the probe, after each eviction, and after it all others that need more runs."""
    runs: list[list[Run]] = [[] for _ in fragments]
    for _ in range(_MOST_ATTEMPTS * config.sessions * config.turns):
        waiting = [place for place, fragment in enumerate(fragments) if not _enough(fragment, runs[place], config)]
        if not waiting:
            break
        evict(config.eviction_bytes)
        for place in sorted({0, *waiting}):
            runs[place].append(timed(fragments[place], len(runs[place])))
    return runs


def _enough(fragment: Fragment, runs: Sequence[Run], config: BatchConfig) -> bool:
    """Return True after the undisturbed runs that are wanted, or after one of each session when the time is over."""
    if sum(run.undisturbed for run in runs) >= config.turns * len(fragment.sessions):
        return True
    return len(runs) >= len(fragment.sessions) and sum(run.ns for run in runs) >= config.time_cap_s * 1e9


@cache
def _probe(threads: int, sessions: int) -> Fragment:
    """Open the sessions of the probe, a matrix product of BERT-Base: (128, 768) by (768, 768)."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((128, 768), (768, 768)))
    value, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xy")
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([product], "probe", [value], [result], [numpy_helper.from_array(w, "w")])
    return prepare_as_is(_model(graph), {"x": x}, sessions=sessions, threads=threads)


@cache
def _views(length: int, threads: int, sessions: int) -> Fragment:
    """Open sessions of nodes, one after another, that each view one element."""
    nodes = [helper.make_node("Flatten", [f"x{i}"], [f"x{i + 1}"]) for i in range(length)]
    value, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1]) for name in ("x0", f"x{length}"))
    graph = helper.make_graph(nodes, "views", [value], [result])
    return prepare_as_is(_model(graph), {"x0": np.ones((1, 1), np.float32)}, sessions=sessions, threads=threads)


def _model(graph: GraphProto) -> ModelProto:
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
