"""The regions that searches and random walks meet in models of the zoo, gathered without a clock.

    gathered = gather([Configuration("bert", "bert", {"layers": 2, "hidden": 256})], GatheringConfig())
    gathered.regions                        one by one a graph that can be timed, with what is known of it beforehand
    gathered.rewrites, gathered.graphs      which of them gave way to which, and which make up a whole graph

From each configuration searches under analytic costs start, since prices near their ends decide what is delivered, and
random walks, since a search asks for prices far from them, too. At the original and at the ends of the searches every
single rewrite is tried, as a greedy search would.

Invariant: a region is gathered once, from where it was met first, and the same configurations give the same regions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost, GpuConfig
from rlflow.cost.fragment import Fragment, describe, extract
from rlflow.cost.region_record import GraphRecord, RewriteRecord, graph_to_json
from rlflow.cost.regions import VIEWS, Partition, Region, partition, updated
from rlflow.ir.graph import Graph, Header
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.rules import library
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.chains import Chains
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import replay
from studies.prices.region_grams import region_grams
from studies.walks import drawn_match

_MACHINES = (AnalyticCost(), AnalyticCost(GpuConfig(), name="gpu"))
"""One on which arithmetic and traffic count, and one on which launches do: what searches find there differs."""
_ROOFLINE = AnalyticCost()


@dataclass(frozen=True)
class Configuration:
    """A model of the zoo with settings, the family by which it is known, and versions of domains ("" is ai.onnx) whose
    operators rewrites may use in it, where these are not the zoo's.
    """

    family: str
    entry: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    domains: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        domains = {domain or "ai.onnx": version for domain, version in self.domains.items()}
        return " ".join([self.entry, *(f"{key}={value}" for key, value in {**self.settings, **domains}.items())])


@dataclass(frozen=True)
class GatheringConfig:
    """The effort of gathering from one configuration, and what is too large to be timed.

    - `expansions` of each search; `walks` of `steps` random rewrites, by turns from the original and from the searches'
      ends; `tried`: single rewrites at most of each of these graphs.
    - Regions that read and write more than `largest_bytes`, or whose roofline estimate exceeds `longest_ms`, are left
      out.
    """

    expansions: int = 40
    walks: int = 12
    steps: int = 60
    tried: int = 400
    largest_bytes: int = 64_000_000
    longest_ms: float = 80.0
    seed: int = 0


@dataclass(frozen=True)
class Candidate:
    """A region that may be timed: its graph as `graph_to_json` gives it, its signature, the bytes that it reads and
    writes, and the grams that show whether it is new.
    """

    content: Mapping[str, Any]
    signature: str
    nbytes: int
    grams: tuple[str, ...]
    family: str
    configuration: str


@dataclass
class Gathered:
    """The regions, rewrites and graphs of a family; `left_out` counts, by reason, regions that cannot be timed."""

    regions: dict[str, Candidate] = field(default_factory=dict)
    rewrites: list[RewriteRecord] = field(default_factory=list)
    graphs: list[GraphRecord] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        content = {"regions": [asdict(region) for region in self.regions.values()], "left_out": self.left_out}
        return content | {name: [record.to_json() for record in getattr(self, name)] for name in ("rewrites", "graphs")}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Gathered:
        regions = [Candidate(**{**region, "grams": tuple(region["grams"])}) for region in content["regions"]]
        return cls(
            {region.signature: region for region in regions},
            [RewriteRecord.from_json(record) for record in content["rewrites"]],
            [GraphRecord.from_json(record) for record in content["graphs"]],
            content["left_out"],
        )


def merged(families: Iterable[Gathered]) -> Gathered:
    """Return what all families gave together; a region that several have is the first one's."""
    every = Gathered()
    for one in families:
        for signature, region in one.regions.items():
            every.regions.setdefault(signature, region)
        every.rewrites += one.rewrites
        every.graphs += one.graphs
        for reason, count in one.left_out.items():
            every.left_out[reason] = every.left_out.get(reason, 0) + count
    return every


def gather(configurations: Sequence[Configuration], config: GatheringConfig) -> Gathered:
    """Gather from these models with all rules of the library."""
    rules = library.load()
    rewriter, gathered = Rewriter(rules.rules), Gathered()
    for configuration in configurations:
        graph = _graph_of(configuration)
        meeting = _Meeting(gathered, configuration, rewriter, config)
        starts = [meeting.begin(graph)]
        for cost_model in _MACHINES:
            found = Chains(rules, rewriter, cost_model).optimise(graph, Budget(expansions=config.expansions))
            starts.append(meeting.along(starts[0], found.trajectory))
            meeting.whole(starts[-1], cost_model.name)
        rng = np.random.default_rng(config.seed)
        for start in starts:
            meeting.try_each(start, rng)
        for walk in range(config.walks):
            meeting.walk(starts[walk % len(starts)], rng)
    return gathered


def _graph_of(configuration: Configuration) -> Graph:
    graph = from_onnx(zoo.build(configuration.entry, **configuration.settings))
    domains = {"": graph.header.opset, **configuration.domains}
    return replace(graph, header=Header(domains.pop(""), domains=domains))


@dataclass(frozen=True)
class _Cut:
    """A graph and its regions."""

    graph: Graph
    partition: Partition


class _Meeting:
    """Goes through variants of one model, and notes each region and each rewrite when it is met first."""

    def __init__(
        self, gathered: Gathered, configuration: Configuration, rewriter: Rewriter, config: GatheringConfig
    ) -> None:
        self.gathered, self.family, self.configuration = gathered, configuration.family, configuration.name
        self.rewriter, self.config = rewriter, config
        self._known = {(record.before, record.after, record.views) for record in gathered.rewrites}
        self._refused: set[str] = set()

    def begin(self, graph: Graph) -> _Cut:
        """Note all regions of the original, and that they make it up."""
        start = _Cut(graph, partition(graph))
        self.whole(start, "original")
        return start

    def whole(self, cut: _Cut, variant: str) -> None:
        """Note of which regions a graph consists, unless one of them cannot be timed."""
        signatures, views = self._noted(cut.graph, cut.partition.regions)
        if signatures is not None:
            self.gathered.graphs.append(GraphRecord(signatures, views, variant, self.family, self.configuration))

    def along(self, start: _Cut, trajectory: Trajectory) -> _Cut:
        """Replay a trajectory from its start, note what each step changed, and return its end."""
        graphs = replay(start.graph, trajectory, self.rewriter)
        cut = replace(start, graph=next(graphs))
        for step, graph in zip(trajectory.steps, graphs, strict=True):
            cut = self._changed(cut, graph, step.rule)
        return cut

    def try_each(self, start: _Cut, rng: np.random.Generator) -> None:
        """Carry out single rewrites of a graph, drawn if there are more than may be tried."""
        matches = [match for _, found in self.rewriter.matches(start.graph).found() for match in found]
        for place in sorted(rng.permutation(len(matches))[: self.config.tried]):
            self._rewritten(start, matches[place])

    def walk(self, start: _Cut, rng: np.random.Generator) -> None:
        """Rewrite at random."""
        cut = start
        for _ in range(self.config.steps):
            match = drawn_match(self.rewriter, cut.graph, rng)
            if match is None:
                break
            cut = self._rewritten(cut, match)

    def _rewritten(self, cut: _Cut, match: Match) -> _Cut:
        return self._changed(cut, self.rewriter.apply(cut.graph, match), match.rule.id)

    def _changed(self, before: _Cut, graph: Graph, rule: str) -> _Cut:
        """Cut a graph that one rewrite made, and note what that changed, unless it cannot be timed."""
        assert graph.edit is not None
        after = _Cut(graph, updated(before.partition, graph, graph.edit.change))
        gone, views_gone = self._noted(before.graph, after.partition.gone)
        made, views_made = self._noted(graph, after.partition.made)
        if gone is not None and made is not None and gone != made:
            old, new = (tuple(sorted(part.elements())) for part in (gone - made, made - gone))
            views = views_made - views_gone
            if (old, new, views) not in self._known:
                self._known.add((old, new, views))
                record = RewriteRecord(old, new, views, rule, self.family, self.configuration)
                self.gathered.rewrites.append(record)
        return after

    def _noted(self, graph: Graph, regions: Collection[Region]) -> tuple[Counter[str] | None, int]:
        """Return how often each signature occurs among these regions, None if one cannot be timed, and the number of
        regions of mere views.
        """
        running = [region for region in regions if not all(graph.nodes[i].op in VIEWS for i in region)]
        fragments = [describe(graph, region) for region in running]
        can_be_timed = [self._note(graph, fragment) for fragment in fragments]
        signatures = Counter(fragment.signature for fragment in fragments) if all(can_be_timed) else None
        return signatures, len(regions) - len(running)

    def _note(self, graph: Graph, fragment: Fragment) -> bool:
        """Keep a region unless it is known; False, and counted once by its reason, if it cannot be timed."""
        if fragment.signature in self.gathered.regions:
            return True
        if fragment.signature in self._refused:
            return False
        region = extract(graph, fragment)
        reason = _obstacle(region, self.config)
        if reason:
            self._refused.add(fragment.signature)
            self.gathered.left_out[reason] = self.gathered.left_out.get(reason, 0) + 1
            return False
        self.gathered.regions[fragment.signature] = Candidate(
            graph_to_json(region),
            fragment.signature,
            _nbytes(region),
            region_grams(region),
            self.family,
            self.configuration,
        )
        return True


def _obstacle(region: Graph, config: GatheringConfig) -> str:
    """Return why a region cannot be timed, "" if it can."""
    nodes = region.nodes.values()
    if any(node.is_opaque for node in nodes):
        return "carried verbatim"
    if not all(kind is not None and kind.is_static for node in nodes for kind in node.types):
        return "of unknown size"
    if _nbytes(region) > config.largest_bytes:
        return "too large"
    return "too long" if _ROOFLINE.runtime_ms(region) > config.longest_ms else ""


def _nbytes(region: Graph) -> int:
    """Return the bytes of all values of a region."""
    return sum(kind.nbytes for node in region.nodes.values() for kind in node.types if kind is not None)
