"""The modules beside a program, for the jobs of a multirun that a launcher starts as programs of their own.

`python pipelines/study.py paper.cells` finds `parts.py` because it lies in the same folder. A job of Submitit or Ray is
another program, that unpickles what is to be called and looks for `parts` in vain, unless PYTHONPATH names the folder.
"""

import os
import sys
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

_VARIABLE = "PYTHONPATH"  # inherited by the jobs of every launcher


class ModulesBeside(Callback):
    """A Hydra callback that lets the jobs of a multirun import what lies beside the program."""

    def __init__(self) -> None:
        self._before: str | None = None

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Name the program's folder."""
        self._before = os.environ.get(_VARIABLE)
        os.environ[_VARIABLE] = os.pathsep.join(filter(None, [sys.path[0], self._before]))

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Leave the environment as it was."""
        if self._before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = self._before
