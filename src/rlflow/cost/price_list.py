"""Measured prices, frozen in a readable file: with the same list, the same seed gives the same trajectory.

    prices = load(path, fingerprint(threads=1).key)
    prices.get("deployed", signature)           # Price(ms=0.41, description="MatMul ...", sigma_ms=0.01), or None

A list belongs to one machine, one runtime version, one thread count and one way of measuring (`PROTOCOL_VERSION`). Only
pricing appends to it.

Invariant: a price once taken is never replaced, and equal lists are equal files.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rlflow.atomic_file import written_whole
from rlflow.errors import PriceError
from rlflow.runtime.timing.batches import PROTOCOL_VERSION


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
    """Prices by (setting, signature); `hardware` is the fingerprint's key.

    All are taken at the pace at which the probe of `runtime.timing.batches` takes `probe_ms`: that of the first timing;
    None before it.
    """

    hardware: str
    machine: str
    probe_ms: float | None = None
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
            "prices": {key: asdict(price) for key, price in sorted(self.prices.items())},
        }
        with written_whole(path) as draft:  # several processes may share the list of a machine
            draft.write_text(json.dumps(content, indent=1) + "\n")


def load(path: Path, hardware: str) -> PriceList:
    """`PriceError` if the file is no price list, was measured in another way, or belongs to another machine."""
    try:
        content = json.loads(path.read_text())
        prices = {key: Price(**price) for key, price in content["prices"].items()}
        found, machine, probe_ms = content["hardware"], content["machine"], content["probe_ms"]
        protocol = content.get("protocol")
    except FileNotFoundError:
        raise PriceError(f"there is no price list {path}: run the stage that takes the prices first") from None
    except OSError as error:
        raise PriceError(f"the price list {path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PriceError(f"{path} is not a price list ({error}): delete it, and it will be measured again") from None
    if protocol != PROTOCOL_VERSION:
        raise PriceError(
            f"{path} was measured in another way (protocol {protocol or 'unknown'}, not {PROTOCOL_VERSION}), and such "
            "prices do not compare: delete it, and it will be measured again"
        )
    if found != hardware:
        raise PriceError(
            f"{path} was measured on other hardware ({machine}): delete it, and it will be measured again here"
        )
    return PriceList(found, machine, probe_ms, prices)
