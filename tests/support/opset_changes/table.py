"""The table of changes, made by running nodes of every operator before and after each of its changes.

What tells the nodes apart that a change leaves alike from the others is learned from the runs: the forms (Hardmax: an
axis that is not the last one) without which no drawn node differs. They are learned from half of the runs and must
hold for the other half; a change of which no form explains the difference keeps no node's meaning.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import onnx
from scipy.stats import binom

from rlflow.onnx_io.opset_changes import ABSENT, aspects
from support.conformance.guarded_process import GuardedProcess
from support.opset_changes.drawing import schemas
from support.opset_changes.trial import drawn, is_same, outputs_of

DRAWS = 200
MOST_DRAWS = 1200
ENOUGH = 100
"""Nodes that run."""
LEAST_SEEN = 2
"""A form that fewer alike nodes had is unknown."""
CHANCE = 0.01
"""Of taking a form for the reason when the differences come from something else."""

Key = tuple[str, int, int, int]
"""An operator, the opset of its schema, the opset that changes it, and the seed of a draw."""
Form = tuple[str, str]
Case = tuple[frozenset[Form], bool]
"""The forms of a node, and whether the change leaves it alike."""


@dataclass(frozen=True)
class Transition:
    """A change of an operator: the opsets of its schemas, the older one first."""

    operator: str
    before: int
    after: int


def transitions() -> list[Transition]:
    """All changes of all operators of the installed onnx."""
    return [
        Transition(name, old.since_version, new.since_version)
        for name, versions in schemas().items()
        for old, new in pairwise(versions)
    ]


def verdict_of(key: Key) -> str:
    """Return "alike", "unlike", or "" where ONNX Runtime has nothing to compare."""
    operator, before, after, seed = key
    trial = drawn(onnx.defs.get_schema(operator, before, ""), seed)
    same = None if trial is None else is_same(trial, after - 1, after)
    return "" if same is None else "alike" if same else "unlike"


def runs_before(key: Key) -> str:
    """Return "yes" if ONNX Runtime runs the node as it is before the change."""
    operator, before, after, seed = key
    trial = drawn(onnx.defs.get_schema(operator, before, ""), seed)
    return "yes" if trial is not None and any(outputs is not None for outputs in outputs_of(trial, after - 1)) else ""


def answer_to(question: tuple[str, Key]) -> str:
    """One of the two above, by name: what a guarded process is asked."""
    return {"verdict": verdict_of, "runs before": runs_before}[question[0]](question[1])


def cases_of(transition: Transition, seeds: Iterable[int], process: GuardedProcess) -> Iterator[Case]:
    """What became of the drawn nodes that ONNX Runtime runs before the change."""
    for seed in seeds:
        key = (transition.operator, transition.before, transition.after, seed)
        verdict = process(("verdict", key))
        if verdict.startswith(("crash", "hang")):
            verdict = "unlike" if process(("runs before", key)) == "yes" else ""
        if verdict:
            assert verdict in ("alike", "unlike"), f"{key}: {verdict}"
            yield frozenset(_forms(key)), verdict == "alike"


def made(transition: Transition, process: GuardedProcess) -> dict[str, Any]:
    """The table's row of a change, from more draws where few of them run, or too few are unlike to say why."""
    cases = list(cases_of(transition, range(DRAWS), process))
    row = row_of(transition, cases)
    if 0 < len(cases) < ENOUGH or (row["alike"] and not row["kept"]):
        row = row_of(transition, [*cases, *cases_of(transition, range(DRAWS, MOST_DRAWS), process)])
    return row


def row_of(transition: Transition, cases: Sequence[Case]) -> dict[str, Any]:
    """The row that follows from these runs."""
    cases = _completed(cases)
    lost = explanation(cases)
    seen = Counter(form for forms, alike in cases if alike and lost is not None and not forms & lost for form in forms)
    kept = {form for form, number in seen.items() if number >= LEAST_SEEN}
    return {
        "operator": transition.operator,
        "before": transition.before,
        "after": transition.after,
        "alike": sum(alike for _, alike in cases),
        "unlike": sum(not alike for _, alike in cases),
        "kept": _by_aspect(kept),
        "lost": _by_aspect(lost or ()),
    }


def explanation(cases: Sequence[Case]) -> frozenset[Form] | None:
    """The forms one of which each unlike node has: those first that are common among them and rare among the others.

    None where the forms of the unlike nodes could as well be those of any others, by chance.
    """
    alike, unlike = ([forms for forms, same in cases if same is wanted] for wanted in (True, False))
    found: set[Form] = set()
    while unlike:
        usual, here = (Counter(form for forms in side for form in forms) for side in (alike, unlike))
        chances = {form: (usual[form] + 1) / (len(alike) + 2) for form in sorted(here)}
        best = max(chances, key=lambda form: here[form] / len(unlike) - chances[form])
        if binom.sf(here[best] - 1, len(unlike), chances[best]) * len(chances) > CHANCE:
            return None
        found.add(best)
        alike, unlike = ([forms for forms in side if best not in forms] for side in (alike, unlike))
    return frozenset(found)


def header() -> dict[str, Any]:
    """The table's first line: all operators with the opsets that changed them."""
    versions = {name: [schema.since_version for schema in found] for name, found in schemas().items()}
    return {"opset": max(last for found in versions.values() for last in found), "versions": versions}


def as_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table's lines."""
    return "".join(json.dumps(row) + "\n" for row in (header(), *rows))


def _forms(key: Key) -> Iterator[Form]:
    operator, before, after, seed = key
    trial = drawn(onnx.defs.get_schema(operator, before, ""), seed)
    assert trial is not None
    for aspect, forms in aspects(trial.node, trial.types, after - 1).items():
        yield from ((aspect, form) for form in forms or ())


def _completed(cases: Sequence[Case]) -> list[Case]:
    """The same, with the aspects that a node has not and others have said to be absent."""
    known = {aspect for forms, _ in cases for aspect, _ in forms if " of input" not in aspect}
    return [
        (forms | {(aspect, ABSENT) for aspect in known - {aspect for aspect, _ in forms}}, alike)
        for forms, alike in cases
    ]


def _by_aspect(forms: Iterable[Form]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for aspect, form in sorted(forms):
        found.setdefault(aspect, []).append(form)
    return found
