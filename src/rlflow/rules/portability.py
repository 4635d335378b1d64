"""Measurements that tell if the gain of a rule is portable, or lives on a fusion of one runtime.

    in_words(rule)              "in bert_two_layers on amd-epyc-25-17: ...; its gain is portable"
    gainless_in("openvino")     ids of rules that gain elsewhere, but not there

The measurements are those of data/results/portability/metrics.json, a copy of which ships
(`make study NAME=portability`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from rlflow.rules.rule import Rule

FILE = "portability.json"
_MEANS = {
    "portable": "its gain is portable",
    "nowhere": "by itself it gains nothing there",
    "undecided": "timing did not decide whether its gain is portable",
}


def gains_of(rule: Rule) -> Mapping[str, Any] | None:
    """Return what was measured of a rule (`rlflow.schemas.portability.RuleGains`); None for one that was not."""
    found: Mapping[str, Any] | None = _shipped()["rules"].get(rule.id)
    return found


def in_words(rule: Rule) -> str:
    """Return what was measured of a rule as a clause; nothing for one that was not."""
    found = gains_of(rule)
    if found is None:
        return ""
    runtimes = _shipped()["runtimes"]
    gains = [
        f"{gain['ratio']:.2f} times as fast in {runtimes[setting]}{_held(gain['interval'])}"
        for setting, gain in found["gains"].items()
    ]
    gains += [f"refused by {runtimes[setting]}" for setting in found["refused"]]
    return f"in {found['graph']} on {_shipped()['processor']}: {', '.join(gains)}; {_meaning(found, runtimes)}"


def gainless_in(setting: str) -> frozenset[str]:
    """Return the ids of the rules that are faster in another setting, and in this one are not."""
    if setting not in _shipped()["runtimes"]:
        return frozenset()
    rules = _shipped()["rules"].items()
    return frozenset(rule for rule, found in rules if found["portable"] == "partly" and setting not in _faster(found))


@cache
def _shipped() -> Mapping[str, Any]:
    """The document that ships (`rlflow.schemas.portability.Portability`)."""
    document: dict[str, Any] = json.loads((resources.files("rlflow.rules") / FILE).read_text(encoding="utf-8"))
    return document


def _held(interval: tuple[float, float] | None) -> str:
    return f" ({interval[0]:.2f} to {interval[1]:.2f})" if interval else ""


def _meaning(found: Mapping[str, Any], runtimes: Mapping[str, str]) -> str:
    if found["portable"] != "partly":
        return _MEANS[found["portable"]]
    return f"it gains in {' and '.join(runtimes[setting] for setting in _faster(found))} alone"


def _faster(found: Mapping[str, Any]) -> list[str]:
    return [setting for setting, gain in found["gains"].items() if gain["decision"] == "faster"]
