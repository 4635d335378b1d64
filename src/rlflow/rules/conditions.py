"""From an equality that was seen at one shape to a rule as general as verification admits.

Each step widens what the variables and attributes may be; where the wider rule is refuted, a condition in the closed
language of `expression` is mined that tells the good instances from the bad ones. A step that still does not verify is
not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, count, islice, permutations, product
from random import Random
from typing import Any

import numpy as np

from rlflow.errors import RuleError, TypeInferenceError
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import elementwise
from rlflow.rules import pattern
from rlflow.rules.expression import Expression, holds
from rlflow.rules.instances import Instance, Sampler
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.prune import type_of
from rlflow.rules.rule import Certificate, Rule, VariableSpec, with_short_names
from rlflow.rules.verify import VerificationConfig, exact_difference, verify

_MINING_DRAWS = 96
_MIN_POSITIVES = 3
_MAX_ATTEMPTS = 24
"""Combinations of attributes that are tried for one rule."""

_SHAPE_BLIND = frozenset(o.name for o in elementwise.OPERATORS) | {"Transpose"}
"""Operators that ask nothing of their operands' shapes but that they broadcast."""


@dataclass(frozen=True)
class Certifier:
    """Tests rules in the exact field, and gives those that hold a certificate."""

    config: VerificationConfig

    def certify(self, rule: Rule) -> Rule | None:
        """The rule with its certificate; None if it is refuted, or if no instance of it can be drawn."""
        try:
            outcome = verify(rule, self.config)
        except RuleError:
            return None
        return replace(rule, certificate=outcome) if isinstance(outcome, Certificate) else None

    def certify_on_condition(self, rule: Rule) -> Rule | None:
        """The rule under what condition makes it true, if the language has one."""
        try:
            where = mine(rule, np.random.default_rng(self.config.seed), self.config)
        except RuleError:
            return None
        return self.certify(replace(rule, where=(*rule.where, *where))) if where else None

    def first(self, rules: Sequence[Rule]) -> Rule | None:
        """The first rule that holds, or else the first for which there is a condition."""
        for attempt in (self.certify, self.certify_on_condition):
            accepted = next(filter(None, map(attempt, rules)), None)
            if accepted is not None:
                return accepted
        return None


def mine(rule: Rule, rng: np.random.Generator, config: VerificationConfig) -> tuple[Expression, ...] | None:
    """A conjunction that no counter-example among drawn instances satisfies; None if the language has none.

    Where the sides never differ, a target that is not well typed counts as one: the condition then says where it is.
    Of all predicates, those are taken that rule out most counter-examples and fewest good instances.
    """
    good, bad, untyped = _sorted_instances(rule, rng, config)
    good = [i for i in good if any(kind.elements > 1 for kind in i.types.values())]  # of one element, all is alike
    bad = bad or untyped
    counter_examples = tuple(bad)
    predicates = list(_predicates(rule))
    chosen: list[Expression] = []
    while bad:
        best, best_score = None, 0.0
        for predicate in predicates:
            kept = sum(holds(predicate, i.scope) for i in good)
            excluded = sum(not holds(predicate, i.scope) for i in bad)
            score = kept / max(1, len(good)) + excluded / len(bad)
            if excluded and kept >= _MIN_POSITIVES and score > best_score:
                best, best_score = predicate, score
        if best is None:
            return None
        chosen.append(best)
        good = [i for i in good if holds(best, i.scope)]
        bad = [i for i in bad if holds(best, i.scope)]
    return _without_idle(chosen, counter_examples)


def _without_idle(conjunction: Sequence[Expression], counter_examples: Sequence[Instance]) -> tuple[Expression, ...]:
    """What still excludes every counter-example once the others are there."""
    kept = list(conjunction)
    for predicate in conjunction:
        others = [p for p in kept if p != predicate]
        if not any(all(holds(p, i.scope) for p in others) for i in counter_examples):
            kept = others
    return tuple(kept)


def _sorted_instances(
    rule: Rule, rng: np.random.Generator, config: VerificationConfig
) -> tuple[list[Instance], list[Instance], list[Instance]]:
    """Those at which both sides agree, those at which they do not, and those at which the target is not well typed."""
    good: list[Instance] = []
    bad: list[Instance] = []
    untyped: list[Instance] = []
    sampler, random = Sampler(rule), Random(config.seed)
    for _ in range(_MINING_DRAWS):
        instance = sampler.draw(random)
        case = sampler.sides(instance)
        if case is None:
            untyped.append(instance)
        else:
            (bad if exact_difference(case, rng, config) else good).append(instance)
    return good, bad, untyped


def _predicates(rule: Rule) -> Iterator[Expression]:
    names = pattern.variables(*rule.source)
    attributes = [a for a, kind in rule.attributes.items() if kind[0] == "permutation"]
    axes = [a for a, kind in rule.attributes.items() if kind[0] == "axis"]
    for a in attributes:
        yield ["swaps_last_two", a]
    for a, b in combinations(attributes, 2):
        yield ["is_identity", ["compose", a, b]]
        yield ["==", a, b]
    for name in names:
        yield ["==", ["elements", name], 1]
    dimensions: list[Expression] = [["dim", name, axis] for name in names for axis in (-1, -2, *axes)]
    for dimension in dimensions:
        yield ["==", dimension, 1]
    for one, other in combinations(dimensions, 2):
        yield ["==", one, other]
    for one, other in combinations(names, 2):
        yield ["==", ["shape", one], ["shape", other]]


def generalised(rule: Rule, config: VerificationConfig, dimensions: Mapping[str, int]) -> Rule | None:
    """The certified rule, widened as far as it verifies; None if it is refuted as it stands.

    Each step is tested quickly and the outcome thoroughly; where a quick test was deceived, all is done again with
    thorough ones. `dimensions` numbers the symbols of the rule's templates.
    """
    thorough = Certifier(config)
    quick = Certifier(replace(config, turned=1, float_cases=0, seed=config.seed + 1))
    for certifier in (quick, thorough):
        widest = _widened(rule, certifier, dimensions)
        accepted = thorough.certify(with_short_names(widest)) if widest is not None else None
        if accepted is not None:
            return accepted
    return None


def _widened(rule: Rule, certifier: Certifier, dimensions: Mapping[str, int]) -> Rule | None:
    widest = certifier.first([rule])
    if widest is None:
        return None
    for widen in _WIDENINGS:
        widest = certifier.first(list(widen(replace(widest, certificate=None), dimensions))) or widest
    for name in pattern.variables(*widest.source):
        widest = _of_any_rank(widest, name, certifier) or widest
    return widest


def _with_distinct_variables(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """Each occurrence its own variable: a + (a + b) = b + (a + a) is an instance of associativity."""
    sides = (rule.source[0], rule.target[0])
    counts = [_occurrences(side) for side in sides]
    repeated = [name for name, count in counts[0].items() if count > 1 and count == counts[1].get(name)]
    if not repeated:
        return
    fresh = {name: [f"{name}{i}" for i in range(counts[0][name])] for name in repeated}
    specs = dict(rule.variables) | {new: rule.spec(name) for name, made in fresh.items() for new in made}
    source = _relabelled(sides[0], {name: list(made) for name, made in fresh.items()})
    for orders in product(*(permutations(fresh[name]) for name in repeated)):
        target = _relabelled(sides[1], {name: list(order) for name, order in zip(repeated, orders, strict=True)})
        yield replace(rule, source=(source,), target=(target,), variables=_used(specs, source))


def _with_shared_parts(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """A part that both sides have, but are not, replaced by a variable: then it does not matter."""
    source, target = rule.source[0], rule.target[0]
    symbols = {number: symbol for symbol, number in dimensions.items()}
    types = {name: _sized(spec, dimensions) for name, spec in rule.variables.items()}
    for part in dict.fromkeys(pattern.subterms(source)):
        if isinstance(part, Apply) and part not in (source, target) and part in pattern.subterms(target):
            shape = type_of(part, types).shape or ()
            shared = VariableSpec(shape=tuple(symbols.get(d, d) if isinstance(d, int) else 1 for d in shape))
            sides = [pattern.rebuilt(side, partial(_hidden, part)) for side in (source, target)]
            variables = _used({**rule.variables, "shared": shared}, sides[0])
            if set(pattern.variables(sides[1])) <= variables.keys():
                yield replace(rule, source=(sides[0],), target=(sides[1],), variables=variables)


def _hidden(part: Term, term: Term) -> Term:
    return Variable("shared") if term == part else term


def _sized(spec: VariableSpec, dimensions: Mapping[str, int]) -> TensorType:
    return TensorType("float32", tuple(dimensions[d] if isinstance(d, str) else d for d in spec.shape or ()))


def _occurrences(term: Term) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in pattern.subterms(term):
        if isinstance(part, Variable):
            counts[part.name] = counts.get(part.name, 0) + 1
    return counts


def _relabelled(term: Term, names: dict[str, list[str]]) -> Term:
    """Variables by the names that are left for them, which are used up from left to right."""

    def renamed(part: Term) -> Term:
        return Variable(names[part.name].pop(0)) if isinstance(part, Variable) and part.name in names else part

    return pattern.rebuilt(term, renamed)


def _used(specs: Mapping[str, VariableSpec], source: Term) -> dict[str, VariableSpec]:
    return {name: specs[name] for name in pattern.variables(source) if name in specs}


def _with_distinct_symbols(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """Dimensions that no operator needs to be equal, each a symbol of its own."""
    numbers = dict(dimensions)
    changed = rule
    for name, spec in rule.variables.items():
        for axis, symbol in enumerate(spec.shape or ()):
            fresh = f"{symbol}_{name}"
            if not isinstance(symbol, str) or _count(changed, symbol) < 2:
                continue
            candidate = _with_symbol(changed, name, axis, fresh)
            trial = numbers | {fresh: next(n for n in count(2) if n not in numbers.values())}
            if _is_typed(candidate, trial):
                changed, numbers = candidate, trial
    if changed is not rule:
        yield changed


def _count(rule: Rule, symbol: str) -> int:
    return sum((spec.shape or ()).count(symbol) for spec in rule.variables.values())


def _with_symbol(rule: Rule, name: str, axis: int, symbol: str) -> Rule:
    shape = rule.spec(name).shape or ()
    spec = VariableSpec(shape=(*shape[:axis], symbol, *shape[axis + 1 :]))
    return replace(rule, variables={**rule.variables, name: spec})


def _is_typed(rule: Rule, numbers: Mapping[str, int]) -> bool:
    types = {name: _sized(spec, numbers) for name, spec in rule.variables.items()}
    try:
        return type_of(rule.source[0], types) == type_of(rule.target[0], types)
    except TypeInferenceError:
        return False


def _of_any_shape(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """No templates at all where all operators only broadcast; what was a scalar may at least be of any rank."""
    if all(node.op in _SHAPE_BLIND for node in pattern.operators(*rule.source, *rule.target)):
        yield replace(rule, variables={})
        scalars = [name for name, spec in rule.variables.items() if spec.shape == ()]
        if scalars:
            yield replace(rule, variables={}, where=tuple(["==", ["elements", s], 1] for s in scalars))


def _of_any_permutation(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """Transposes by any permutation of any rank: each of the source by its own or all by one, those of the target by
    one of the source's or its inverse.
    """
    wider = _leading(rule, [name for name, spec in rule.variables.items() if spec.shape])
    for shared in (False, True):
        source, attributes = _with_permutations(rule.source[0], shared)
        places = sum(isinstance(t, Apply) and t.op == "Transpose" for t in pattern.subterms(rule.target[0]))
        options = [*attributes, *(["inverse", a] for a in attributes)]
        for choice in islice(product(options, repeat=places), _MAX_ATTEMPTS if attributes else 0):
            target = _transposed(rule.target[0], partial(_next, iter(choice)))
            yield replace(wider, source=(source,), target=(target,), attributes=attributes)


def _with_permutations(source: Term, shared: bool) -> tuple[Term, dict[str, Any]]:
    attributes: dict[str, Any] = {}

    def name(part: Apply) -> str:
        chosen = f"?p{0 if shared else len(attributes)}"
        attributes[chosen] = ["permutation", *pattern.variables(part)]
        return chosen

    return _transposed(source, name), attributes


def _of_any_axis(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """Joints along any axis of tensors of any rank, where all lie along one and nothing else asks for shapes."""
    nodes = pattern.operators(*rule.source, *rule.target)
    axes = {value for node in nodes if node.op == "Concat" for name, value in node.attributes if name == "axis"}
    if len(axes) != 1 or not {node.op for node in nodes} <= _SHAPE_BLIND | {"Concat"}:
        return

    def widened(part: Term) -> Term:
        if isinstance(part, Variable) or part.op != "Concat":
            return part
        return replace(part, attributes=(("axis", "?axis"),))

    source, target = (tuple(pattern.rebuilt(term, widened) for term in side) for side in (rule.source, rule.target))
    for joint in (t for term in source for t in pattern.subterms(term) if isinstance(t, Apply) and t.op == "Concat"):
        kind = ["axis", *pattern.variables(joint)]
        yield replace(rule, source=source, target=target, variables={}, attributes={"?axis": kind}, where=())


_WINDOWED = frozenset({"Conv", "MaxPool", "AveragePool"})
_WINDOW_KINDS: Mapping[str, Sequence[Any]] = {
    "strides": ["integers", 1, 2, 2],
    "pads": ["integers", 0, 2, 4],
    "dilations": ["integers", 1, 2, 2],
}
_POOL_KINDS: Mapping[str, Sequence[Any]] = {
    "strides": ["integers", 1, 2, 2],
    "pads": ["choice", [0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1], [2, 1, 2, 1]],
    "dilations": ["choice", [1, 1], [1, 2], [2, 2]],
    "kernel_shape": ["integers", 1, 3, 2],
}
"""Windows all of which see some of the image: drawn by chance, few do."""


def _of_any_window(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """Convolutions and pools by any window, the same one wherever they occur."""
    windowed = {node.op for node in pattern.operators(*rule.source)} & _WINDOWED
    if not windowed:
        return
    written = {name for node in pattern.operators(*rule.source) if node.op in windowed for name, _ in node.attributes}
    kinds = _WINDOW_KINDS if windowed == {"Conv"} else _POOL_KINDS
    free = {name: f"?{name}" for name in kinds if name in written}

    def widened(part: Term) -> Term:
        if isinstance(part, Variable) or part.op not in _WINDOWED:
            return part
        return replace(part, attributes=tuple((name, free.get(name, value)) for name, value in part.attributes))

    yield replace(
        rule,
        source=tuple(pattern.rebuilt(term, widened) for term in rule.source),
        target=tuple(pattern.rebuilt(term, widened) for term in rule.target),
        attributes={**rule.attributes, **{name: kinds[key] for key, name in free.items()}},
    )


def _of_any_rank(rule: Rule, name: str, certifier: Certifier) -> Rule | None:
    """The rule with leading dimensions before this variable's template, or with a scalar of any rank."""
    template = rule.spec(name).shape
    if template is None or str(next(iter(template), "")).startswith("..."):
        return None
    wider = _leading(rule, [name])
    if template:
        return certifier.certify(wider) if _grows(wider, name, len(template), certifier) else None
    single: Expression = ["==", ["elements", name], 1]
    return certifier.certify(wider) or certifier.certify(replace(wider, where=(*wider.where, single)))


_GROWTH_DRAWS = 12


def _grows(rule: Rule, name: str, rank: int, certifier: Certifier) -> bool:
    """Whether the variable is ever drawn with more dimensions than it had: an image never is."""
    sampler, random = Sampler(rule), Random(certifier.config.seed)
    try:
        return any(len(sampler.draw(random).shape(name)) > rank for _ in range(_GROWTH_DRAWS))
    except RuleError:
        return False


def _next(expressions: Iterator[Expression], part: Apply) -> Expression:
    return next(expressions)


def _transposed(term: Term, permutation: Callable[[Apply], Any]) -> Term:
    """The term with the permutations of its transposes given anew, operands first."""

    def change(part: Term) -> Term:
        if isinstance(part, Variable) or part.op != "Transpose":
            return part
        return replace(part, attributes=(("perm", pattern.freeze(permutation(part))),))

    return pattern.rebuilt(term, change)


def _leading(rule: Rule, names: Iterable[str]) -> Rule:
    """Any number of leading dimensions before the templates of these variables; a scalar may have any shape."""
    specs = dict(rule.variables)
    for name in names:
        template = specs[name].shape
        if template:
            specs[name] = VariableSpec(shape=(f"...{name}", *template))
        else:
            del specs[name]
    return replace(rule, variables=specs, certificate=None)


_WIDENINGS = (
    _with_shared_parts,
    _with_distinct_variables,
    _with_distinct_symbols,
    _of_any_shape,
    _of_any_permutation,
    _of_any_axis,
    _of_any_window,
)
