"""`rlflow rules why RULE MODEL`: where a rule matches, where it nearly does, and what stands in the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from rlflow.cli.arguments import parse_shape
from rlflow.cli.json_output import print_json
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import graph_of, load_model
from rlflow.onnx_io.bodies import bodies
from rlflow.rules.certificate import ASSUMPTIONS
from rlflow.rules.library import Library
from rlflow.rules.library import load as load_library
from rlflow.rules.matching.near_matches import lacking, near_matches
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.runtime.inputs import dimensions_of
from rlflow.schemas.rules import NamedRule, RuleObstacle, RulePlace, RulesWhy

_MAIN = "main graph"
_SHOWN = 3


def why(
    rule: Annotated[str, typer.Argument(help="Id or name.")],
    model: Annotated[Path, typer.Argument(help="The ONNX model to look for it in.")],
    library: Annotated[
        Path | None, typer.Option("--library", help="A library file; the shipped one by default.")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(help="Shape of an input with dynamic dimensions, as in x=1x128; repeatable."),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Print so many reasons, the nearest first.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say where a rule matches in a model, where it nearly does, and what stands in the way.

    A near match is one that was refused, because a condition does not hold or a value inside is read elsewhere, or a
    place at which all of the rule's source is there but one part.
    """
    found = chosen(load_library(library), rule)
    loaded = load_model(model)
    dimensions = dimensions_of(loaded, dict(parse_shape(text) for text in shape or ()))
    graphs = {_MAIN: graph_of(loaded, dimensions, str(model))} | dict(bodies(loaded))
    answer = RulesWhy(
        rule=NamedRule(found.id, found.name, found.equation()),
        model=str(model),
        matches=[
            RulePlace(title, _place(graph, match.nodes[0]), None)
            for title, graph in graphs.items()
            for match in Rewriter([found]).matches(graph)[0]
        ],
        near=_obstacles(graphs, found),
        lacking=sorted(set.intersection(*(set(lacking(graph, found)) for graph in graphs.values()))),
    )
    if as_json:
        print_json("rules why", answer)
    else:
        typer.echo("\n".join(_why_lines(found, answer, most)))


def chosen(library: Library, key: str) -> Rule:
    """The rule of this id or name; `InputError` with the nearest names if there is none."""
    known = {name: rule for rule in library.rules for name in (rule.id, rule.name)}
    nearest = [] if key in known else get_close_matches(key, known)
    if nearest:
        raise InputError(f"the library has no rule {key!r}: did you mean {' or '.join(nearest)}?")
    return library.get(key)


def _obstacles(graphs: Mapping[str, Graph], rule: Rule) -> list[RuleObstacle]:
    """The reasons of near matches, each with its places, the nearest and most frequent first."""
    places: dict[tuple[int, str], list[RulePlace]] = defaultdict(list)
    for title, graph in graphs.items():
        for near in near_matches(graph, rule):
            found = None if near.found is None else _place(graph, near.found)
            places[near.missing, near.reason].append(RulePlace(title, _place(graph, near.root), found))
    by_nearness = sorted(places.items(), key=lambda entry: (entry[0][0], -len(entry[1]), entry[0][1]))
    return [RuleObstacle(reason, missing, where) for (missing, reason), where in by_nearness]


def _place(graph: Graph, identifier: int) -> str:
    node = graph.nodes[identifier]
    return node.label or next(filter(None, node.names), node.op)


def _why_lines(rule: Rule, answer: RulesWhy, most: int) -> Iterator[str]:
    yield f"{rule.name}  {rule.equation()}"
    for assumption in rule.assumes:
        yield f"It assumes that {ASSUMPTIONS[assumption]}; --strict does without it."
    yield f"It matches at {_places(answer.matches)}." if answer.matches else "It matches nowhere."
    if answer.lacking:
        yield f"The model has no {' and no '.join(answer.lacking)}."
    for obstacle in answer.near[:most]:
        yield f"{len(obstacle.places):5d} x  {obstacle.reason}"
        yield f"         at {_places(obstacle.places)}"
    if len(answer.near) > most:
        yield f"and {len(answer.near) - most} more reasons: --most {len(answer.near)}, or --json"
    if not answer.near:
        yield "Nothing else comes near: more than half of its source is missing everywhere."


def _places(places: Sequence[RulePlace]) -> str:
    """The first few places, and how many more there are."""
    names = list(dict.fromkeys(f"{p.root}{'' if p.graph == _MAIN else f' in {p.graph}'}" for p in places))
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
