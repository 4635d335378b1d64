"""The folder of a job of a multirun, which is named by its overrides: `${job_folder:...}` of conf/hydra_base.yaml.

    job_folder("controller=model_free,seed=0")        # as it is
    job_folder(<300 characters>)                      # the first of them, and a digest of all

The invariant: equal overrides have one folder, others another, and every file system takes its name.
"""

import hashlib

from omegaconf import OmegaConf

_LONGEST = 200
"""Bytes of a name; file systems take 255, and locks and drafts beside a folder have longer names than it."""
_DIGITS = 12


def job_folder(overrides: str) -> str:
    """Return the path of a job's folder in that of its multirun; a value with a slash makes several folders of it."""
    return "/".join(map(_shortened, overrides.split("/")))


def _shortened(name: str) -> str:
    if len(name.encode()) <= _LONGEST:
        return name
    kept = name.encode()[: _LONGEST - _DIGITS - 1].decode(errors="ignore")
    return f"{kept}-{hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]}"


OmegaConf.register_new_resolver("job_folder", job_folder, replace=True)
