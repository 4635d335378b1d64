"""Models with masks, dimensions of no elements and huge numbers compute the same after any rewrite by the rules.

Each model is rewritten at random, some steps long, and what comes out runs in ONNX Runtime, as written and as deployed,
on the values for which it was made: rows that are hidden altogether, no tokens, an empty batch. The first ones are
built after public reports (iree#24175, pytorch#159973, onnx#8068), the others are their siblings.
"""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from support.carried_values import SUBJECTS, Feeds, Subject

from rlflow.errors import RLFlowError
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.rules.declared.catalogue import false_controls
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import SETTINGS, open_session, run

STEPS, WALKS = 5, 4
RULES = [replace(rule, profitable_if=()) for rule in load().rules]
REWRITER = Rewriter(RULES)


def computed(made: onnx.ModelProto, feeds: tuple[Feeds, ...]) -> list[np.ndarray]:
    sessions = [open_session(made, setting) for setting in SETTINGS]
    return [value for session in sessions for fed in feeds for value in run(session, fed).values()]


def differing(subject: Subject, rewriter: Rewriter, wanted: list[np.ndarray], seed: int) -> tuple[list[str], int]:
    """Walk at random; return the rules up to the first step that changes an output, and the steps taken."""
    rng, graph, taken = np.random.default_rng(seed), from_onnx(subject.model), list[str]()
    for step in range(STEPS):
        found = [match for matches in rewriter.matches(graph) for match in matches]
        if not found:
            return [], step
        match = found[int(rng.integers(len(found)))]
        taken.append(match.rule.name)
        graph = rewriter.apply(graph, match)
        try:
            values = computed(to_onnx(graph), subject.feeds)
        except RLFlowError:
            return taken, step + 1
        if not all(
            np.allclose(a, b, rtol=1e-2, atol=1e-2, equal_nan=True) for a, b in zip(wanted, values, strict=True)
        ):
            return taken, step + 1
    return [], STEPS


@pytest.mark.parametrize("name", SUBJECTS)
def test_no_rewrite_changes_what_is_masked_or_empty(name: str) -> None:
    subject = SUBJECTS[name]()
    wanted = computed(subject.model, subject.feeds)
    steps = 0
    for seed in range(WALKS):
        wrong, taken = differing(subject, REWRITER, wanted, seed)
        assert not wrong
        steps += taken
    assert steps or name in UNTOUCHED


@pytest.mark.parametrize(
    ("control", "name"),
    [
        ("masked-rows-are-ordinary", "padded-rows"),
        ("attention-hides-rows-alike", "attention-stored-mask"),
        ("attention-to-nothing", "attention-unmasked"),
    ],
)
def test_a_rule_without_its_condition_is_seen(control: str, name: str) -> None:
    """The walks are not vacuous: one step by the rule as it was, before it said where it holds, is enough."""
    subject = SUBJECTS[name]()
    rewriter = Rewriter([rule for rule in false_controls() if rule.name == control])
    wanted = computed(subject.model, subject.feeds)
    assert differing(subject, rewriter, wanted, seed=0)[0] == [control]


UNTOUCHED = ("padded-rows",)
"""Models at which every rule of today would do harm, so that none applies."""
