"""A portfolio: several searches under one budget, each from the best state so far.

No search is the best on every graph. Chains find dear steps that pay later, which the price guard of equality
saturation refuses; equality saturation, whose e-graph begins with what they found, many steps that pay only together;
iterated search something of what is left, if there is time. Of a budget of 100 s, with shares of 0.35, 0.5 and 0.15,
chains may spend 35 s; if they end after 9, equality saturation may spend 70 of the other 91, and iterated search the
rest. Greedy search goes before all of them, with a rewriter that does not share, so that nothing is worse than it.

Invariant: the price never rises from one member to the next, and the way from the original stays one trajectory, which
is why all members rewrite with the same rewriter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.method import OnProgress, State, Workspace
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.backtracking import Backtracking
from rlflow.search.base import Search
from rlflow.search.chains import Chains
from rlflow.search.equality_saturation import EqualitySaturation, equality_saturation
from rlflow.search.factory import make_search
from rlflow.search.greedy import Greedy
from rlflow.search.iterated import Iterated
from rlflow.search.random import RandomSearch
from rlflow.search.seeding import seeded


class Member(NamedTuple):
    """A search of a portfolio, and its share of the budget, in proportion to the other members' shares."""

    search: Search
    share: float


@dataclass(frozen=True)
class Best(Search):
    """Runs its members one after another.

    Each may spend its share of what is left of the budget, among those that have not run yet; so what one leaves over
    goes to the others, and the last may spend all of it. Without a budget each runs until it ends by itself. `seed` is
    a search that goes before all of them, within half of the budget, if the workspace's rewriter shares.
    """

    members: tuple[Member, ...]
    seed: Search | None = None
    name: str = "best"

    def __post_init__(self) -> None:
        if not self.members:
            raise InputError("a portfolio needs at least one search")
        for search, share in self.members:
            if not isinstance(share, int | float) or not share > 0:
                raise InputError(
                    f"a share of the budget must be a positive number, not {share!r} of {type(search).__name__}"
                )

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        shares = [member.share for member in self.members]
        if self.seed is not None and state is work.start and not work.is_spent:
            state = seeded(work, self.seed, work.ledger.part(0.5))
        for number, (search, share) in enumerate(self.members):
            if work.is_spent:
                break
            inside = work.within(work.ledger.part(share / sum(shares[number:])))
            state = search.improve(inside, state, on_progress and _overall(on_progress, work))
            work.optimality = inside.optimality
        return state


def _overall(on_progress: OnProgress, work: Workspace) -> OnProgress:
    """Return what a member calls with its progress, for one that shows that of the whole."""
    return lambda _, text: on_progress(work.fraction, text)


SEARCHES: Mapping[str, Callable[..., Search]] = {
    "greedy": Greedy,
    "backtracking": Backtracking,
    "chains": Chains,
    "equality_saturation": equality_saturation,
    "iterated": Iterated,
    "random": RandomSearch,
}
"""The searches that a portfolio may have, by name."""

MEMBERS: Mapping[str, Mapping[str, Any]] = {
    "chains": {"share": 0.35, "options": {}},
    "equality_saturation": {"share": 0.5, "options": {}},
    "iterated": {"share": 0.15, "options": {"seed": 0}},
}
"""Chains go first: after equality saturation they would not leave its basin, while it begins from the original."""


def best(
    library: Library,
    rewriter: Rewriter,
    cost_model: CostModel,
    *,
    members: Mapping[str, Mapping[str, Any]] = MEMBERS,
) -> Best:
    """Make the method from its members, in their order: name -> {"share": of the budget, "options": of the search}.

    `InputError` for a search or an option that there is not.
    """
    made = [_member(name, member, (library, rewriter, cost_model)) for name, member in members.items()]

    # The rewriter of equality saturation finds all that the plain one does; members use that of the workspace.
    sharing = next((m.search.rewriter for m in made if isinstance(m.search, EqualitySaturation)), rewriter)
    seed = None if sharing is rewriter else Greedy(library, rewriter, cost_model)
    return Best(library, sharing, cost_model, tuple(made), seed)


def _member(name: str, member: Mapping[str, Any], parts: tuple[Library, Rewriter, CostModel]) -> Member:
    if name not in SEARCHES:
        raise InputError(f"a portfolio has no search {name!r}: choose among {', '.join(SEARCHES)}")
    if not isinstance(member, Mapping) or "share" not in member or not set(member) <= {"share", "options"}:
        raise InputError(f"the search {name} of a portfolio needs a share and may have options, but says {member!r}")
    search = make_search(SEARCHES[name], parts, member.get("options", {}), f"the search {name} of a portfolio")
    return Member(search, member["share"])
