"""XLA's compiler for the CPU, stopped in the middle: the graph as it stands when the passes that are on have run.

    hlo = hlo_after(stablehlo, disabled_for(("algsimp",)))      a serialised HloModuleProto
    stablehlo = as_stablehlo(hlo)                               which the compiler takes again
    executable = compiled(stablehlo)                            the whole pipeline, to be run

XLA calls a function of ours with the graph before it schedules it. The function keeps the graph and raises, so that no
code is generated. It is called for every compilation of the process, those of jax as well: it acts only while a graph
is awaited.

Invariant: nothing here holds a state between two calls.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache

import jax
import numpy as np
from jaxlib import _hlo, _jax, _xla  # type: ignore[attr-defined]  # it comes without stubs

from rlflow.passes.backend import PassError

_TRANSFORM = "rlflow-pass-capture"
_PRE_SCHEDULER = 0


class _Stop(Exception):
    """Raised into the compiler as soon as the graph is there."""


class _Capture:
    """The function that the compiler calls, and the graph that it was called with."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.armed = False
        self.hlo: bytes | None = None

    def __call__(self, hlo: bytes) -> None:
        if self.armed:
            self.hlo = bytes(hlo)
            raise _Stop


@cache
def _capture() -> _Capture:
    capture = _Capture()
    _xla.register_xla_transform(_TRANSFORM, _PRE_SCHEDULER, capture)
    return capture


@cache
def client() -> _jax.Client:
    """The compiler for the CPU, jax's own."""
    return jax.local_devices(backend="cpu")[0].client


def hlo_after(stablehlo: bytes, disabled: str) -> bytes:
    """Return the graph after a compilation in which `disabled` was off. Raises `PassError` if the compiler refuses."""
    capture = _capture()
    options = _jax.CompileOptions()
    options.executable_build_options.debug_options.xla_disable_hlo_passes = disabled
    with capture.lock:
        capture.armed, capture.hlo = True, None
        try:
            client().compile_and_load(stablehlo, client().devices()[:1], options)
        except Exception as error:  # that of the capture, wrapped by the compiler, or one of the compiler's own
            if capture.hlo is None:
                raise PassError(f"XLA refused the program: {_first_line(error)}") from error
        finally:
            capture.armed = False
        if capture.hlo is None:
            raise PassError("XLA compiled the program without calling the transform that RLFlow registered")
        return capture.hlo


def as_stablehlo(hlo: bytes) -> bytes:
    """Return a graph in the form that the compiler takes. Raises `PassError` if it has none."""
    try:
        return bytes(_jax.mlir.hlo_to_stablehlo(hlo))
    except Exception as error:
        raise PassError(f"XLA could not write the program as StableHLO: {_first_line(error)}") from error


def module_of(hlo: bytes) -> _hlo.HloModule:
    """Return a graph as an object to look into."""
    return _hlo.HloModule.from_serialized_hlo_module_proto(hlo)


def compiled(stablehlo: bytes) -> _jax.LoadedExecutable:
    """Compile a program to be run, with every pass that XLA has. Raises `PassError` if the compiler refuses."""
    try:
        return client().compile_and_load(stablehlo, client().devices()[:1], _jax.CompileOptions())
    except Exception as error:
        raise PassError(f"XLA could not compile the program: {_first_line(error)}") from error


def on_device(arrays: Sequence[np.ndarray]) -> list[_jax.Array]:
    """Put arrays where an executable reads them, with the element types that they have."""
    with jax.enable_x64(True):  # or else jax would narrow 64 bits to 32
        return [jax.device_put(array, client().devices()[0]) for array in arrays]


def run(executable: _jax.LoadedExecutable, inputs: Sequence[_jax.Array]) -> list[np.ndarray]:
    """Run a program and return its outputs."""
    return [np.asarray(output) for output in executable.execute(list(inputs))]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
