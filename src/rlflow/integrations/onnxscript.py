"""The rule library as rewrite rules of onnxscript.

    from onnxscript.rewriter import rewrite
    from rlflow.integrations.onnxscript import rules

    faster = rewrite(model, pattern_rewrite_rules=rules())

A rule's source becomes a pattern for each order of the operands of what commutes. What a pattern cannot say, such as
attributes, shapes and conditions, it leaves open: a place that it matched becomes a graph of ours, in which our matcher
decides and our rewriter rewrites. So no condition is written twice, and none is looser than ours.

onnxscript goes through a graph once. At each node, be it one that a rule has just made, it takes the first rule that
applies: with a rule and its inverse it would never end. So a place is taken only where that lowers a price, unless
`cost` is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import onnx_ir as ir
from onnxscript.rewriter import MatchContext
from onnxscript.rewriter.pattern import OpsetPatternBuilder, Var

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.integrations.fragment import Fragment, stored
from rlflow.integrations.place_rule import PlaceRule
from rlflow.ir.graph import Graph
from rlflow.ops.registry import OPERATORS
from rlflow.rules import pattern
from rlflow.rules.library import Library, load
from rlflow.rules.matching.bounds import SIGHT
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.variants import Variant, compile_variants, number_at
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule

ANALYTIC = AnalyticCost()


def rules(
    names: Iterable[str] | None = None, *, library: Library | None = None, cost: CostModel | None = ANALYTIC
) -> list[VerifiedRule]:
    """Return the rules of these names or ids, by default all that can be said, as rules of onnxscript.

    They come from a library, by default the one that ships. A rule that matches in several orders of operands is
    several. It applies where that lowers the `cost`, or, if this is None, wherever it holds; with rules that undo each
    other, onnxscript then never ends. Models need types of their values and folded constants, as they do for
    onnxscript's own rules.

    Raises `InputError` for a name that the library has not, and for a rule that cannot be said.
    """
    library = library or load()
    left_out = unsaid(library)
    if names is None:
        return [said for rule in library.rules if rule.id not in left_out for said in _said(rule, cost)]
    chosen = [library.get(name) for name in names]
    for rule in chosen:
        if rule.id in left_out:
            raise InputError(f"the rule {rule.name!r} cannot be said in onnxscript: {left_out[rule.id]}")
    return [said for rule in chosen for said in _said(rule, cost)]


def unsaid(library: Library | None = None) -> dict[str, str]:
    """Map the ids of the rules that cannot be said in onnxscript to the reason."""
    reasons = {rule.id: _reason_against(rule) for rule in (library or load()).rules}
    return {identifier: reason for identifier, reason in reasons.items() if reason}


def _reason_against(rule: Rule) -> str:
    (variant, *_) = compile_variants(rule)
    if len(variant.roots) > 1:
        return f"it replaces the outputs of {len(variant.roots)} nodes, of which onnxscript tries one choice alone"
    if {application.op for application in pattern.operators(*rule.source)} == {"Identity"}:
        return "it drops an Identity, by which onnxscript says that a value stands for another"
    return ""


class VerifiedRule(PlaceRule):
    """A verified rule in one order of its operands, named by its id; `rule` has its certificate and its assumptions."""

    def __init__(self, variant: Variant, rewriter: Rewriter, cost: CostModel | None) -> None:
        self.rule, self._rewriter = variant.rule, rewriter
        (root,) = variant.roots
        specs = {name: self.rule.spec(name) for name in variant.variables}
        super().__init__(
            partial(_pattern, variant),
            self.rule.id,
            operator=root.op,
            outputs=list(map(pattern.show, variant.source)),
            variables=variant.variables,
            weights=[name for name, spec in specs.items() if spec.constant or spec.literal],
            sight=SIGHT if variant.bounded else 0,
            cost=cost,
            why_not=f"it does not hold here: `rlflow rules why {self.rule.id} MODEL` says why",
        )

    def _after(self, place: Fragment, bindings: Mapping[str, ir.Value]) -> Graph | None:
        """Rewrite by our match at the place that the pattern matched, with the same values for the variables."""
        refs = place.refs()
        roots = tuple(refs.get(bindings[name]) for name in self._outputs)
        for match in self._rewriter.matches(place.graph)[0]:
            if match.roots == roots and all(refs.get(bindings[name]) == ref for name, ref in match.bindings.items()):
                return self._rewriter.apply(place.graph, match)
        return None


def _said(rule: Rule, cost: CostModel | None) -> Iterator[VerifiedRule]:
    """Say a rule in every order of operands, those of numbers among them, which our matcher finds by itself."""
    rewriter = Rewriter([rule])
    for variant in compile_variants(rule):
        for source in product(*map(_orders, variant.source)):
            ordered = Variant(rule, source)
            if len(ordered.roots) == 1:
                yield VerifiedRule(ordered, rewriter, cost)


def _orders(term: Term) -> Iterator[Any]:
    """Yield the term with each number before and behind what it is added to or multiplied by."""
    if isinstance(term, Variable):
        yield term
        return
    for arguments in product(*map(_orders, term.arguments)):
        ordered = replace(term, arguments=arguments)
        yield ordered
        if number_at(ordered) is not None:
            yield replace(ordered, arguments=arguments[::-1])


def _pattern(variant: Variant, op: OpsetPatternBuilder) -> list[Any]:
    """Say a source: operators, and which values are the same. Operands that are parameters stay open.

    Every value has the name that `pattern.show` gives it, but for numbers, of which the model may have one for each
    place.
    """
    parts = [part for side in variant.source for part in pattern.subterms(side) if isinstance(part, Apply)]
    outputs: dict[Apply, int] = {}
    for part in parts:
        outputs[part.node] = max(outputs.get(part.node, 1), part.output + 1)
    said: dict[Term, Any] = {}

    def value(term: Term) -> Any:
        if not pattern.variables(term):
            return Var(None, check=_is_number)
        if isinstance(term, Variable):
            return said.setdefault(term, Var(term.name))
        if term not in said:
            operator = OPERATORS[term.op]
            results = [replace(term, output=output) for output in range(outputs[term.node])]
            build = getattr(op, operator.op_type)
            built = build(
                *map(value, term.arguments),
                _domain=operator.domain,
                _outputs=list(map(pattern.show, results)),
                _allow_other_inputs=True,
            )
            said.update(zip(results, built if len(results) > 1 else [built], strict=True))
        return said[term]

    return list(map(value, variant.source))


def _is_number(_: MatchContext, value: ir.Value) -> bool:
    return stored(value) is not None
