"""How a process may behave: functions for `guarded_process`, in a module that another process can import."""

import os
import time
from pathlib import Path

import numpy as np


def crashes(path: Path) -> str:
    os.abort()


def hangs(path: Path) -> str:
    time.sleep(3600)
    return ""


def is_greedy(path: Path) -> str:
    return str(np.ones(2**32).sum())


def is_well(path: Path) -> str:
    return path.name
