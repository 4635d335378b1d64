"""Run the experiment twice in fresh clones of the last commit, the second time beside busy loops, and compare the runs.

    python pipelines/study.py repro_study

What the experiment takes, by stage, and whether both runs came out alike go to data/results/repro_study/metrics.json.
Nothing else should run.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.code import scripts
from tracking.declaration import stage_names
from tracking.run import numbers

from rlflow.cli.progress import progress_bar
from rlflow.errors import RLFlowError
from studies.busy_loops import beside_busy_loops
from studies.program import open_study, study_program
from studies.published import ROOT, publish
from studies.repro_study.documents import ReproStudy

RESULTS = Path("data/results/repro_study/metrics.json")
COMPOSES = "config"  # the stage that composes conf/, which the study does with its overrides
RUNS = ("quiet", "busy")
_DECIMALS = 1


@study_program("repro_study")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    with open_study("repro_study", settings) as study:
        repository, overrides = Path(settings["repository"]), settings["overrides"]
        clones, runs = {name: _cloned(repository, study.folder / name, overrides) for name in RUNS}, {}
        for name, clone in clones.items():
            with beside_busy_loops(settings["busy_loops"]) if name == "busy" else nullcontext():
                runs[name] = _run(clone, name) | {"busy_loops": settings["busy_loops"] if name == "busy" else 0}
        results = {"runs": runs, **_compared(*clones.values())}
        study.run.log(0, numbers(results))
        stages = (script for _, script in scripts(ROOT, ROOT / "pipelines"))
        publish(RESULTS, ReproStudy, results, __file__, *stages)
        study.run.artifact(RESULTS)


def _cloned(repository: Path, clone: Path, overrides: list[str]) -> Path:
    """Clone the last commit, without anything that DVC keeps, and compose its parameters."""
    shutil.rmtree(clone, ignore_errors=True)
    clone.mkdir(parents=True)
    _call("git", "clone", "--quiet", str(repository.resolve()), ".", cwd=clone)
    _call(sys.executable, "-m", "tracking.composition", *overrides, cwd=clone)
    return clone


def _run(clone: Path, name: str) -> dict[str, Any]:
    """Run all stages; returns the seconds of each, and of all."""
    names = [stage for stage in stage_names(clone) if stage != COMPOSES]
    stages = {}
    with progress_bar(name) as on_progress:
        for done, stage in enumerate(names):
            on_progress(done / len(names), stage)
            stages[stage] = _seconds("dvc", "repro", "--single-item", "--force", stage, cwd=clone)
    total = {key: round(sum(seconds[key] for seconds in stages.values()), _DECIMALS) for key in ("cpu_s", "wall_s")}
    return total | {"stages": stages}


def _seconds(*command: str, cwd: Path) -> dict[str, float]:
    """Run a command; returns the seconds that it took, on the wall and of processors, its children's included."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    _call(*command, cwd=cwd)
    after, wall_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - started
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu_s": round(cpu_s, _DECIMALS), "wall_s": round(wall_s, _DECIMALS)}


def _compared(published: Path, fresh: Path) -> dict[str, Any]:
    """Compare two runs as `make verify-repro` does: what was compared of each kind, and what is not alike."""
    program = [sys.executable, "pipelines/verify_repro.py", str(fresh), "--published", str(published), "--json"]
    answer = subprocess.run(program, cwd=published, env=_environment(published), capture_output=True, text=True)
    if answer.returncode not in (0, 1):  # 1 is for runs that are not alike
        raise RLFlowError(f"{published} and {fresh} cannot be compared: {answer.stderr.strip()}")
    document = json.loads(answer.stdout)
    return {
        "reproduced": document["reproduced"],
        "kinds": document["kinds"],
        "outputs": {output["path"]: output["same_bytes"] for output in document["outputs"]},
        "unlike": sorted({f"{found['file']} {found['place']}".strip() for found in document["unlike"]}),
        "faults": document["faults"],
    }


def _call(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, env=_environment(cwd), check=True)


def _environment(folder: Path) -> dict[str, str]:
    """The environment in which the library and the stages are those of a clone."""
    code = os.pathsep.join(str(folder / part) for part in ("src", "pipelines"))
    return os.environ | {"PYTHONPATH": code, "OMP_NUM_THREADS": "1", "DVC_NO_ANALYTICS": "1"}
