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
from math import inf
from typing import Any

import onnx_ir as ir
from onnxscript.rewriter import MatchContext, MatchResult, RewriterContext, RewriteRule
from onnxscript.rewriter.pattern import OpsetPatternBuilder, Var

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.integrations.fragment import Fragment, fragment, stored, written
from rlflow.ops.registry import OPERATORS
from rlflow.rules import pattern
from rlflow.rules.library import Library, load
from rlflow.rules.matching.bounds import SIGHT
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.variants import Variant, compile_variants, number_at
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule

ANALYTIC = AnalyticCost()

_LARGEST_READ = 1024
"""Elements of a weight that is read to find out whether a rule applies; a larger one is read where it does."""
_OPSETS = "rlflow.opsets"
"""The key by which a condition leaves the opsets at a root for the replacement, as a subgraph does not know its own."""


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


class VerifiedRule(RewriteRule):
    """A verified rule in one order of its operands, named by its id; `rule` has its certificate and its assumptions."""

    def __init__(self, variant: Variant, rewriter: Rewriter, cost: CostModel | None) -> None:
        self.rule = variant.rule
        self._rewriter, self._cost = rewriter, cost
        self._sight = SIGHT if variant.bounded else 0
        (root,) = variant.roots
        self._operator = (OPERATORS[root.op].domain, OPERATORS[root.op].op_type, "")
        self._roots = list(map(pattern.show, variant.source))
        self._variables = variant.variables
        specs = {name: self.rule.spec(name) for name in self._variables}
        self._weights = [name for name, spec in specs.items() if spec.constant or spec.literal]
        super().__init__(partial(_pattern, variant), self._replacement, self._condition, name=self.rule.id)

    def match(
        self, model: ir.Model, graph_or_function: ir.Graph | ir.Function, node: ir.Node, **options: Any
    ) -> MatchResult | None:
        """Match as onnxscript does, which takes its time at nodes of other operators: there are a thousand rules."""
        if node.op_identifier() != self._operator:
            return None
        return super().match(model, graph_or_function, node, **options)

    def _condition(self, context: MatchContext, /, **bindings: ir.Value) -> MatchResult:
        """Ask our matcher, and whether it saves anything."""
        if any(stored(bindings[name]) is None for name in self._weights):
            return MatchResult().fail("it wants a weight where the model computes a value")
        context.root.meta[_OPSETS] = _opsets(context)
        try:
            place = self._place(bindings, _LARGEST_READ)
        except ValueError as error:
            return MatchResult().fail(str(error))
        match = self._match(place, bindings)
        if match is None:
            return MatchResult().fail(f"it does not hold here: `rlflow rules why {self.rule.id} MODEL` says why")
        if self._cost is not None:
            before, after = place.graph, self._rewriter.apply(place.graph, match)
            if self._cost.runtime_ms(after) >= self._cost.runtime_ms(before):
                return MatchResult().fail(f"it saves nothing here, by {self._cost.name} prices")
        return MatchResult()

    def _replacement(self, op: RewriterContext, /, **bindings: ir.Value) -> list[ir.Value] | MatchResult:
        """Rewrite the place as our engine does, now that its weights are read."""
        place = self._place(bindings, inf)
        match = self._match(place, bindings)
        if match is None:
            return MatchResult().fail("it does not hold for these weights")
        graph = self._root(bindings).graph
        taken = graph.initializers if isinstance(graph, ir.Graph) else ()
        return written(self._rewriter.apply(place.graph, match), place, op, taken)

    def _root(self, bindings: Mapping[str, ir.Value]) -> ir.Node:
        node = bindings[self._roots[0]].producer()
        assert node is not None
        return node

    def _place(self, bindings: Mapping[str, ir.Value], largest: float) -> Fragment:
        results = [value for name, value in bindings.items() if name not in self._variables]
        nodes = dict.fromkeys(node for result in results if (node := result.producer()) is not None)
        outputs = [bindings[name] for name in self._roots]
        opsets = self._root(bindings).meta[_OPSETS]
        return fragment(list(nodes), outputs, opsets, sight=self._sight, largest=largest)

    def _match(self, place: Fragment, bindings: Mapping[str, ir.Value]) -> Match | None:
        """Return our match at the place that the pattern matched, with the same values for the variables."""
        refs = place.refs()
        roots = tuple(refs.get(bindings[name]) for name in self._roots)
        for match in self._rewriter.matches(place.graph)[0]:
            if match.roots == roots and all(refs.get(bindings[name]) == ref for name, ref in match.bindings.items()):
                return match
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


def _opsets(context: MatchContext) -> dict[str, int]:
    """Return the versions of the domains at a place, without those in which the model defines operators itself."""
    around = context.graph_or_function if isinstance(context.graph_or_function, ir.Function) else context.model
    own = {function.domain for function in context.model.functions.values()}
    return {domain: version for domain, version in around.opset_imports.items() if domain not in own}
