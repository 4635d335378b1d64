"""Recall: the share of another rule set that this library covers.

Each equation is first tried at drawn shapes over the finite field. If it fails, the counter-example is kept, and one of
a few conditions may save it. If it holds, the library must lead from one side to the other by certified rules, helped
by verified lemmas (`synthesis/taso/lemmas.py`) and constant analysis (`synthesis/taso/constant_analysis.py`). The
outcomes are

    instance      one rule of the library leads from side to side
    derived       several rules do
    conditional   as either, under a condition without which the equation is false
    refuted       the equation is false, and a counter-example is shown
    not_found     it holds and is not derived, or no shapes fit it, or only the exact field refutes it

so relu(relu(a)) == relu(a) is an instance and transpose(a) == a is refuted.

Invariant: no false equation counts as covered; `false_controls_accepted` must be 0 for a report to mean anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rlflow.egraph.saturation import SourceOfEqualities
from rlflow.errors import TypeInferenceError
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import Array, Domain, FloatDomain
from rlflow.ops.field import FieldDomain
from rlflow.rules.library import Library
from rlflow.rules.pattern import Term
from rlflow.rules.plan import Instance, plan_of, run_plan
from rlflow.rules.verification.verify import differ
from rlflow.synthesis.prune import KnownRules
from rlflow.synthesis.taso.constant_analysis import ConstantAnalysis
from rlflow.synthesis.taso.equation_instances import Concrete, Constant, concrete
from rlflow.synthesis.taso.equations import Call, Equations, names, parse_line, parts
from rlflow.synthesis.taso.lemmas import lemmas

Outcome = Literal["instance", "derived", "conditional", "refuted", "not_found"]
OUTCOMES: tuple[Outcome, ...] = ("instance", "derived", "conditional", "refuted", "not_found")

_SIZES = (1, 2, 3, 4, 6)
_FLOAT_TOLERANCE = 1e-9  # for float64 sums of a few hundred products of numbers around 1
_FLOAT_DRAWS = 8
_MIN_ELEMENTS = 64
_RANKS = (0, 2, 3, 4)
_KERNELS = (1, 2, 3)
_GROUPS = (1, 1, 2, 2, 3)
"""Groups of convolutions to draw from; an equation that holds without groups may fail with them."""

_CONVOLUTIONS = ("conv2d", "poolavg", "poolmax", "enlarge", "Iconv", "Cpool")
_PRODUCTS = ("matmul", "transpose", "Imatmul")
_WINDOWED = ("enlarge", "Iconv", "Cpool")
_AS_WRITTEN = 0.5
"""Probability of a window that the equation itself writes out; other windows seldom fit it."""

_PATIENCE = 400
"""Attempts without new shapes after which the search for shapes ends, once there are some: there may be few."""


@dataclass(frozen=True)
class RecallConfig:
    """The effort that is spent on each equation.

    It is tried at `shapes` shapes, drawn in at most `attempts` attempts, in `trials` trials over the field at each, and
    must be derived at `derived_shapes` of them, by at most `max_iterations` of equality saturation in an e-graph of at
    most `max_nodes` nodes.
    """

    shapes: int = 24
    attempts: int = 6000
    trials: int = 3
    derived_shapes: int = 2
    max_iterations: int = 5
    max_nodes: int = 2000
    seed: int = 0


@dataclass(frozen=True)
class Case:
    """A rule at some shapes: all its pairs of sides, over variables of these types."""

    types: dict[str, TensorType]
    pairs: tuple[tuple[Concrete, Concrete], ...]

    @property
    def constants(self) -> dict[str, Constant]:
        """All constants of the sides, by name."""
        sides = [side for pair in self.pairs for side in pair]
        return {name: constant for side in sides for name, constant in side.constants.items()}

    @property
    def groups(self) -> frozenset[int]:
        """The groups of all convolutions."""
        return frozenset[int]().union(*(side.groups for pair in self.pairs for side in pair))

    def __str__(self) -> str:
        variables = (f"{name} {list(tensor_type.shape or ())}" for name, tensor_type in self.types.items())
        return ", ".join((*variables, *self.constants))


@dataclass(frozen=True)
class Found:
    """The outcome for one rule of the other set."""

    equations: Equations
    outcome: Outcome
    condition: str = ""
    counter_example: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON, without empty entries."""
        found = {"number": self.equations.number, "equation": self.equations.text, "outcome": self.outcome}
        told = {"condition": self.condition, "counter_example": self.counter_example}
        return found | {key: text for key, text in told.items() if text}


CONDITIONS: dict[str, Callable[[Case], bool]] = {
    "every convolution has one group": lambda case: case.groups <= {1},
    "all tensors have the same shape": lambda case: len(set(case.types.values())) == 1,
}
"""Conditions that may save an equation that is not true everywhere."""

FALSE_CONTROLS = (
    "matmul(a,b) == matmul(b,a)",
    "transpose(a) == a",
    "relu(ewadd(a,b)) == ewadd(relu(a),relu(b))",
    "ewmul(a,b) == ewadd(a,b)",
    "concat(0,a,b) == concat(0,b,a)",
    "matmul(a,ewmul(b,c)) == ewmul(matmul(a,b),matmul(a,c))",
    "transpose(matmul(a,b)) == matmul(transpose(a),transpose(b))",
    "conv2d(1,1,0,2,x,w) == conv2d(1,1,0,0,x,w)",
)
"""Equations that are false; if one of them is accepted, nothing else in a report can be trusted."""


def recall(
    equations: Sequence[Equations],
    library: Library,
    config: RecallConfig,
    on_progress: Callable[[int, str], None] = lambda done, text: None,
) -> list[Found]:
    """Judge each rule of another set by this library."""
    known = KnownRules(config.max_iterations, config.max_nodes)
    for rule in library.rules:
        if rule.versions.keys() == {""}:  # equations are of models that import ai.onnx alone
            known.add(rule)
    found = []
    for number, foreign in enumerate(equations):
        on_progress(number, foreign.text)
        found.append(judge(foreign, known, config))
    return found


def totals(found: Sequence[Found]) -> dict[str, int]:
    """Count the rules of each outcome."""
    counted = Counter(f.outcome for f in found)
    return {outcome: counted[outcome] for outcome in OUTCOMES}


def false_controls_accepted(library: Library, config: RecallConfig) -> int:
    """Count the false equations that are taken for true: 0, or the report is worth nothing."""
    found = recall([parse_line(text) for text in FALSE_CONTROLS], library, config)
    return sum(f.outcome != "refuted" for f in found)


def judge(rule: Equations, known: KnownRules, config: RecallConfig) -> Found:
    """Try an equation at drawn shapes, then derive it, under a condition if it is false without one."""
    rng = np.random.default_rng(config.seed)
    cases = draw_cases(rule, rng, config.shapes, config.attempts)
    if not cases:
        return Found(rule, "not_found", counter_example=f"no well-typed shapes in {config.attempts} attempts")

    false = [case for case in cases if not holds(case, rng, config.trials)]
    if not false:
        return Found(rule, _derivation(cases, known, config))
    shown = next((case for case in false if not holds_in_floats(case, rng)), None)
    if shown is None:
        return Found(rule, "not_found", counter_example="beyond the exact field, and no float shows it to be false")

    counter_example = f"the sides differ at {shown}"
    for condition, admits in CONDITIONS.items():
        admitted = [case for case in cases if admits(case)]
        if admitted and not any(map(admits, false)) and _derivation(admitted, known, config) != "not_found":
            return Found(rule, "conditional", condition, counter_example)
    return Found(rule, "refuted", counter_example=counter_example)


def holds(case: Case, rng: np.random.Generator, trials: int) -> bool:
    """Return True if both sides agree exactly in every trial over the finite field.

    There a maximum is an arbitrary function of its window, so that sides that differ may still be equal for numbers.
    Small tensors are tried more often, since a sign agrees by chance in every other element.
    """
    elements = sum(left.type.elements for left, _ in case.pairs)
    enough_trials = max(trials, -(-_MIN_ELEMENTS // elements))
    domain = FieldDomain(seeds=rng.integers(1 << 62, size=enough_trials).tolist())
    left, right = _sides(case, domain, lambda shape: domain.draw(shape, rng))
    return not any(map(differ, left, right))


def holds_in_floats(case: Case, rng: np.random.Generator) -> bool:
    """Return True if both sides agree up to rounding in all draws of float64; signs may hide a fault in one."""
    drawn = (_sides(case, FloatDomain(), rng.standard_normal) for _ in range(_FLOAT_DRAWS))
    return all(
        np.allclose(a, b, rtol=_FLOAT_TOLERANCE, atol=_FLOAT_TOLERANCE)
        for left, right in drawn
        for a, b in zip(left, right, strict=True)
    )


def _sides(case: Case, domain: Domain, draw: Callable[[tuple[int, ...]], Array]) -> tuple[list[Array], list[Array]]:
    """Compute the values of all left and of all right sides."""
    constants = case.constants
    types = case.types | {name: constant.type for name, constant in constants.items()}
    values = [
        constants[name].value(domain) if name in constants else draw(_shape(tensor_type))
        for name, tensor_type in types.items()
    ]

    instance = Instance(types, {}, {})
    left, right = (tuple(pair[side].term for pair in case.pairs) for side in (0, 1))
    return (
        run_plan(plan_of(left, instance), values, domain),
        run_plan(plan_of(right, instance), values, domain),
    )


def _derivation(cases: Sequence[Case], known: KnownRules, config: RecallConfig) -> Outcome:
    """Derive the equation at each of the largest shapes: by one rule, by several, or not; the worst outcome counts."""
    chosen = sorted(cases, key=lambda case: -sum(tensor_type.elements for tensor_type in case.types.values()))
    worst: Outcome = "instance"
    for case in chosen[: config.derived_shapes]:
        types = case.types | {name: constant.type for name, constant in case.constants.items()}
        pairs = [(left.term, right.term) for left, right in case.pairs]
        if _one_rule(pairs, types, known) or all(_one_rule([pair], types, known) for pair in pairs):
            continue

        facts: list[SourceOfEqualities] = [ConstantAnalysis(case.constants, config.seed), *lemmas()]
        if not all(known.explain_all([pair], types, facts) for pair in pairs):
            return "not_found"
        worst = "derived"
    return worst


def _one_rule(pairs: Sequence[tuple[Term, Term]], types: Mapping[str, TensorType], known: KnownRules) -> bool:
    """Return True if one rule leads from all left to all right sides, or back."""
    return known.lead_all(pairs, types) or known.lead_all([(right, left) for left, right in pairs], types)


def draw_cases(rule: Equations, rng: np.random.Generator, wanted: int, attempts: int) -> list[Case]:
    """Draw different shapes at which both sides of all pairs are well typed and of one type.

    The search ends after `attempts` attempts, or 400 attempts after the last that brought new shapes.
    """
    cases: dict[tuple[object, ...], Case] = {}
    shapes, left = _Shapes.of(rule), attempts
    while len(cases) < wanted and left:
        types, width = shapes.draw(rng)
        left -= 1
        try:
            pairs = tuple((concrete(one, types, width), concrete(other, types, width)) for one, other in rule.pairs)
        except TypeInferenceError:
            continue

        case = Case(types, pairs)
        # Constants are named by their shapes, which depend on `width` as well.
        key = (*types.values(), *case.constants)
        if key not in cases and all(one.type == other.type for one, other in pairs):
            cases[key], left = case, min(attempts, _PATIENCE)
    return list(cases.values())


@dataclass(frozen=True)
class _Shapes:
    """The constraints of an equation on the shapes of its variables.

    `filters` are the variables that are filters of a convolution, and `windows` the sizes that the equation writes out.
    """

    names: tuple[str, ...]
    operators: frozenset[str]
    scalars: frozenset[str]
    filters: frozenset[str]
    windows: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, rule: Equations) -> _Shapes:
        """Read the constraints off an equation."""
        sides = [side for pair in rule.pairs for side in pair]
        called = [part for side in sides for part in parts(side) if isinstance(part, Call)]

        def second_operands(operator: str) -> frozenset[str]:
            operands = (part.operands[1] for part in called if part.name == operator)
            return frozenset(name for operand in operands for name in names(operand))

        windows = tuple(part.numbers for part in called if part.name in _WINDOWED)
        operators = frozenset(part.name for part in called)
        return cls(names(*sides), operators, second_operands("smul"), second_operands("conv2d"), windows)

    def draw(self, rng: np.random.Generator) -> tuple[dict[str, TensorType], int]:
        """Draw shapes that often fit each other, and a width for constants.

        They have few different sizes, and an axis mostly has one size in all tensors.
        """
        rank = self._rank(rng)
        sizes = rng.permutation(_SIZES)[: rng.integers(1, 4)]
        usual = rng.choice(sizes, rank)
        faithful = rng.choice([0.5, 0.8, 0.95])
        kernel = self._window(rng, rng.choice(_KERNELS, 2))
        usual[2:] = self._window(rng, usual[2:])[: rank - 2]
        groups = rng.choice(_GROUPS)

        def shape(name: str) -> tuple[int, ...]:
            if name in self.scalars:
                return ()
            drawn = np.where(rng.random(rank) < faithful, usual, rng.choice(sizes, rank))
            if name in self.filters and rank == 4:
                drawn[1] = max(1, drawn[1] // groups)
                drawn[2:] = kernel
            return tuple(drawn.tolist())

        return {name: TensorType("float32", shape(name)) for name in self.names}, int(rng.choice(sizes))

    def _window(self, rng: np.random.Generator, other: np.ndarray) -> np.ndarray:
        """Draw a window that the equation writes out, or now and then return the `other` one."""
        return rng.choice(self.windows) if self.windows and rng.random() < _AS_WRITTEN else other

    def _rank(self, rng: np.random.Generator) -> int:
        if self.operators & set(_CONVOLUTIONS):
            return 4
        return 2 if self.operators & set(_PRODUCTS) else int(rng.choice(_RANKS))


def _shape(tensor_type: TensorType) -> tuple[int, ...]:
    return tuple(d for d in tensor_type.shape or () if isinstance(d, int))
