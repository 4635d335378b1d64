"""The page of an optimisation: what was rewritten where, what that saved, how it was checked, and what was refused.

page.write(Path("report.html"), "model.onnx", optimisation_content(optimised))
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rlflow.onnx_io.bodies import bodies
from rlflow.optimise.report import OptimisationReport
from rlflow.optimise.reported.latency import LatencyChange
from rlflow.optimise.reported.steps import SubgraphReport
from rlflow.rules.certificate import ASSUMPTIONS
from rlflow.runtime.runtimes import said
from rlflow.show.changes_page import MAIN, page_graphs, saved_by_place
from rlflow.show.page_graphs import PageGraph, operators_table, price_words
from rlflow.show.rules_page import rule_content
from rlflow.trajectory.places import places

if TYPE_CHECKING:
    from rlflow.optimise.api import Optimised

_TURNED_DOWN = "What this page shows as after is the candidate that was turned down, and its savings are predictions."
_TONES = {"optimised": "good", "flushed": "good", "original": "plain"}


def optimisation_content(optimised: Optimised, command: Sequence[str] = ()) -> dict[str, Any]:
    """Return what the page of an optimisation shows; `command` are the words by which it was asked for."""
    report, rewriting = optimised.report, optimised.rewriting
    is_delivered = report.written == "optimised"
    before = {MAIN: rewriting.before} | dict(bodies(optimised.source.model))
    after = {MAIN: optimised.result.best} | (dict(bodies(optimised.model)) if is_delivered else {})
    is_pair = is_delivered or bool(report.steps)
    graphs = page_graphs(before, after if is_pair else None, rewriting.cost_model, rewriting.searched)
    steps = [*_main_steps(optimised, graphs[0]), *_body_steps(report.subgraphs, graphs)]
    rules = {rule.id: rule for rule in rewriting.rewriter.rules}
    verdict, *words = report.summary().splitlines()
    return {
        "verdict": {"text": verdict, "tone": _TONES[report.written]},
        "candidate": "" if is_delivered or not steps else _TURNED_DOWN,
        "figures": list(_figures(report)),
        "words": words,
        "saved": _saved_by_rule(steps, report.rule_names) if steps else saved_by_place(graphs),
        "whole": report.cost_before_ms,
        "prices": price_words(rewriting.cost_model),
        "steps": steps,
        "rules": {rule: rule_content(rules[rule]) for step in steps if (rule := step["rule"]) in rules},
        "graphs": [graph.content for graph in graphs],
        "operators": operators_table(graphs),
        "latency": [[where, change.before_ms, change.after_ms] for where, change in _latencies(report)],
        "checks": list(_checks(report)),
        "tried": list(_tried(report)),
        "replay": _replay(optimised, command),
    }


def _main_steps(optimised: Optimised, graph: PageGraph) -> list[dict[str, Any]]:
    rewriting, report = optimised.rewriting, optimised.report
    found = places(rewriting.start, optimised.result.trajectory, rewriting.rewriter)
    costs = [optimised.result.start_ms, *(step.cost_ms for step in report.steps)]
    names, last = rewriting.start.nodes, optimised.result.best.order
    return [
        {
            "rule": step.rule,
            "saved": round(cost - step.cost_ms, 6),
            "graph": 0,
            "before": graph.blocks_before({name for i in place.before for name in names[i].names if name}),
            "after": graph.blocks_after([last[position] for position in place.after]),
        }
        for step, cost, place in zip(report.steps, costs, found, strict=False)
    ]


def _body_steps(subgraphs: Sequence[SubgraphReport], graphs: Sequence[PageGraph]) -> Iterator[dict[str, Any]]:
    """The steps in bodies, of which the body is known and not the place in it."""
    for subgraph in subgraphs:
        number = next((n for n, graph in enumerate(graphs) if graph.title.startswith(subgraph.place)), 0)
        cost = subgraph.cost_before_ms
        for step in subgraph.steps:
            yield {
                "rule": step.rule,
                "saved": round(cost - step.cost_ms, 6),
                "graph": number,
                "before": [],
                "after": [],
            }
            cost = step.cost_ms


def _saved_by_rule(steps: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Add up what the steps of each rule saved, the most first."""
    by_rule: dict[str, list[int]] = defaultdict(list)
    for number, step in enumerate(steps):
        by_rule[step["rule"]].append(number)
    entries = [
        {
            "title": names.get(rule, rule),
            "rule": rule,
            "saved": round(sum(steps[number]["saved"] for number in numbers), 6),
            "places": [{key: steps[number][key] for key in ("graph", "before", "after")} for number in numbers],
        }
        for rule, numbers in by_rule.items()
    ]
    return sorted(entries, key=lambda entry: -entry["saved"])


def _latencies(report: OptimisationReport) -> Iterator[tuple[str, LatencyChange]]:
    """The changes of latency, each with where it was measured: in a setting, at each of several sizes."""
    for setting, change in () if report.sizes else report.latency.items():
        yield said(setting), change
    for row in report.sizes:
        for setting, change in row.latency.items():
            yield f"{said(setting)}, {row.size}", change


def _figures(report: OptimisationReport) -> Iterator[list[str]]:
    """The figures at the top: what each is, its value, and a remark."""
    for where, change in _latencies(report):
        verdict = change.verdict
        bounds = f", interval {verdict.low:.3f} to {verdict.high:.3f}" if verdict.bounded else ""
        value = f"{change.before_ms:.3f} → {change.after_ms:.3f} ms"
        yield [f"Latency {where}", value, f"{verdict.ratio:.3f} times as fast{bounds}"]
    costs = f"{report.cost_before_ms:.3f} → {report.cost_after_ms:.3f} ms"
    yield ["Predicted cost", costs, f"{report.improvement_percent:.1f} % saved"]
    yield ["Operators", f"{report.nodes_before} → {report.nodes_after}", _counted(len(report.steps), "step")]
    if report.steps and report.equivalence.draws:
        error = f"{report.equivalence.max_relative_error:.1e}"
        yield ["Largest error", error, f"relative; tolerance {report.equivalence.tolerance:.1e}"]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _checks(report: OptimisationReport) -> Iterator[list[str]]:
    equivalence = report.equivalence
    yield ["Equal?", equivalence.summary]
    for setting, each in equivalence.by_setting.items():
        relative, absolute = each.max_relative_error, each.max_absolute_error
        yield [f"Errors {said(setting)}", f"relative {relative:.1e}, absolute {absolute:.1e}"]
    yield ["Tolerance", f"{equivalence.tolerance:.1e}, relative to the largest value of an output"]
    yield ["Draws", f"{equivalence.draws} of {report.draws_asked} inputs drawn, from seed {report.seed}"]
    if equivalence.float64 is not None:
        yield ["In float64", str(equivalence.float64)]
    for where, change in _latencies(report):
        yield [f"Latency {where}", change.summary]
    for at_size in report.sizes:
        yield [f"Equal at {at_size.size}?", at_size.equivalence.summary]
    for row in report.settings:
        yield [f"Beside others, {said(row.setting)}", row.summary]
    for assumption, rules in report.assumptions.items():
        yield ["Assumes", f"{ASSUMPTIONS[assumption]} ({', '.join(report.rule_names.get(r, r) for r in rules)})"]
    for name, shape in report.pinned.items():
        yield ["Accepts only", f"{name} of shape {'x'.join(map(str, shape))}"]
    if report.opset_after != report.opset_before:
        yield ["Opset", f"{report.opset_before} → {report.opset_after}"]
    yield ["Machine", f"{report.hardware}, {_counted(report.threads, 'thread')}"]


def _tried(report: OptimisationReport) -> Iterator[list[str]]:
    """List all that was tried besides, each with what came of it."""
    names = report.rule_names
    for refusal in (*report.refusals, *(r for subgraph in report.subgraphs for r in subgraph.refusals)):
        rules = f" By {', '.join(names.get(rule, rule) for rule in refusal.rules)}." if refusal.rules else ""
        shown = f" What shows it is in {refusal.reproducer}." if refusal.reproducer else ""
        yield [f"Refused in {refusal.phase}", f"{refusal.summary}{rules}{shown}"]
    for racer in report.race:
        without = f" without {', '.join(names.get(rule, rule) for rule in racer.without)}" if racer.without else ""
        came = f"{racer.ratio:.3f} times as fast as the original in {_counted(racer.rounds, 'round')}"
        yield [f"Raced: {_counted(racer.steps, 'step')}{without}", came]
    if report.passes is not None:
        yield ["Passes first", report.passes.summary]
    for subgraph in report.subgraphs:
        if subgraph.left_because:
            yield [f"Unchanged: {subgraph.place}", subgraph.left_because]
    if report.measured is not None:
        measured = report.measured
        words = f"{measured.before_ms:.3f} ms → {measured.after_ms:.3f} ms, the least of {measured.graphs} graphs"
        yield ["Measured part by part", words]
    effort = f"{report.effort.rewrites} rewrites carried out, {report.effort.prices_asked} priced"
    yield [f"Method {report.method}", f"{effort}, in {report.optimisation_s:.1f} s"]
    if report.time_spent.phases:
        yield ["Time", str(report.time_spent)]


def _replay(optimised: Optimised, command: Sequence[str]) -> dict[str, Any]:
    """The commands that do it again, and the file of steps that one of them takes."""
    report, rewriting = optimised.report, optimised.rewriting
    commands = [["The same search, which may find something else in its time", shlex.join(command)]] if command else []
    trajectory = optimised.result.trajectory
    if not trajectory.steps:
        return {"commands": commands}
    model = "MODEL" if optimised.source.file is None else report.input
    name = f"{PurePath(model).stem}.trajectory.jsonl"
    shapes = [
        word
        for tensor, shape in rewriting.shapes.items()
        for word in ("--shape", f"{tensor}={'x'.join(map(str, shape))}")
    ]
    words = ["rlflow", "replay", name, model, "-o", "replayed.onnx", *shapes]
    begun = (
        ""
        if rewriting.is_from_the_model
        else " (they begin at another model than the given one: after what was done before the search)"
    )
    commands.append([f"These steps, each checked by its hash{begun}", shlex.join(words)])
    return {"commands": commands, "file": {"name": name, "text": json.dumps(json.loads(trajectory.to_json())) + "\n"}}
