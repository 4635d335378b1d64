"""What a measured price depends on beside the graph: processor, threads, runtime and the pricing protocol."""

import hashlib
import json
import os
import platform
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import onnxruntime as ort

from rlflow.runtime.timing.fragments import PROTOCOL_VERSION

_PROCESSOR_FIELDS = ("model name", "cpu family", "model", "stepping", "cache size")
_KEY_DIGITS = 12


@dataclass(frozen=True)
class HardwareFingerprint:
    """Prices measured under one fingerprint say nothing under another."""

    cpu_model: str
    cores: int
    threads: int
    runtime_version: str
    pricing_protocol: int

    @property
    def key(self) -> str:
        """Twelve hexadecimal digits over all fields."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:_KEY_DIGITS]


def fingerprint(threads: int) -> HardwareFingerprint:
    """The fingerprint of this machine for sessions of `threads` threads."""
    return HardwareFingerprint(
        cpu_model=_cpu_model(),
        cores=os.cpu_count() or 1,
        threads=threads,
        runtime_version=ort.__version__,
        pricing_protocol=PROTOCOL_VERSION,
    )


@cache
def _cpu_model() -> str:
    """Virtual machines often hide the model's name, so family, model and stepping belong to it."""
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.is_file():
        return platform.processor() or platform.machine()
    first = cpuinfo.read_text().split("\n\n")[0]
    fields = dict(line.split(":", 1) for line in first.splitlines() if ":" in line)
    named = {name.strip(): value.strip() for name, value in fields.items()}
    parts = [named[field] for field in _PROCESSOR_FIELDS if field in named]
    return " / ".join(parts) or platform.machine()
