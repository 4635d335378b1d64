"""Measured prices, frozen in a readable file: with the same list, the same seed gives the same trajectory.

    prices = load(path, fingerprint(threads=1).key)
    prices.get("deployed", signature)           # Price(ms=0.41, description="MatMul ...", sigma_ms=0.01), or None

A list belongs to one machine, one runtime version, one thread count and one way of measuring (`PROTOCOL_VERSION`). Only
pricing appends to it, on that machine; elsewhere it may be read (`read`), and tells what things cost there. A file
whose name ends in .gz is compressed.

Invariant: a price once taken is never replaced, and equal lists are equal files.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rlflow.atomic_file import written_whole
from rlflow.cost.border_reorders import ReorderConfig
from rlflow.errors import PriceError
from rlflow.runtime.timing.batches import PROTOCOL_VERSION

_COMPRESSED = ".gz"


@dataclass(frozen=True, slots=True)
class Price:
    """Milliseconds of one execution, and their noise, one sigma; `description` is for people.

    `estimated` if the fragment could not be run.
    """

    ms: float
    description: str
    sigma_ms: float = 0.0
    estimated: bool = False

    def __post_init__(self) -> None:
        if not all(math.isfinite(value) and value >= 0 for value in (self.ms, self.sigma_ms)):
            raise ValueError(f"a price of {self.ms} ms, noise {self.sigma_ms} ms, for {self.description}")


@dataclass
class PriceList:
    """Prices by (setting, signature); `hardware` is the fingerprint's key, `machine` describes it.

    All are taken at the pace at which the probe of `runtime.timing.batches` takes `probe_ms`: that of the first timing;
    None before it. `block` is the machine's block of channels (`runtime.blocks`), on which prices of graphs depend.
    """

    hardware: str
    machine: str
    probe_ms: float | None = None
    block: int = ReorderConfig.block
    prices: dict[str, Price] = field(default_factory=dict)

    def get(self, setting: str, signature: str) -> Price | None:
        return self.prices.get(f"{setting}/{signature}")

    def add(self, setting: str, signature: str, price: Price) -> None:
        self.prices.setdefault(f"{setting}/{signature}", price)

    def save(self, path: Path) -> None:
        """Write whole or not at all; sorted, so that equal lists are equal files."""
        content = {
            "protocol": PROTOCOL_VERSION,
            "hardware": self.hardware,
            "machine": self.machine,
            "probe_ms": self.probe_ms,
            "block": self.block,
            "prices": {key: asdict(price) for key, price in sorted(self.prices.items())},
        }
        data = (json.dumps(content, indent=1) + "\n").encode()
        with written_whole(path) as draft:  # several processes may share the list of a machine
            draft.write_bytes(gzip.compress(data, mtime=0) if path.suffix == _COMPRESSED else data)


def load(path: Path, hardware: str) -> PriceList:
    """Return the list of a machine, to be appended to.

    `PriceError` as `read`, or if it belongs to another machine.
    """
    found = read(path)
    if found.hardware != hardware:
        raise PriceError(
            f"{path} was measured on other hardware ({found.machine}): delete it, and it will be measured again here"
        )
    return found


def read(path: Path) -> PriceList:
    """Return the list of whichever machine. `PriceError` if the file is none, or was measured in another way."""
    try:
        data = path.read_bytes()
        content = json.loads(gzip.decompress(data) if path.suffix == _COMPRESSED else data)
        prices = {key: Price(**price) for key, price in content["prices"].items()}
        found = PriceList(content["hardware"], content["machine"], content["probe_ms"], content["block"], prices)
        protocol = content.get("protocol")
    except FileNotFoundError:
        raise PriceError(f"there is no price list {path}: run the stage that takes the prices first") from None
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise PriceError(f"{path} is not a price list ({error}): delete it, and it will be measured again") from None
    except OSError as error:
        raise PriceError(f"the price list {path} cannot be read: {error.strerror}") from None
    if protocol != PROTOCOL_VERSION:
        raise PriceError(
            f"{path} was measured in another way (protocol {protocol or 'unknown'}, not {PROTOCOL_VERSION}), and such "
            "prices do not compare: delete it, and it will be measured again"
        )
    return found
