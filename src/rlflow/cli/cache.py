"""The place where commands keep what they have found out on this machine: in the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

from rlflow.optimise.answers import Answers
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.timing.batches import PROTOCOL_VERSION


def kept_answers() -> Answers:
    return Answers(_folder() / "answers")


def price_cache() -> Path:
    """One price list for each machine and way of measuring."""
    return _folder() / f"prices-{fingerprint(threads=1).key}-{PROTOCOL_VERSION}.json"


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rlflow"
