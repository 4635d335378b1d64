"""The mutants that inputs tell apart, over many models: ordinary inputs, three revealing ones, as many as it takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow import zoo
from rlflow.equivalence.drawing import Reference
from rlflow.equivalence.reference import run_original
from rlflow.equivalence.survey import ENOUGH, Survey, surveyed
from rlflow.errors import RLFlowError
from rlflow.runtime.input_domains import uses_of
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.runtimes import OpenModel, open_model
from support.conformance.backend import case_of, load_tests
from support.zoo_names import SMALL, ZOO

DRAWS = 3
_WITHOUT_END: dict[str, Any] = {"most": 10**6, "longest_s": math.inf}
_EXPANDED = ("_expanded", "_expanded_ver18")


def ordinary_runs(model: ModelProto, session: OpenModel, reference: Reference) -> Reference:
    """Run a model on ordinary inputs of the sizes of a reference, one in three outside of its domains."""
    assert reference.sizes is not None
    rng, uses, ordinary = np.random.default_rng(0), uses_of(model), Reference()
    required = {name: use.required() for name, use in uses.items()}
    for number in range(DRAWS):
        own = required if number == DRAWS - 1 else uses
        sizes = {"dimensions": reference.sizes.named, "default_dimension": reference.sizes.other}
        ordinary.add(session, draw_inputs(model, rng, uses=own, **sizes))
    return ordinary


def shares(model: ModelProto) -> dict[str, Survey]:
    """The mutants that are told apart by each kind of inputs; `RLFlowError` for a model that runs on none."""
    session = open_model(model, "as_written")
    revealing = run_original(model, session, draws=DRAWS, exceptional=True)
    finite = run_original(model, session, draws=DRAWS)
    return {
        "ordinary": surveyed(model, ordinary_runs(model, session, revealing), **_WITHOUT_END),
        "three_draws": surveyed(model, replace(finite, sizes=None), **_WITHOUT_END),
        "equivalence": surveyed(model, revealing, **_WITHOUT_END),
    }


@dataclass
class Share:
    """The mutants of many models, and how many were told apart."""

    models: int = 0
    mutants: int = 0
    killed: dict[str, int] = field(default_factory=dict)
    below: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, name: str, found: dict[str, Survey]) -> None:
        """Count a model, if it has mutants."""
        mutants = min(survey.mutants for survey in found.values())
        if not mutants:
            return
        self.models += 1
        self.mutants += mutants
        for kind, survey in found.items():
            self.killed[kind] = self.killed.get(kind, 0) + min(survey.killed, mutants)
            if survey.killed < ENOUGH * survey.mutants:
                self.below.setdefault(kind, {})[name] = round(100 * survey.killed / survey.mutants, 1)

    def to_json(self) -> dict[str, Any]:
        """As schema `mutants` describes it."""
        return {
            "models": self.models,
            "mutants": self.mutants,
            "draws": {
                kind: {
                    "killed": killed,
                    "killed_percent": round(100 * killed / self.mutants, 2),
                    "models_below_95_percent": len(self.below.get(kind, {})),
                }
                for kind, killed in self.killed.items()
            },
        }


def zoo_models() -> Iterator[tuple[str, ModelProto]]:
    """All models of the zoo, small ones of each kind."""
    for name in ZOO:
        yield name, zoo.build(name, **SMALL.get(name, {}))


def backend_models() -> Iterator[tuple[str, ModelProto]]:
    """The models of onnx's own tests of operators, as far as ONNX Runtime runs them, not as functions written out."""
    for test in load_tests("node"):
        case = None if test.name.endswith(_EXPANDED) else case_of(test)
        if case is not None:
            yield case.name, case.model


def share_of(models: Iterator[tuple[str, ModelProto]]) -> Share:
    """The share over these models, but for those that run on no drawn input."""
    share = Share()
    for name, model in models:
        try:
            share.add(name, shares(model))
        except RLFlowError:
            continue
    return share
