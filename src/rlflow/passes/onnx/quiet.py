"""Silence for libraries that print, log and warn while they rewrite a model."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from rlflow.runtime.transformers import silent_runtime

_CHATTY = ("onnxscript", "onnx_ir", "onnxslim")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what the libraries say from the caller's terminal and log; their exceptions pass."""
    loggers = [logging.getLogger(name) for name in _CHATTY]
    nowhere = io.StringIO()
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        with silent_runtime(), warnings.catch_warnings(), redirect_stdout(nowhere), redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
