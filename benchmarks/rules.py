"""Study the rules: how they are generated, how they hold, where they match.

`make bench NAME=rules` takes a quarter of an hour.

    python benchmarks/rules.py [--instances 1000] [--recall FILE ...]

The results go to data/results/rule_study/metrics.json. The shipped library is generated again, and each of its rules is
tried at that many drawn instances, all of them in ONNX Runtime. Then its matches on the graphs of the paper's Table 1
are counted, and the rules that fire there when all declared ones are switched off. FILE has the equations of another
rule set, each of which is looked for as `rlflow rules recall` does.
"""

import argparse
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
from studies.measurements import RuleStudy
from studies.published import publish

from rlflow import zoo
from rlflow.cli.progress import progress_bar
from rlflow.errors import RuleError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.rules import library as rule_library
from rlflow.rules.declared.catalogue import false_controls
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.rules.verification.stress import StressReport, stress
from rlflow.rules.verification.verify import Refutation, VerificationConfig, check_false_controls, verify
from rlflow.synthesis.families import SHIPPED
from rlflow.synthesis.generate import TRIALS, LibraryConfig, build_library
from rlflow.synthesis.taso import recall
from rlflow.synthesis.taso.equations import Equations, read_equations

RESULT = Path("data/results/rule_study/metrics.json")
# The paper's Table 1: substitutions available on the graph as it is.
PAPER_LOCATIONS = {"inception_v3": 56, "resnet18": 40, "resnet50": 228, "squeezenet1_1": 288, "bert": 80, "vit": 60}
_WALK = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--recall", type=Path, nargs="*", default=[])
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    foreign = {path.name: read_equations(path) for path in arguments.recall}  # what cannot be read is told at once
    library = rule_library.load()
    numbered = len(enumerated(library))
    document = {
        "library": {"hash": library.hash, "declared": len(library.rules) - numbered, "enumerated": numbered},
        "generation": generation(library),
        "verification": verification(library.rules),
        "endurance": endurance(library.rules, arguments.instances),
        "graphs": {name: start(name, library, locations) for name, locations in PAPER_LOCATIONS.items()},
        "recall": {name: recalled(equations, library) for name, equations in foreign.items()},
    }
    publish(RESULT, RuleStudy, document, __file__)
    logging.info("wrote %s", RESULT)


def enumerated(library: Library) -> list[Rule]:
    return [rule for rule in library.rules if rule.origin.startswith("enumerated")]


def generation(library: Library) -> dict[str, Any]:
    """Figures of the generation, by family; `RuleError` if the shipped library is not what the generator builds."""
    with TemporaryDirectory() as folder:
        built, report = build_library(LibraryConfig.of(SHIPPED, TRIALS, 0, VerificationConfig()), Path(folder))
    if built.hash != library.hash:
        raise RuleError("the shipped library is not what `rlflow rules generate` builds: generate it again")
    keys = (
        "enumerated",
        "classes",
        "duplicate_pairs",
        "after_renaming",
        "after_instance",
        "verified",
        "refuted",
        "kept",
    )
    families = {
        name: {"max_operators": SHIPPED[name], "cpu_s": found.cpu_s} | {key: getattr(found, key) for key in keys}
        for name, found in report.families.items()
    }
    return {"families": families, "cpu_s": report.cpu_s}


def verification(rules: Sequence[Rule]) -> dict[str, Any]:
    """Figures of verifying every rule anew, as certificates are made."""
    config = VerificationConfig(seed=1)
    refused = check_false_controls(false_controls(), config)
    begun = process_time()
    outcomes = []
    with progress_bar("verifying") as on_progress:
        for rule in rules:
            on_progress(len(outcomes) / len(rules), rule.name)
            outcomes.append(verify(rule, config))
    mean_ms = 1e3 * (process_time() - begun) / len(rules)
    refuted = sum(isinstance(outcome, Refutation) for outcome in outcomes)
    return {"rules": len(rules), "refuted": refuted, "false_controls_refused": refused, "mean_ms": mean_ms}


def endurance(rules: Sequence[Rule], instances: int) -> dict[str, Any]:
    """Figures of trying each rule at `instances` drawn instances, in the field and in ONNX Runtime."""
    outcomes = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool, progress_bar("enduring") as on_progress:
        for rule, submitted in [(rule, pool.submit(stress, rule, instances, 2)) for rule in rules]:
            on_progress(len(outcomes) / len(rules), rule.name)
            outcomes.append(submitted.result())
    survived = [outcome for outcome in outcomes if isinstance(outcome, StressReport)]
    for rule, outcome in zip(rules, outcomes, strict=True):
        if isinstance(outcome, Refutation):
            logging.error("%s: %s", rule.id, outcome)
    return {
        "instances_asked": instances,
        "instances_per_rule": fmean(outcome.instances for outcome in survived),
        "instances": sum(outcome.instances for outcome in survived),
        "rules": len(rules),
        "refuted": len(rules) - len(survived),
        "cancelled": sum(outcome.cancelled for outcome in survived),
        "max_relative_error": max(outcome.max_relative_error for outcome in survived),
    }


def start(name: str, library: Library, paper_locations: int) -> dict[str, int]:
    """The rules and locations that match a graph as it is, and the enumerated rules that fire when they are alone."""
    graph = from_onnx(zoo.build(name))
    matches = Rewriter(library.rules).matches(graph)
    return {
        "nodes": len(graph.order),
        "rules": sum(map(bool, matches)),
        "locations": sum(map(len, matches)),
        "paper_locations": paper_locations,
        "enumerated_rules_that_fire": len(fired(graph, enumerated(library))),
    }


def fired(graph: Graph, rules: Sequence[Rule]) -> set[str]:
    """Ids of the rules that a random walk applied."""
    rewriter, rng, seen = Rewriter(rules), np.random.default_rng(0), set[str]()
    for _ in range(_WALK):
        available = [(rule, found) for rule, found in zip(rules, rewriter.matches(graph), strict=True) if found]
        if not available:
            break
        rule, found = available[rng.integers(len(available))]
        graph = rewriter.apply(graph, found[rng.integers(len(found))])
        seen.add(rule.id)
    return seen


def recalled(foreign: Sequence[Equations], library: Library) -> Mapping[str, Any]:
    config = recall.RecallConfig(seed=0)
    accepted = recall.false_controls_accepted(library, config)
    found = recall.recall(foreign, library, config)
    alone = library.select([rule.id for rule in enumerated(library)])
    return {
        "equations": len(found),
        "false_controls_accepted": accepted,
        "totals": recall.totals(found),
        "totals_of_enumerated_rules_alone": recall.totals(recall.recall(foreign, alone, config)),
    }


if __name__ == "__main__":
    main()
