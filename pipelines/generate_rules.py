"""Enumerate and verify substitution rules; choose those that an agent of the graph level acts with."""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from experiment.documents.generate_rules import GenerateRules
from experiment.results import write_results
from experiment.stage_summaries import of_rules, write_summary
from tracking.factories import priced, save_prices, selection_graph_of
from tracking.stage import Stage, pipeline_stage

from rlflow.cost.base import CostModel
from rlflow.kept import Kept
from rlflow.rules.library import Library
from rlflow.rules.verification.verify import VerificationConfig
from rlflow.schemas.figures import Figure
from rlflow.search.rule_selection import Choice, RuleSet, SelectionConfig, select_rules
from rlflow.synthesis.generate import (
    GenerationReport,
    GeneratorConfig,
    LibraryConfig,
    LibraryReport,
    build_library,
)

log = logging.getLogger(__name__)


@pipeline_stage
def generate_rules(stage: Stage) -> None:
    settings = stage.settings["rules"]
    verification = VerificationConfig(**settings["verification"], seed=stage.seed)
    config = LibraryConfig.of(**settings["generation"], seed=stage.seed, verification=verification)

    started = time.perf_counter()
    with stage.progress("verifying") as on_progress:
        library, report = build_library(
            config,
            stage.checkpoint / "generation",
            on_progress=lambda done, total: on_progress(done / total, f"{done} of {total}"),
        )
    generation_s = time.perf_counter() - started
    library.save(stage.output("data/rules/library.jsonl"))

    cost_model, keep_prices = priced(stage)
    chosen: dict[str, RuleSet] = {}
    if stage.settings["formulation"] == "graph_level":  # a policy over match tokens acts with all rules
        chosen = stage.each_graph(partial(_choose, library=library, cost_model=cost_model, keep_prices=keep_prices))
    for graph, rules in chosen.items():
        rules.save(stage.output(f"data/rules/{graph}/rule_set.json"))
        stage.run.artifact(stage.output(f"data/rules/{graph}"))
    save_prices(cost_model, stage.output("data/prices/generate_rules.json"))

    metrics = _metrics(library, report, config) | {"generation_s": generation_s, "seed": stage.seed}
    selected = {graph: len(rules.choices) for graph, rules in chosen.items()}
    metrics["library"] = {"rules": len(library.rules), "selected": selected, "hash": library.hash}
    write_results(stage.metrics, GenerateRules, metrics)
    write_summary(stage.summary, of_rules(metrics))
    stage.report(metrics)


def _choose(stage: Stage, library: Library, cost_model: CostModel, keep_prices: Callable[[], None]) -> RuleSet:
    """The rules that agents act with on one graph."""
    selection = SelectionConfig(**stage.settings["rules"]["selection"], seed=stage.seed)

    def choose() -> RuleSet:
        with stage.progress(f"{stage.graph}, choosing rules") as on_progress:

            def on_search(fraction: float, text: str) -> None:
                keep_prices()
                on_progress(fraction, text)

            graph = selection_graph_of(stage.settings["graph"])
            chosen = select_rules(library, graph, cost_model, selection, on_search)
        keep_prices()
        return chosen

    chosen = Kept(stage.checkpoint, RuleSet.save, RuleSet.load, ".json").get_or("rule_set", choose)
    if chosen.choices:
        return chosen
    log.warning("no rule of the library helps %s: agents are given rules that they can only decline", stage.graph)
    idle = (Choice(r.id, r.name, 0, 0.0, 0.0, 0, 0) for r in library.rules[: selection.size])
    return RuleSet(library.hash, tuple(idle))


def _metrics(library: Library, report: LibraryReport, config: LibraryConfig) -> dict[str, Any]:
    certificates = [rule.certificate for rule in library.rules if rule.certificate]
    refused = report.false_controls_refused
    return {
        "generated": {c.family.name: _generated(c, report.families[c.family.name]) for c in config.families},
        "generation_cpu_s": report.cpu_s,
        "declared": {"rules": report.declared, "verified": report.declared, "rejected": 0},
        "unsound_rules_accepted": Figure(0.0, float(refused), "unchecked", refused).to_json(),
        "shapes_checked": sum(certificate.shapes for certificate in certificates),
        "float_checks": sum(certificate.float_cases > 0 for certificate in certificates),
    }


def _generated(config: GeneratorConfig, found: GenerationReport) -> dict[str, Any]:
    return {
        "operators": sorted({choice.op for choice in config.family.operators}),
        "max_operators": config.max_operators,
        "graphs_enumerated": found.enumerated,
        "distinct_fingerprints": found.classes,
        "candidate_pairs": found.duplicate_pairs,
        "after_renaming": found.after_renaming,
        "after_common_subgraph": found.after_instance,
        "verified": found.verified,
        "rejected": found.refuted,
        "rules": found.kept,
        "cpu_s": found.cpu_s,
    }


if __name__ == "__main__":
    generate_rules()
