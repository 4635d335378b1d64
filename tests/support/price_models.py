"""Price models for tests: with trees drawn at random, or learned from times of which the formula is known."""

import random
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.fragment import describe, extract
from rlflow.cost.predicted.features import FeatureReader, Features
from rlflow.cost.predicted.physics import TERMS
from rlflow.cost.predicted.price_model import Description, Place, PriceModel, Processor, assembled
from rlflow.cost.predicted.training import Example, Forest, Table
from rlflow.cost.regions import VIEWS, partition
from rlflow.ir.graph import Graph
from rlflow.onnx_io.tree_ensemble import Tree

PACES = dict.fromkeys(TERMS, 0.003)
"""Milliseconds for one unit of each term: nothing that any machine has."""

TRAITS = {"l2_mb": 1.0, "cache_mb": 32.0, "avx512": 1.0, "amx": 0.0, "threads": 1.0, "bandwidth_gb_s": 14.0}
PROCESSOR = Processor(TRAITS, PACES, view_ms=((10.0, 0.0004), (1000.0, 0.004)), reorders=ReorderConfig())
PLACE = Place.of(PROCESSOR, None)
"""In a model of which it is not known how many weights it has: they are cold."""


def regions_of(graphs: Iterable[Graph]) -> dict[str, Graph]:
    """The distinct regions of some graphs that are not mere views, each as a graph, by signature."""
    found = {}
    for graph in graphs:
        for region in sorted(partition(graph).regions):
            if any(graph.nodes[i].op not in VIEWS for i in region):
                fragment = describe(graph, region)
                found[fragment.signature] = extract(graph, fragment)
    return found


def examples(regions: dict[str, Graph], ms: Callable[[Features], float], processor: str = "drawn") -> list[Example]:
    """Each region with the milliseconds that a formula gives it."""
    reader, made = FeatureReader(), []
    for signature, graph in regions.items():
        features = reader.features(graph, graph.order)
        made.append(Example(signature, features, ms(features), processor, PLACE.working_set_mb))
    return made


def drawn_description(features: Sequence[Features]) -> Description:
    """A description that knows all patterns of these regions."""
    numbers = [f.numbers for f in features]
    ranges = {name: (min(n[name] for n in numbers), max(n[name] for n in numbers)) for name in numbers[0]}
    grams = tuple(sorted({gram for f in features for gram in f.grams}))
    return Description(grams, ranges, {"drawn": PROCESSOR}, "drawn", trained_on={}, accuracy={})


def drawn_trees(columns: int, count: int, seed: int, depth: int = 4) -> list[Tree]:
    """Full trees with thresholds that rows of small whole numbers fall on both sides of, and on."""
    rng = random.Random(seed)
    inner, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    return [
        Tree(
            [rng.randrange(columns) for _ in range(nodes)],
            [float(rng.choice((0, 1, 2, 64, 4096))) for _ in range(inner)]
            + [rng.uniform(-0.1, 0.1) for _ in range(nodes - inner)],
            [2 * i + 1 if i < inner else -1 for i in range(nodes)],
            [2 * i + 2 if i < inner else -1 for i in range(nodes)],
        )
        for _ in range(count)
    ]


def drawn_model(graphs: Iterable[Graph], seed: int = 0, count: int = 30) -> PriceModel:
    """A model whose trees say something else of every region of these graphs."""
    description = drawn_description([e.features for e in examples(regions_of(graphs), lambda _: 1.0)])
    columns = len(description.ranges) + len(description.grams)
    return assembled(description, drawn_trees(columns, count, seed), base=0.25)


def one_leaf(table: Table) -> Forest:
    """The least that can be learned: the mean of the targets."""
    mean = float(np.average(table.targets, weights=table.weights))
    return Forest([Tree([0], [mean], [-1], [-1])], base=0.0)


def one_stump(table: Table) -> Forest:
    """The split of one column that leaves the least squared error."""
    best: tuple[float, int, float, float, float] | None = None
    for column in range(table.rows.shape[1]):
        for threshold in np.unique(table.rows[:, column])[1:]:
            below = table.rows[:, column] < threshold
            left, right = table.targets[below], table.targets[~below]
            error = float(((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum())
            if best is None or error < best[0] - 1e-9:
                best = (error, column, float(threshold), float(left.mean()), float(right.mean()))
    assert best is not None
    _, column, threshold, low, high = best
    return Forest([Tree([column, 0, 0], [threshold, low, high], [1, -1, -1], [2, -1, -1])], base=0.0)
