"""The rewrites that led from one graph to another: enough to do them again, and to notice a different outcome."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import get_type_hints

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError
from rlflow.git_lfs import require_content


@dataclass(frozen=True, slots=True)
class Step:
    """One rewrite: the rule by its id, which of that rule's matches, and the graph that came of it."""

    rule: str
    location: int
    hash: str
    runtime_ms: float
    reward: float


@dataclass(frozen=True)
class Trajectory:
    """Steps from a start graph; `seed` is that of the episode, if any.

    `library` is the hash of the rules that could be chosen. Replaying needs those of the steps and no others: a
    location is counted among the matches of its own rule, whatever rules there are besides and in whatever order.
    `matching` is that of the rewriter that counted them (`rules.matching.sharing.rewriter_of` makes it).
    """

    start_hash: str
    start_runtime_ms: float
    cost_model: str
    library: str
    steps: tuple[Step, ...]
    seed: int | None = None
    matching: str = "private"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @property
    def digest(self) -> str:
        """16 hexadecimal digits of the record: the same for the same rewrites at the same prices."""
        return blake2b(self.to_json().encode(), digest_size=8).hexdigest()

    @classmethod
    def from_json(cls, text: str) -> Trajectory:
        """`InputError` if the text is no trajectory."""
        try:
            content = json.loads(text)
            trajectory = cls(**{**content, "steps": tuple(Step(**step) for step in content["steps"])})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"not a trajectory: {error}") from None
        _check_types(trajectory)
        for step in trajectory.steps:
            _check_types(step)
        return trajectory


def _check_types(part: Trajectory | Step) -> None:
    """`InputError` naming a field of another type than declared; a whole number is a number, too."""
    for name, declared in get_type_hints(type(part)).items():
        value = getattr(part, name)
        admitted = {float: int | float, tuple[Step, ...]: tuple}.get(declared, declared)
        if isinstance(value, bool) or not isinstance(value, admitted):
            raise InputError(f"not a trajectory: {name} is {value!r}")


def save(trajectories: Iterable[Trajectory], path: Path) -> None:
    """One trajectory a line; written whole or not at all."""
    with written_whole(path) as draft:
        draft.write_text("".join(t.to_json() + "\n" for t in trajectories))


def load(path: Path) -> list[Trajectory]:
    """`InputError` naming the line that cannot be read."""
    require_content(path)
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from None
    trajectories = []
    for number, line in enumerate(lines, start=1):
        try:
            trajectories.append(Trajectory.from_json(line))
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
    return trajectories
