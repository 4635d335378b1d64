"""Count how often the timing of two models is wrong, on models whose difference is known, and on drawn times.

    python pipelines/study.py timing_study

The figures go to data/results/timing/metrics.json. Half of the comparisons run beside busy loops of the study's own;
nothing else should run.
"""

import dataclasses
import os
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from onnx import ModelProto
from tracking.run import numbers

from rlflow import zoo
from rlflow.cli.progress import progress_bar
from rlflow.optimise.gate import GateConfig
from rlflow.runtime.timing.belief import Belief, prior_of
from rlflow.runtime.timing.sequential import SequentialTest, decisions
from studies.busy_loops import beside_busy_loops
from studies.program import study_program, study_run
from studies.published import publish
from studies.timing_study.documents import Timing
from studies.timing_study.trials import NOISES, Decide, Trial, figures, simulated, trial

RESULTS = Path("data/results/timing/metrics.json")
SAME, SLOWER, FASTER = "same_model", "slower_model", "faster_model"


@study_program("timing_study")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    proof = SequentialTest(**settings["proof"] | {"spreads": tuple(settings["proof"]["spreads"])})
    gate = GateConfig(**settings["gate"])
    layers = settings["model"]["layers"]
    plain = zoo.build("mlp", **settings["model"])
    slower = zoo.build("mlp", **settings["model"] | {"layers": settings["slower_layers"]})

    with study_run("timing_study", settings) as run:
        results: dict[str, Any] = {"load": os.getloadavg()[0]}
        for name, other in ((SAME, plain), (SLOWER, slower)):
            results[name] = _groups(name, plain, other, settings, gate, proof)
        results["slower_model_work_ratio"] = layers / settings["slower_layers"]
        results["simulated"] = dict(_simulated(settings, proof))
        run.log(0, numbers(results))
        publish(RESULTS, Timing, results, __file__)
        run.artifact(RESULTS)


def _groups(
    name: str, plain: ModelProto, other: ModelProto, settings: Any, gate: GateConfig, proof: SequentialTest
) -> dict[str, Any]:
    """Compare two models by turns on the machine as it is and beside busy loops."""
    trials: dict[str, list[Trial]] = {"quiet": [], "busy": []}
    cases = settings["cases"][name]
    with progress_bar(name) as on_progress:
        for case in range(cases):
            beside = "busy" if case % 2 else "quiet"
            seeded = dataclasses.replace(gate, seed=settings["seed"] + case)
            with beside_busy_loops(settings["busy_loops"]) if beside == "busy" else nullcontext():
                trials[beside].append(trial(plain, other, settings["setting"], seeded, proof))
            on_progress((case + 1) / cases, f"{case + 1} of {cases}")
    return {beside: figures(done) for beside, done in trials.items()}


def _simulated(settings: Any, proof: SequentialTest) -> Iterator[tuple[str, Any]]:
    """The same on drawn times, by kind of noise and its spread: by what is believed where nothing was predicted, where
    a saving was that there is not, and by proof.
    """
    drawn = settings["simulated"]
    sizes = {"rounds": drawn["rounds"], "cases": drawn["cases"], "seed": settings["seed"]}
    deciding: dict[str, Decide] = {
        "believed": Belief().decisions,
        "flattered": Belief(prior=prior_of(drawn["flattered_percent"])).decisions,
        "proven": partial(decisions, test=proof),
    }
    groups = {SAME: 0.0, SLOWER: drawn["slowdown"], FASTER: -drawn["slowdown"]}
    for kind, noise in NOISES.items():
        for spread in drawn["spreads"]:
            yield (
                f"{kind}_{spread:g}",
                {
                    group: {
                        how: simulated(noise(spread), slowdown, decide, **sizes) for how, decide in deciding.items()
                    }
                    for group, slowdown in groups.items()
                },
            )
