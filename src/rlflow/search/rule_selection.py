"""Choosing the rules that an agent acts with: those that searches over the whole library really used.

Hundreds of rules of which most never help would drown an agent; which ones help is measured, not guessed. Where single
rewrites save nothing but chains of them do, a chain is worth nothing without all of its rules, so these come on top.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import dropwhile
from pathlib import Path

from rlflow.atomic_file import written_whole
from rlflow.cost.base import CostModel
from rlflow.cost.evaluator import Evaluator
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.method import Budget, Method, OnProgress, OptimisationResult
from rlflow.ops import registry
from rlflow.rules.library import Library
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.search.backtracking import Backtracking
from rlflow.search.chains import Chains
from rlflow.search.greedy import Greedy
from rlflow.search.random import RandomSearch

FORMAT_VERSION = 2


@dataclass(frozen=True)
class SelectionConfig:
    """`size` rules at most besides those of chains; the budgets of the searches; what a step must save to be a use.

    All budgets are counts, so that the choice depends on no clock.
    """

    size: int = 14
    least_gain_percent: float = 0.005
    backtracking_expansions: int = 30
    random_rewrites: int = 300
    random_searches: int = 3
    chain_expansions: int = 300
    seed: int = 0


@dataclass(frozen=True)
class Choice:
    """The reasons for which a rule is in the set, all in percent of the start's runtime.

    `uses`: steps on the ways to the searches' best graphs that saved something; `gain_percent` what these saved
    together; `effect_percent` the largest saving or loss of a single rewrite of the original graph; `matches` there;
    `chained`: steps of the chains by which a search went on where single rewrites saved nothing any more.
    """

    id: str
    name: str
    uses: int
    gain_percent: float
    effect_percent: float
    matches: int
    chained: int


@dataclass(frozen=True)
class RuleSet:
    """The versioned artefact: rules in the order in which an agent numbers them.

    `library` is the hash of the rules that it was chosen from. They are named by ids that depend on their content
    alone, so that a library to which a rule was added still has the same set.
    """

    library: str
    choices: tuple[Choice, ...]

    def rules(self, library: Library) -> Library:
        """`InputError` naming the rules of the set that the library does not have."""
        lacking = {c.id for c in self.choices} - {rule.id for rule in library.rules}
        if lacking:
            raise InputError(
                f"the rule set was chosen from another library, which had {', '.join(sorted(lacking))}: "
                "run the generate_rules stage again"
            )
        return library.select([c.id for c in self.choices])

    def save(self, path: Path) -> None:
        content = {"version": FORMAT_VERSION, "library": self.library, "rules": [asdict(c) for c in self.choices]}
        with written_whole(path) as draft:
            draft.write_text(json.dumps(content, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> RuleSet:
        """`InputError` if there is no rule set of this version."""
        try:
            content = json.loads(path.read_text())
            if content["version"] != FORMAT_VERSION:
                raise ValueError(f"version {content['version']}")
            return cls(content["library"], tuple(Choice(**c) for c in content["rules"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is no rule set ({error}): run the generate_rules stage") from None


def select_rules(
    library: Library,
    graph: Graph,
    cost_model: CostModel,
    config: SelectionConfig,
    on_progress: OnProgress | None = None,
) -> RuleSet:
    """The rules that the searches used, by uses and gain, then those that change the price of the graph most.

    Rules of chains that saved something are chosen beyond `size`. A rule that was never used and changes no price
    cannot help and is left out. A rule that undoes itself when it is repeated is left out too, and of two rules that
    undo each other one is chosen, preferably one that matches the graph as it is: an agent that may walk in circles
    learns to, as soon as its world model thinks that a circle pays.
    """
    rewriter = Rewriter(library.rules)
    uses: Counter[str] = Counter()
    gains: dict[str, float] = defaultdict(float)
    searches = _searches(library, rewriter, cost_model, config)
    for number, (search, budget) in enumerate(searches):
        if on_progress:
            on_progress(number / (len(searches) + 1), f"choosing rules by {search.name} search")
        result: OptimisationResult = search.optimise(graph, budget)
        for step in result.trajectory.steps:
            if step.reward >= config.least_gain_percent:
                uses[step.rule] += 1
                gains[step.rule] += step.reward
    if on_progress:
        on_progress(len(searches) / (len(searches) + 1), "choosing rules by chains")
    chained = _chained(Chains(library, rewriter, cost_model), graph, config)
    effects = _effects(graph, rewriter, cost_model)
    matches = dict(zip((r.id for r in library.rules), rewriter.matches(graph).counts, strict=True))
    choices = [
        Choice(r.id, r.name, uses[r.id], round(gains[r.id], 4), round(effects[r.id], 4), matches[r.id], chained[r.id])
        for r in library.rules
        if (uses[r.id] or chained[r.id] or abs(effects[r.id]) >= config.least_gain_percent)
        and not _undoes_itself(graph, r)
    ]
    choices.sort(key=lambda c: (-c.uses, -c.gain_percent, -abs(c.effect_percent), -c.matches, c.id))
    undone = _undoing_rules(graph, rewriter)
    kept: list[Choice] = []
    for choice in sorted(choices, key=lambda c: (c.chained == 0, c.matches == 0)):
        if not any(frozenset((choice.id, other.id)) in undone for other in kept):
            kept.append(choice)
    ranked = sorted(kept, key=choices.index)
    return RuleSet(library.hash, tuple(c for rank, c in enumerate(ranked) if rank < config.size or c.chained))


_TRIED_MATCHES = 3


def _effects(graph: Graph, rewriter: Rewriter, cost_model: CostModel) -> dict[str, float]:
    """Rule -> the largest saving (or loss, below 0) of one rewrite, among its first matches."""
    evaluator = Evaluator(rewriter, cost_model)
    start_ms = evaluator.runtime_ms(graph)
    found = zip(rewriter.rules, rewriter.matches(graph), strict=True)
    tried = [(rule.id, match) for rule, matches in found for match in matches[:_TRIED_MATCHES]]
    effects = dict.fromkeys((rule.id for rule in rewriter.rules), 0.0)
    for rule, match in evaluator.foreseen(graph, tried):
        saving = 100.0 * (start_ms - evaluator.runtime_after_ms(graph, match)) / (start_ms or 1.0)
        effects[rule] = max(effects[rule], saving, key=abs)
    return effects


def _undoing_rules(graph: Graph, rewriter: Rewriter) -> set[frozenset[str]]:
    """Pairs of rules of which one, right after the other and where that was applied, leads back."""
    before = _skeleton(graph)
    pairs = set()
    for first, matches in zip(rewriter.rules, rewriter.matches(graph), strict=True):
        if not matches:
            continue
        changed = rewriter.apply(graph, matches[0])
        for second, found in zip(rewriter.rules, rewriter.matches(changed), strict=True):
            here = (m for m in found if second is not first and _is_fresh(changed, m))
            if any(_skeleton(rewriter.apply(changed, m)) == before for m in here):
                pairs.add(frozenset((first.id, second.id)))
    return pairs


_LONGEST_CIRCLE = 3  # turning Add(a, Add(b, c)) round takes three rewrites


def _undoes_itself(graph: Graph, rule: Rule) -> bool:
    """Return True if the rule, applied again and again at the place where it was applied first, leads back."""
    rewriter, before = Rewriter((rule,)), _skeleton(graph)
    reached = [rewriter.apply(graph, match) for match in rewriter.matches(graph)[0][:1]]
    for _ in range(_LONGEST_CIRCLE - 1):
        reached = [rewriter.apply(g, match) for g in reached for match in rewriter.matches(g)[0] if _is_fresh(g, match)]
        if any(_skeleton(g) == before for g in reached):
            return True
    return False


def _is_fresh(graph: Graph, match: Match) -> bool:
    """Return True if the match takes a node that the graph's last rewrite made."""
    return graph.edit is not None and not set(match.nodes).isdisjoint(graph.edit.change.added)


def _skeleton(graph: Graph) -> int:
    """A hash of what runs: weights count by their type alone, however they were put together, and the operands of
    commutative operators in any order."""
    hashes: dict[int, int] = {i: hash((graph.nodes[i].signature, place)) for place, i in enumerate(graph.inputs)}

    def value(ref: Ref | None) -> int:
        if ref is None:
            return 0
        if graph.nodes[ref.node].constant:
            return zlib.crc32(str(graph.type_of(ref)).encode())
        return hash((hashes[ref.node], ref.index))

    for identifier in graph.order:
        node = graph.nodes[identifier]
        operator, operands = registry.OPERATORS.get(node.op), [value(ref) for ref in node.inputs]
        if operator is not None and operator.commutative:
            operands.sort()
        hashes[identifier] = hash((node.signature, *operands))
    return hash(tuple(map(value, graph.outputs)))


def _chained(search: Chains, graph: Graph, config: SelectionConfig) -> Counter[str]:
    """Rule -> steps of the search from its first chain on; before that each step counts as a use."""
    budget = Budget(expansions=config.chain_expansions)
    steps = search.optimise(graph, budget).trajectory.steps
    return Counter(step.rule for step in dropwhile(lambda step: step.reward >= config.least_gain_percent, steps))


def _searches(
    library: Library, rewriter: Rewriter, cost_model: CostModel, config: SelectionConfig
) -> Sequence[tuple[Method, Budget]]:
    rewrites = Budget(expansions=config.random_rewrites)
    return [
        (Greedy(library, rewriter, cost_model), Budget()),
        (Backtracking(library, rewriter, cost_model), Budget(expansions=config.backtracking_expansions)),
        *(
            (RandomSearch(library, rewriter, cost_model, seed=config.seed + i), rewrites)
            for i in range(config.random_searches)
        ),
    ]
