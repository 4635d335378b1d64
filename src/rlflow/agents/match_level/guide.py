"""A policy over match tokens, for every graph: V and C as they guide a search, and how that search is made.

    policy = Guide.load(folder)          encoder.onnx, policy.json, and controller.onnx if it has a controller
    search = policy.search(library, rewriter, cost_model, seed=0)
    search.optimise(graph, Budget(time_s=60))

V knows operators, shapes and prices by name and no rule by its number, so that a policy acts with any library. ONNX
Runtime reads by it: nothing here wants PyTorch. What it is trained by is a `TaughtGuide`, which writes the folder.

The invariant: what is loaded is what was saved together, whose digests `policy.json` holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rlflow.agents.match_level.guide_process import OnnxPointer, player
from rlflow.agents.match_level.guided_chains import ChainConfig, GuidedChains, guided_chains
from rlflow.agents.match_level.scorers import EncoderScorer
from rlflow.agents.match_level.token_reader import OnnxReader
from rlflow.cost.base import CostModel
from rlflow.described import Described
from rlflow.errors import InputError
from rlflow.git_lfs import require_content
from rlflow.onnx_io.model_file import load_model
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.settings import read_config

FILE, ENCODER, POINTER = "policy.json", "encoder.onnx", "controller.onnx"
SHIPPED = "rlflow.agents.shipped"
POLICY = Described("policy", "policy", "make it with `make study NAME=policy`", indent=1)
VERSION = 4


@dataclass(frozen=True)
class Guide:
    """V, the settings of the chains that it guides, and what it was trained on.

    shares: by the ids of rules, what experts did with their matches in lessons (`RuleMeans.taken`). pointer: C, whose
    episode comes before the chains; None: there is none.
    """

    reader: OnnxReader
    chains: ChainConfig
    trained_on: Mapping[str, Any] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    pointer: OnnxPointer | None = None

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
        scored_by = partial(EncoderScorer, self.reader)
        plays = None
        if self.pointer is not None:
            plays = partial(player, cost_model=cost_model, reader=self.reader, pointer=self.pointer)
        return guided_chains(scored_by, library, rewriter, cost_model, settings, seed, self.shares, plays)

    @classmethod
    def load(cls, folder: Path) -> Guide:
        """Read what `TaughtGuide.save` wrote.

        `InputError` if the folder holds no policy, or files that do not belong together.
        """
        content = description(folder, ENCODER)
        with POLICY.reading(folder):
            trained_on = dict(content["trained_on"])
            shares = {rule: float(share) for rule, share in content["shares"].items()}
            chains = read_config(ChainConfig, content["chains"])
            reader = OnnxReader.of(load_model(folder / ENCODER))
        if POINTER not in content["sha256"]:
            return cls(reader, chains, trained_on, shares)
        description(folder, POINTER)
        with POLICY.reading(folder):
            pointer = OnnxPointer.of(load_model(folder / POINTER))
        return cls(reader, chains, trained_on, shares, pointer)


def description(folder: Path, file: str) -> dict[str, Any]:
    """Return what describes a policy. `InputError` if there is none, or one of this file beside it is not its own."""
    for name in (FILE, file):
        require_content(folder / name)
    with POLICY.reading(folder):
        content = POLICY.description(folder)
        version = content["version"]
    if version != VERSION:
        raise InputError(
            f"the policy in {folder} is of version {version}, here {VERSION}: make it again with "
            "`make study NAME=policy`, or `rlflow train` if it was made by that"
        )
    with POLICY.reading(folder):
        is_its_own = digest(folder / file) == content["sha256"][file]
    if not is_its_own:
        raise InputError(f"{folder / file} is not the file that {FILE} describes: make both again")
    return content


def digest(file: Path) -> str:
    """Return the digest of a file of a policy."""
    return sha256(file.read_bytes()).hexdigest()


@contextmanager
def shipped_folder() -> Iterator[Path]:
    """Yield the folder of the policy that ships with the library."""
    with as_file(files(SHIPPED)) as folder:
        yield folder


def shipped() -> Guide:
    """Return the policy that ships with the library."""
    with shipped_folder() as folder:
        return Guide.load(folder)
