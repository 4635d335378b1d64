"""Time the graph's basic operations on BERT, by number of layers; prints JSON, all times in milliseconds.

    python benchmarks/graph_speed.py [--layers 12 96] [--repetitions 7]

Best and median over repetitions, each on a graph whose cached order is fresh. `replace_ms` is one edit that adds a node
in the middle of the graph; `matches_from_scratch_ms` looks for all matches of the shipped rule library, and
`step_ms` applies a match in the middle, orders, hashes and looks for matches again where the edit was.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from rlflow import zoo
from rlflow.ir import Graph, Node, Ref, structural_hash, validate
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.rules import library
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter

SMALL = {"hidden": 64, "heads": 4, "intermediate": 128, "sequence": 128, "vocabulary": 100}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[12, 96])
    parser.add_argument("--repetitions", type=int, default=7)
    arguments = parser.parse_args()
    results = {f"bert_{layers}_layers": measure(layers, arguments.repetitions) for layers in arguments.layers}
    json.dump(results, sys.stdout, indent=2)
    sys.stdout.write("\n")


def measure(layers: int, repetitions: int) -> dict[str, object]:
    model = zoo.build("bert", layers=layers, **SMALL)
    graph = from_onnx(model)
    rewriter = Rewriter(library.load().rules)
    matches = [match for of_rule in rewriter.matches(graph) for match in of_rule]
    middle = matches[len(matches) // 2]
    timed = {
        "import_ms": lambda _: from_onnx(model),
        "export_ms": to_onnx,
        "order_ms": lambda g: g.order,
        "hash_and_order_ms": structural_hash,
        "replace_ms": _one_edit,
        "validate_ms": validate,
        "matches_from_scratch_ms": rewriter.matches,
        "step_ms": lambda _: _one_step(rewriter, graph, middle),
    }
    return {"nodes": len(graph.nodes), "running_nodes": len(graph.order)} | {
        name: _milliseconds(action, graph, repetitions) for name, action in timed.items()
    }


def _milliseconds(action: Callable[[Graph], object], graph: Graph, repetitions: int) -> dict[str, float]:
    times = []
    for _ in range(repetitions):
        fresh = replace(graph)
        start = time.perf_counter_ns()
        action(fresh)
        times.append((time.perf_counter_ns() - start) / 1e6)
    return {"median": round(statistics.median(times), 3), "best": round(min(times), 3)}


def _one_edit(graph: Graph) -> Graph:
    middle = next(i for i in sorted(graph.nodes)[len(graph.nodes) // 2 :] if graph.nodes[i].op == "Add")
    old, new = graph.nodes[middle], graph.next_id
    swapped = Node("Add", old.inputs[::-1], old.attributes, old.types, old.names)
    return graph.replace({new: swapped}, {Ref(middle): Ref(new)})


def _one_step(rewriter: Rewriter, graph: Graph, match: Match) -> str:
    child = rewriter.apply(graph, match)
    rewriter.matches(child)
    return structural_hash(child)


if __name__ == "__main__":
    main()
