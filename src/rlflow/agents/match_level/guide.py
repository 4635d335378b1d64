"""A policy over match tokens, for every graph: the world model whose V guides a search, and how that is made.

    policy = Guide.load(folder)          world_model.safetensors, world_model.json, policy.json
    search = policy.search(library, rewriter, cost_model, seed=0)
    search.optimise(graph, Budget(time_s=60))

V knows operators, shapes and prices by name and no rule by its number, so that a policy acts with any library.

The invariant: what is loaded is what was saved together, whose digest `policy.json` holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rlflow.agents.match_level.guided_chains import ChainConfig, GuidedChains, guided_chains
from rlflow.agents.match_level.scorers import EncoderScorer
from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.git_lfs import require_content
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.settings import read_config
from rlflow.world_model.bundle import Bundle
from rlflow.world_model.match_level.model import MatchLevelModel

FILE = "policy.json"
SHIPPED = "rlflow.agents.shipped"
_BUNDLE = Bundle("policy", "policy", "make it with `make study NAME=policy`", indent=1)
_VERSION = 2
_WEIGHTS = "world_model.safetensors"
_DECIMALS = 4  # of a share of matches


@dataclass(frozen=True)
class Guide:
    """A world model over match tokens, the settings of the chains that it guides, and what it was trained on.

    shares: by the ids of rules, what experts did with their matches in lessons (`RuleMeans.taken`).
    """

    model: MatchLevelModel
    chains: ChainConfig
    trained_on: Mapping[str, Any] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)

    def search(
        self,
        library: Library,
        rewriter: Rewriter,
        cost_model: CostModel,
        *,
        seed: int = 0,
        **chains: Any,
    ) -> GuidedChains:
        """Make the search that goes by this policy; `chains` are settings of `ChainConfig` in place of its own.

        The rules are the rewriter's. `InputError` for a setting that there is not.
        """
        settings = read_config(ChainConfig, {**asdict(self.chains), **chains})
        scored_by = partial(EncoderScorer, self.model)
        return guided_chains(scored_by, library, rewriter, cost_model, settings, seed, self.shares)

    def save(self, folder: Path) -> None:
        """Write the files of a policy, each whole or not at all; equal policies give equal bytes."""
        self.model.save(folder)
        content = {
            "version": _VERSION,
            "weights_sha256": _digest(folder / _WEIGHTS),
            "chains": _own(self.chains),
            "trained_on": self.trained_on,
            "shares": {rule: round(share, _DECIMALS) for rule, share in sorted(self.shares.items())},
        }
        _BUNDLE.describe(content, folder)

    @classmethod
    def load(cls, folder: Path) -> Guide:
        """Read what `save` wrote. `InputError` if the folder holds no policy, or files that do not belong together."""
        for file in (FILE, _WEIGHTS):
            require_content(folder / file)
        with _BUNDLE.reading(folder):
            content = _BUNDLE.description(folder)
            version = content["version"]
        if version != _VERSION:
            raise InputError(
                f"the policy in {folder} is of version {version}, here {_VERSION}: make it again with "
                "`make study NAME=policy`, or `rlflow train` if it was made by that"
            )
        with _BUNDLE.reading(folder):
            expected, trained_on = content["weights_sha256"], dict(content["trained_on"])
            shares = {rule: float(share) for rule, share in content["shares"].items()}
            chains = read_config(ChainConfig, content["chains"])
            digest = _digest(folder / _WEIGHTS)
        if digest != expected:
            raise InputError(f"{folder / _WEIGHTS} is not the file that {FILE} describes: make both again")
        return cls(MatchLevelModel.load(folder), chains, trained_on, shares)


def shipped() -> Guide:
    """Return the policy that ships with the library."""
    with as_file(files(SHIPPED)) as folder:
        return Guide.load(folder)


def _own(chains: ChainConfig) -> dict[str, Any]:
    """Return the settings that are not today's defaults, so that a policy that has none goes with any later ones."""
    usual = asdict(ChainConfig())
    return {name: value for name, value in asdict(chains).items() if value != usual[name]}


def _digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()
