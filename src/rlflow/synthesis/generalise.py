"""Generalisation: from an equality that was seen at one shape to a rule as general as verification admits.

The search finds MatMul(a, v) + MatMul(b, v) = MatMul(a + b, v) at a, b: (2, 3), v: (3, 4). Steps (`_WIDENINGS`) then
try wider rules: a shared part becomes a variable, repeated variables become distinct, numbers become attribute
variables, dimensions that no operator needs to be equal get symbols of their own, templates are dropped or get leading
dimensions. Each candidate is verified at many shapes. If one is refuted, `mine` looks for a condition, in the closed
language of `rules/expression.py`, that tells its good instances from the bad ones, such as ["!=", "?k", "?l"] for two
axes.

Invariant: the rule between two steps has been verified. A step whose candidates are all refuted, with and without a
condition, is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, count, groupby, islice, permutations, product
from random import Random
from typing import Any

import numpy as np

from rlflow.errors import RuleError, TypeInferenceError
from rlflow.ops.registry import having
from rlflow.rules import pattern
from rlflow.rules.expression import Expression, holds
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.plan import Instance
from rlflow.rules.rule import Rule, VariableSpec, with_short_names
from rlflow.rules.verification.certify import on_remedies
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.verify import VerificationConfig, exact_difference
from rlflow.synthesis.attributes import (
    SHAPE_BLIND,
    axes_of,
    grouping,
    of_any_attributes,
    of_any_permutation,
    of_any_size,
    sized,
    with_leading,
)
from rlflow.synthesis.prune import type_of

_MINING_DRAWS = 96
_MIN_POSITIVES = 3
_MOST_CONDITIONS = 2
"""The most predicates of a mined conjunction; a rule that needs more holds at few instances."""

_MOST_MINED = 4
"""The most candidates of one source for which a condition is sought."""


@dataclass(frozen=True)
class Certifier:
    """Verifies rules, and gives those that hold a certificate."""

    config: VerificationConfig

    def certify(self, rule: Rule) -> Rule | None:
        """Return the rule with its certificate, under conditions that keep it from masks and from dimensions of no
        elements where it needs any; None if it is refuted or no instance of it can be drawn.
        """
        try:
            return on_remedies(rule, self.config)
        except RuleError:
            return None

    def certify_on_condition(self, rule: Rule) -> Rule | None:
        """Return the rule under a mined condition, with its certificate; None if no condition makes it true."""
        try:
            where = mine(rule, np.random.default_rng(self.config.seed), self.config)
        except RuleError:
            return None
        return self.certify(replace(rule, where=(*rule.where, *where))) if where else None

    def first(self, rules: Sequence[Rule]) -> Rule | None:
        """Return the first rule that holds, or else the first that holds under a condition, or None."""
        accepted = next(filter(None, map(self.certify, rules)), None)
        if accepted is not None:
            return accepted

        likely = (rule for _, alike in groupby(rules, _source) for rule in islice(alike, _MOST_MINED))
        return next(filter(None, map(self.certify_on_condition, likely)), None)


def _source(rule: Rule) -> tuple[Term, ...]:
    return rule.source


def mine(rule: Rule, rng: np.random.Generator, config: VerificationConfig) -> tuple[Expression, ...] | None:
    """Find a conjunction that no counter-example among drawn instances satisfies; None if the language has none.

    Instances at which the sides differ are counter-examples, or, if there are none, those at which the target is not
    well typed. Predicates are chosen greedily: the next has the largest sum of two shares, of the remaining
    counter-examples that it excludes and of the remaining good instances that it keeps.
    """
    good, bad, untyped = _sorted_instances(rule, rng, config)
    # With one element, anything agrees.
    good = [i for i in good if any(tensor_type.elements > 1 for tensor_type in i.types.values())]
    bad = bad or untyped
    predicates = list(_predicates(rule))
    if not predicates:
        return None

    where_good, where_bad = (_truth(predicates, instances) for instances in (good, bad))
    keeps, admits = np.ones(len(good), bool), np.ones(len(bad), bool)  # instances that all chosen predicates admit
    chosen: list[int] = []
    while admits.any() and len(chosen) < _MOST_CONDITIONS:
        kept, excluded = where_good[:, keeps].sum(axis=1), (~where_bad[:, admits]).sum(axis=1)
        scores = kept / max(1, keeps.sum()) + excluded / admits.sum()
        useful = (excluded > 0) & (kept >= _MIN_POSITIVES)
        if not useful.any():
            return None

        best = int(np.argmax(np.where(useful, scores, 0.0)))
        chosen.append(best)
        keeps, admits = keeps & where_good[best], admits & where_bad[best]
    return None if admits.any() else tuple(predicates[i] for i in _without_idle(chosen, where_bad))


def _truth(predicates: Sequence[Expression], instances: Sequence[Instance]) -> np.ndarray:
    """Evaluate each predicate at each instance, (predicates, instances) bool."""
    held = [[holds(predicate, i.scope) for i in instances] for predicate in predicates]
    return np.array(held, bool).reshape(len(predicates), len(instances))


def _without_idle(conjunction: Sequence[int], where_bad: np.ndarray) -> list[int]:
    """Drop predicates without which the others still exclude every counter-example."""
    kept = list(conjunction)
    for predicate in conjunction:
        others = [p for p in kept if p != predicate]
        if not where_bad[others].all(axis=0).any():
            kept = others
    return kept


def _sorted_instances(
    rule: Rule, rng: np.random.Generator, config: VerificationConfig
) -> tuple[list[Instance], list[Instance], list[Instance]]:
    """Draw instances at which the sides agree, at which they differ, and at which the target is not well typed."""
    good: list[Instance] = []
    bad: list[Instance] = []
    untyped: list[Instance] = []
    sampler, random = Sampler(rule), Random(config.seed)
    for number in range(_MINING_DRAWS):
        instance = sampler.draw(random)
        case = sampler.sides(instance)
        if case is None:
            untyped.append(instance)
        elif any(tensor_type.elements for tensor_type in case.source.types):
            differs = exact_difference(case, rng, config)
            (bad if differs else good).append(instance)
        if number == _MINING_DRAWS // 4 and not good:
            break  # a rule that never holds needs no condition
    return good, bad, untyped


_RESHAPING = grouping({"reshape"})
_RESIZING = _RESHAPING | grouping({"extent"})


def _predicates(rule: Rule) -> Iterator[Expression]:
    """Yield all predicates that a condition of this rule may be made of."""
    names = pattern.variables(*rule.source)
    permutation_attributes = [name for name, domain in rule.attributes.items() if domain[0] == "permutation"]
    axes, tensors = axes_of(rule), [name for name in names if name not in rule.indices]

    for permutation in permutation_attributes:
        yield ["swaps_last_two", permutation]
    for one, other in combinations(permutation_attributes, 2):
        yield ["is_identity", ["compose", one, other]]
        yield ["==", one, other]
    # Axes that must be equal are one attribute already.
    yield from (["!=", one, other] for one, other in combinations(axes, 2))

    dimensions: list[Expression] = [["dim", name, axis] for name in tensors for axis in axes or (-1, -2)]
    # With a Slice or a Reshape, a size of 1 only happens to hold wherever the rule does.
    if not _RESIZING & {node.op for node in pattern.operators(*rule.source)}:
        yield from (["==", ["elements", name], 1] for name in tensors)
        yield from (["==", dimension, 1] for dimension in dimensions)
    for one, other in combinations(dimensions, 2):
        yield ["==", one, other]
    for one, other in combinations(tensors, 2):
        yield ["==", ["shape", one], ["shape", other]]


def generalised(rule: Rule, config: VerificationConfig, dimensions: Mapping[str, int]) -> Rule | None:
    """Widen a rule as far as it verifies, and certify it; None if it is refuted as it stands.

    Each step is tested quickly and the outcome thoroughly; if quick tests were deceived, all is done again with
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
    """Take each widening step that verifies, then give each variable leading dimensions if that verifies."""
    widest = certifier.first([rule])
    if widest is None:
        return None
    for widen in _WIDENINGS:
        groups = widen(replace(widest, certificate=None), dimensions)
        widest = next(filter(None, map(certifier.first, groups)), widest)

    for name in pattern.variables(*widest.source):
        widest = _of_any_rank(widest, name, certifier) or widest
    return widest


def _with_distinct_variables(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """Make each occurrence a variable of its own: a + (a + b) = b + (a + a) is an instance of associativity."""
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
        yield replace(rule, source=(source,), target=(target,), variables=_used(specs, source), where=())


def _with_shared_parts(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """Replace a part that both sides have, but neither is, by a variable."""
    source, target = rule.source[0], rule.target[0]
    symbols = {number: symbol for symbol, number in dimensions.items()}
    types = {name: sized(spec, dimensions) for name, spec in rule.variables.items()}
    for part in dict.fromkeys(pattern.subterms(source)):
        if isinstance(part, Apply) and part not in (source, target) and part in pattern.subterms(target):
            shape = type_of(part, types).shape or ()
            template = tuple(symbols.get(d, d) if isinstance(d, int) else 1 for d in shape)
            shared = VariableSpec(shape=template)
            sides = [pattern.rebuilt(side, partial(_hidden, part)) for side in (source, target)]
            variables = _used({**rule.variables, "shared": shared}, sides[0])
            if set(pattern.variables(sides[1])) <= variables.keys():
                yield replace(rule, source=(sides[0],), target=(sides[1],), variables=variables, where=())


def _hidden(part: Term, term: Term) -> Term:
    return Variable("shared") if term == part else term


def _occurrences(term: Term) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in pattern.subterms(term):
        if isinstance(part, Variable):
            counts[part.name] = counts.get(part.name, 0) + 1
    return counts


def _relabelled(term: Term, names: dict[str, list[str]]) -> Term:
    """Rename the occurrences of variables, from left to right, using up the lists of new names."""

    def renamed(part: Term) -> Term:
        return Variable(names[part.name].pop(0)) if isinstance(part, Variable) and part.name in names else part

    return pattern.rebuilt(term, renamed)


def _used(specs: Mapping[str, VariableSpec], source: Term) -> dict[str, VariableSpec]:
    return {name: specs[name] for name in pattern.variables(source) if name in specs}


def _with_distinct_symbols(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """Give a symbol of its own to each dimension that no operator needs to equal another one."""
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
    types = {name: sized(spec, numbers) for name, spec in rule.variables.items()}
    try:
        return type_of(rule.source[0], types) == type_of(rule.target[0], types)
    except TypeInferenceError:
        return False


def _of_any_shape(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """Drop all templates if all operators only broadcast; if that fails, scalars may at least be of any rank."""
    if rule.variables and all(node.op in SHAPE_BLIND for node in pattern.operators(*rule.source, *rule.target)):
        yield replace(rule, variables={})
        scalars = [name for name, spec in rule.variables.items() if spec.shape == ()]
        if scalars:
            yield replace(rule, variables={}, where=tuple(["==", ["elements", s], 1] for s in scalars))


_WINDOWED = having(lambda traits: traits.windowed)
_CONVOLUTION_WINDOWS: Mapping[str, Sequence[Any]] = {
    "strides": ["integers", 1, 2, 2],
    "pads": ["integers", 0, 2, 4],
    "dilations": ["integers", 1, 2, 2],
}
_POOL_WINDOWS: Mapping[str, Sequence[Any]] = {
    "strides": ["integers", 1, 2, 2],
    "pads": ["choice", [0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1], [2, 1, 2, 1]],
    "dilations": ["choice", [1, 1], [1, 2], [2, 2]],
    "kernel_shape": ["integers", 1, 3, 2],
}
"""Domains of attributes whose windows all see some of the image; of windows drawn freely, few do."""


def _of_any_window(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Rule]:
    """Let convolutions and pools have any window, the same one in all of them."""
    windowed = {node.op for node in pattern.operators(*rule.source)} & _WINDOWED
    if not windowed:
        return

    written = {name for node in pattern.operators(*rule.source) if node.op in windowed for name, _ in node.attributes}
    domains = _POOL_WINDOWS if "kernel_shape" in written else _CONVOLUTION_WINDOWS
    free = {name: f"?{name}" for name in domains if name in written}

    def widened(part: Term) -> Term:
        if isinstance(part, Variable) or part.op not in _WINDOWED:
            return part
        return replace(part, attributes=tuple((name, free.get(name, value)) for name, value in part.attributes))

    yield replace(
        rule,
        source=tuple(pattern.rebuilt(term, widened) for term in rule.source),
        target=tuple(pattern.rebuilt(term, widened) for term in rule.target),
        attributes={**rule.attributes, **{name: domains[key] for key, name in free.items()}},
    )


def _of_any_rank(rule: Rule, name: str, certifier: Certifier) -> Rule | None:
    """Return the rule with leading dimensions before a variable's template, or a scalar of any rank, or None."""
    template = rule.spec(name).shape
    if any(node.op in _RESHAPING for node in pattern.operators(*rule.source, *rule.target)):
        return None  # a Reshape sees all axes at once
    if template is None or str(next(iter(template), "")).startswith("..."):
        return None

    wider = with_leading(rule, [name])
    if template:
        return certifier.certify(wider) if _grows(wider, name, len(template), certifier) else None
    single: Expression = ["==", ["elements", name], 1]
    return certifier.certify(wider) or certifier.certify(replace(wider, where=(*wider.where, single)))


_GROWTH_DRAWS = 12


def _grows(rule: Rule, name: str, rank: int, certifier: Certifier) -> bool:
    """Return True if the variable is ever drawn with more dimensions than it had; an image never is."""
    sampler, random = Sampler(rule), Random(certifier.config.seed)
    try:
        return any(len(sampler.draw(random).shape(name)) > rank for _ in range(_GROWTH_DRAWS))
    except RuleError:
        return False


_Widening = Callable[[Rule, Mapping[str, int]], Iterator[Rule]]


def _alike(widen: _Widening) -> Callable[[Rule, Mapping[str, int]], Iterator[Sequence[Rule]]]:
    """Return a widening whose candidates are one group, of which the first that verifies is taken."""
    return lambda rule, dimensions: iter([list(widen(rule, dimensions))])


_WIDENINGS = (
    _alike(_with_shared_parts),
    _alike(_with_distinct_variables),
    of_any_attributes,
    of_any_size,
    _alike(_with_distinct_symbols),
    _alike(_of_any_shape),
    of_any_permutation,
    _alike(_of_any_window),
)
