"""The fingerprint of a machine: everything beside the graph that a measured price depends on."""

import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import onnxruntime as ort

from rlflow.runtime.timing.batches import PROTOCOL_VERSION

_PROCESSOR_FIELDS = ("model name", "cpu family", "model", "stepping", "cache size")
_KEY_DIGITS = 12
_TRADEMARKS = re.compile(r"\((R|TM)\)|Processor|CPU|@.*GHz")
_PROCESSORS = Path("/sys/devices/system/cpu")
_CACHES = _PROCESSORS / "cpu0/cache"


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


def usable_cores() -> int:
    """Return the number of cores on which this process may run, of threads that ONNX Runtime has by default.

    Logical processors that share a core count once, where the system says which do.
    """
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    siblings = {each: _PROCESSORS / f"cpu{each}/topology/thread_siblings_list" for each in os.sched_getaffinity(0)}
    return len({_read(path) or str(each) for each, path in siblings.items()})


def processor_name() -> str:
    """Return a short name of the processor: "amd-epyc-25-17" by its name, family and model."""
    fields = [_cpuinfo().get(field, "") for field in ("model name", "cpu family", "model")]
    text = _TRADEMARKS.sub(" ", " ".join(fields) if any(fields) else _cpu_model())
    return "-".join(re.findall(r"[a-z0-9.]+", text.lower()))


def machine_name(threads: int) -> str:
    """Return the name of the processor as sessions of so many threads use it: "amd-epyc-25-17-threads-4"."""
    return processor_name() if threads == 1 else f"{processor_name()}-threads-{threads}"


def processor_of(machine: str) -> str:
    """Return the processor of a machine by its name."""
    return machine.partition("-threads-")[0]


def processor_traits(threads: int) -> Mapping[str, float]:
    """Return the traits that the system tells of this machine, for sessions of so many threads.

    They are the megabytes of a core's cache (`l2_mb`) and of the last one (`cache_mb`), and 1 where there are AVX-512
    and AMX. Outside Linux, caches are those of a common processor.
    """
    sizes = {_read(place / "level"): _read(place / "size") for place in sorted(_CACHES.glob("index*"))}
    last = max(sizes, default="")
    flags = set(_cpuinfo().get("flags", "").split())
    return {
        "l2_mb": _megabytes(sizes.get("2", ""), 1.0),
        "cache_mb": _megabytes(sizes.get(last, ""), 32.0),
        "avx512": float("avx512f" in flags),
        "amx": float("amx_tile" in flags),
        "threads": float(threads),
    }


def _read(path: Path) -> str:
    return path.read_text().strip() if path.is_file() else ""


def _megabytes(size: str, unknown: float) -> float:
    number = size.removesuffix("K")
    return int(number) / 1024 if number.isdecimal() and int(number) else unknown


@cache
def _cpuinfo() -> dict[str, str]:
    """Return what Linux says of the first processor, nothing elsewhere."""
    first = _read(Path("/proc/cpuinfo")).split("\n\n")[0]
    fields = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in fields}


def _cpu_model() -> str:
    """Describe the processor; family, model and stepping belong to it, since virtual machines often hide its name."""
    named = _cpuinfo()
    parts = [named[field] for field in _PROCESSOR_FIELDS if field in named]
    return " / ".join(parts) or platform.processor() or platform.machine()
