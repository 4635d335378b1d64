"""A stage of your own: count where each rule matches each graph.

    rlflow zoo list                          # graphs that conf/graph may name
    dvc repro                                # or, without DVC: python pipelines/count_matches.py

Script, function and stage have one name. What the stage reads and writes stands in dvc.yaml, its numbers in conf/, and
its run appears in MLflow. `tracking` lies in a checkout of RLFlow: `export PYTHONPATH=CHECKOUT/pipelines`. In RLFlow
itself a stage is a script in `pipelines/`, an entry in `dvc.yaml`, its numbers in `conf/`, and the type of its
metrics in `pipelines/experiment/documents/`.
"""

import json

from tracking.factories import graph_of
from tracking.stage import Stage, pipeline_stage

import rlflow
from rlflow.rules.matching.rewriter import Rewriter


@pipeline_stage
def count_matches(stage: Stage) -> None:
    counts = stage.each_graph(_count)
    stage.metrics.write_text(json.dumps(counts, indent=2) + "\n")
    stage.report({graph: {"rules_that_match": len(named)} for graph, named in counts.items()})


def _count(stage: Stage) -> dict[str, int]:
    """The matches on one graph, by the rule's name."""
    graph, library = graph_of(stage.settings["graph"]), rlflow.load_library()
    counts = Rewriter(library.rules).matches(graph).counts
    least = stage.settings["counting"]["least"]
    return {rule.name: count for rule, count in zip(library.rules, counts, strict=True) if count >= least}


if __name__ == "__main__":
    count_matches()
