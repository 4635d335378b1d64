"""The section `egraphs`: what exploring e-graphs of models finds, what is extracted, and which rules are kept.

Of a model, the e-graph is explored with the default settings and with Tensat's, and the cheapest graph in it is found
by the integer program and greedily, then made again by rewrites. Of a family of rules, enumerated expressions are
pruned by an e-graph of what is known, and the report and the rules that are kept count.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from rlflow.cost.analytic import AnalyticCost
from rlflow.egraph import greedy_extraction, ilp
from rlflow.egraph.exploration import TENSAT, ExplorationConfig, explore
from rlflow.egraph.matching import EMatcher
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.prices import NodePrices
from rlflow.egraph.realisation import realise
from rlflow.egraph.rebuilding import ModelProblem
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.rules.verification.verify import VerificationConfig
from rlflow.synthesis.families import FAMILIES
from rlflow.synthesis.generate import GeneratorConfig, generate
from support.golden.digests import digest
from support.golden.entries import Compute
from support.golden.searches import graph_of
from support.walks import LIBRARY

GRAPHS = ("bert", "squeezenet1_1", "t5_decoder", "tiny_merge")
SETTINGS = {
    "default": replace(ExplorationConfig(), max_nodes=1500, max_uses=1000),
    "tensat": replace(TENSAT, max_nodes=1500, max_passes=4, max_uses=1000),
}
GENERATED = {"algebra": 2, "join": 2, "movement": 1}
"""The families of rules that are generated, with the most operators of a side."""

Figures = dict[str, str | int]


def entries() -> Mapping[str, Compute]:
    """Return the explorations and the generated families."""
    explored = {f"{graph}/{settings}": partial(_explored, graph, settings) for graph in GRAPHS for settings in SETTINGS}
    generated = {f"rules of {family}": partial(_generated, family) for family in GENERATED}
    return {**explored, **generated}


def _explored(name: str, settings: str) -> Figures:
    """Explore the e-graph of a model by the declared rules; return the report and what is extracted and realised."""
    graph = graph_of(name)
    rules = [rule for rule in LIBRARY.rules if rule.is_declared]
    price, egraph = NodePrices(AnalyticCost(), graph.header), ModelEGraph.from_graph(graph)
    report = explore(egraph, EMatcher(rules, graph.header, price), SETTINGS[settings])
    problem = ModelProblem.of(egraph, price)
    best = ilp.extract(problem.problem, None, ilp.Limits(time_s=None))
    greedy = greedy_extraction.extract(problem.problem)
    assert best is not None, "an e-graph holds the graph that it began with"
    assert greedy is not None
    used = {use.rule.id for use in (*egraph.uses, *egraph.idle_uses)}
    rewriter = SharingRewriter([rule for rule in LIBRARY.rules if rule.id in used])
    realised = realise(graph, egraph, problem.chosen(best), rewriter)
    steps = [(rewriter.rules[place.rule].id, place.location, structural_hash(one)) for place, one in realised.steps]
    return {
        "choices": len(problem.problem.choices),
        "choice_prices": digest(sorted(choice.price_ms for choice in problem.problem.choices)),
        "classes": report.classes,
        "limited_by": report.limited_by,
        "nodes": report.nodes,
        "nodes_by_pass": digest(report.nodes_by_pass),
        "passes": report.passes,
        "rounds": report.rounds,
        "uses": sum(report.uses.values()),
        "uses_by_rule": digest(report.uses),
        "cheapest": structural_hash(problem.graph(best, graph)),
        "cheapest_bound_ms": best.bound_ms.hex(),
        "cheapest_ms": best.objective_ms.hex(),
        "greedy": structural_hash(problem.graph(greedy, graph)),
        "greedy_ms": greedy.objective_ms.hex(),
        "realised": digest(steps),
        "realised_lacks": len(realised.missing),
    }


def _generated(family: str) -> Figures:
    """Generate a family of rules; return the report, in which CPU time does not count, and the rules that are kept."""
    config = GeneratorConfig(FAMILIES[family], GENERATED[family], verification=VerificationConfig(shapes=16))
    report = generate(config)
    counts = {name: count for name, count in report.to_json().items() if name != "cpu_s"}
    return {**counts, "ids": digest([rule.id for rule in report.rules])}
