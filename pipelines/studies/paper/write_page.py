"""Write docs/results.md and its pictures from the figures in data/results."""

from pathlib import Path
from typing import Any

from experiment import figures
from experiment.results import read_results
from omegaconf import OmegaConf

from rlflow.atomic_file import written_whole
from rlflow.show.picture_file import save
from studies.paper.page import PARTS, page
from studies.paper.pictures import learning

ROOT = Path(__file__).parents[3]
PAPER = "data/results/paper"
OTHERS = {
    "bench": "data/results/bench.json",
    "cost_accuracy": "data/results/cost_accuracy/metrics.json",
    "fit_world_model": "data/results/fit_world_model/metrics.json",
    "headroom": "data/results/headroom/metrics.json",
    "reward_study": "data/results/reward_study/metrics.json",
    "sample_efficiency": "data/results/sample_efficiency/metrics.json",
    "temperature_sweep": "data/results/temperature_sweep/metrics.json",
}


def results_of(root: Path) -> dict[str, Any]:
    """The documents that the page is made from, those of the parts that were run among them."""
    files = {name: root / path for name, path in OTHERS.items()}
    files |= {part: file for part in PARTS if (file := root / PAPER / f"{part}.json").exists()}
    return {name: read_results(file) for name, file in files.items()}


def written(root: Path) -> str:
    """The page by the figures of a checkout."""
    published: Any = OmegaConf.to_container(OmegaConf.load(root / "conf/study/published.yaml"))
    return page(results_of(root), published)


def main() -> None:
    results = results_of(ROOT)
    with written_whole(ROOT / "docs/results.md") as draft:
        draft.write_text(written(ROOT))
    if "agents" in results:
        agents = results["agents"]
        applied = {graph: {"rlflow": found["rlflow"]["counts"]} for graph, found in agents.items()}
        save(figures.rule_heat_map(applied, "rlflow"), ROOT / PAPER / "rules.png")
        save(learning(agents), ROOT / PAPER / "learning.png")
