"""The section `policy`: the policy that ships, as it is read and as it is written again."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from rlflow.agents.match_level import taught_guide
from support.contents import contents
from support.golden.digests import Value, digest, weights
from support.golden.entries import Compute


def entries() -> Mapping[str, Compute]:
    """Return the shipped policy; what its searches find is in other sections."""
    return {"shipped": _shipped}


def _shipped() -> Value:
    policy = taught_guide.shipped()
    with TemporaryDirectory() as folder:
        policy.save(Path(folder))
        files = contents(Path(folder))
    return {
        "files": digest(files),
        "rules": digest(policy.shares),
        "trained_on": digest(policy.trained_on),
        "weights": weights(policy.model.state_dict()),
    }
