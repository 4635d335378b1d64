"""The fingerprint of a machine: everything beside the graph that a measured price depends on."""

import hashlib
import json
import os
import platform
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import onnxruntime as ort

from rlflow.runtime.timing.batches import PROTOCOL_VERSION

_PROCESSOR_FIELDS = ("model name", "cpu family", "model", "stepping", "cache size")
_KEY_DIGITS = 12


@dataclass(frozen=True)
class HardwareFingerprint:
    """Processor, threads, runtime and pricing protocol; prices under different fingerprints are not comparable.

    `cores` is the number of logical processors, `threads` that of a session.
    """

    cpu_model: str
    cores: int
    threads: int
    runtime_version: str
    pricing_protocol: int

    @property
    def key(self) -> str:
        """Twelve hexadecimal digits that identify the fingerprint, hashed over all fields."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:_KEY_DIGITS]


def fingerprint(threads: int) -> HardwareFingerprint:
    """Return the fingerprint of this machine for sessions of `threads` threads."""
    return HardwareFingerprint(
        cpu_model=_cpu_model(),
        cores=os.cpu_count() or 1,
        threads=threads,
        runtime_version=ort.__version__,
        pricing_protocol=PROTOCOL_VERSION,
    )


@cache
def _cpu_model() -> str:
    """Describe the processor; family, model and stepping belong to it, since virtual machines often hide its name."""
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.is_file():
        return platform.processor() or platform.machine()
    first = cpuinfo.read_text().split("\n\n")[0]
    fields = dict(line.split(":", 1) for line in first.splitlines() if ":" in line)
    named = {name.strip(): value.strip() for name, value in fields.items()}
    parts = [named[field] for field in _PROCESSOR_FIELDS if field in named]
    return " / ".join(parts) or platform.machine()
