"""Pictures of the committed results; their bytes follow matplotlib's version and the fonts that come with it."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiment import figures
from experiment.results import read_results
from matplotlib.figure import Figure
from studies.paper import pictures

from rlflow.show.picture_file import save
from support.golden.digests import Value, digest
from support.golden.entries import Compute
from support.repository import REPOSITORY

RESULTS = REPOSITORY / "data/results"
PICTURES: Mapping[str, tuple[str, Callable[[Any], Figure]]] = {
    "benchmarks": ("bench.json", figures.step_growth),
    "headroom": ("headroom/metrics.json", figures.improvement),
    "latency ratios": ("evaluate/metrics.json", figures.latency_ratios),
    "learned": ("learned/curves.json", figures.learned_curves),
    "learning in the dream": ("paper/agents.json", pictures.learning),
    "rules applied": ("evaluate/rules_applied.json", partial(figures.rule_heat_map, method="rlflow")),
    "temperature sweep": ("temperature_sweep/metrics.json", figures.temperature_sweep),
    "training curves": ("train_controller/curves.json", figures.training_curves),
    "trust in the dream": ("fit_world_model/metrics.json", figures.trust),
}


def entries() -> Mapping[str, Compute]:
    """Return the pictures."""
    return {name: partial(_drawn, *source) for name, source in PICTURES.items()}


def _drawn(file: str, draw: Callable[[Any], Figure]) -> Value:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "picture.png"
        save(draw(read_results(RESULTS / file)), path)
        return digest(path.read_bytes())
