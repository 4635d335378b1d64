"""A stage of the pipeline: one function of one `Stage`, run by Hydra, watched by MLflow, declared in dvc.yaml.

    @pipeline_stage
    def fit_world_model(stage: Stage) -> None:
        rollouts = Rollouts.load(stage.input("data/rollouts"))
        model = ...
        model.save(stage.output("data/world_models"))

dvc.yaml is the only list of what a stage reads and writes. A `Stage` hands out the declared sections of the
configuration, the declared inputs and the declared outputs; anything else is an error.

What a stage does for each graph of the experiment is a function of a `Stage` too:

    metrics = stage.each_graph(_fit)       # {"bert": _fit(stage on bert), ...}
    metrics = stage.graphs_at_once(_fit)   # the same, in a process for each: if it measures nothing

Several workers may share what takes a stage long, each a process of its own on any machine that sees the same folder:

    @shared_stage(play)                                  play(stage, share) leaves checkpoints
    def collect_rollouts(stage: Stage) -> None: ...      finds them, and does what is missing

A stage may return a figure, which is what a search over its settings makes best (`hydra/sweeper=optuna`):

    return mean_score(metrics)

The invariant: outputs appear all at once, when the function has returned. A stage that fails or is killed leaves the
old ones, and goes on from its checkpoint when it is started again.
"""

import functools
import inspect
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, wait
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import hydra
import yaml
from filelock import AcquireReturnProxy, FileLock, Timeout
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from rlflow.errors import InputError, RLFlowError
from rlflow.kept import fingerprint
from rlflow.method import OnProgress
from tracking.code import digest_of
from tracking.composition import completed, graph_names
from tracking.data_set import named_content
from tracking.declaration import StageDeclaration, read_declaration
from tracking.finished import Finished, finish, finished
from tracking.headline import headline, rows
from tracking.processes import process_pool
from tracking.progress import Advance, Told, shown_progress, tell, told_progress
from tracking.provenance import source_tags
from tracking.run import Run, flatten, numbers, open_child, open_run
from tracking.settings import Settings, settings_of
from tracking.share import Share
from tracking.stopwatch import Stopwatch
from tracking.store import main_root, open_store
from tracking.sweep import Job, label, place_of, swept_job
from tracking.ui import run_address

T = TypeVar("T")
log, told = logging.getLogger(__name__), logging.getLogger("told")


@dataclass(frozen=True)
class Stage:
    """A stage while it runs.

    graphs: their names; section `graphs` of the settings has them, and `graph` that of the one graph where `each_graph`
    has led. root: the repository's root, where inputs are. checkpoint: a folder that outlives the process until the
    stage has ended well; it is the same for the same settings, inputs and code. processes: graphs or trainings that may
    be worked on at a time. told: the queue by which to tell of progress, where another process draws the bars.
    """

    declaration: StageDeclaration
    settings: Settings
    graphs: tuple[str, ...]
    root: Path
    staging: Path
    checkpoint: Path
    run: Run
    processes: int = 1
    told: Told | None = None

    @property
    def seed(self) -> int:
        """The seed of everything that the stage draws."""
        seed: int = self.settings["seed"]
        return seed

    @property
    def graph(self) -> str:
        """The name of the graph that section `graph` describes."""
        (name,) = self.graphs
        return name

    def each_graph(self, work: Callable[["Stage"], T]) -> dict[str, T]:
        """Call `work` for one graph after another; its results by the graph's name.

        `work` is given the stage on that graph alone: with its section under "graph", and with a folder of checkpoints
        of its own. Inputs and outputs are those of the whole stage.
        """
        return {name: work(self._on(name)) for name in self.graphs}

    def graphs_at_once(self, work: Callable[["Stage"], T]) -> dict[str, T]:
        """Do what `each_graph` does, with `processes` graphs at a time, each in a process of its own.

        `work` is a function of a module, or a `partial` of one, of which no result depends on time: the seconds that it
        tells are those of a busy machine. If it fails on one graph, that on the others is brought to its end, whose
        checkpoints the next run finds.
        """
        processes = min(self.processes, len(self.graphs))
        if processes == 1:
            return self.each_graph(work)
        stages = {name: self._on(name) for name in self.graphs}
        with told_progress() as told, process_pool(processes) as pool:
            jobs = {name: pool.submit(_worked, work, replace(stage, told=told)) for name, stage in stages.items()}
            wait(jobs.values(), return_when=FIRST_EXCEPTION)
            for name, job in jobs.items():
                if job.done() and job.exception() is not None:
                    log.error("%s failed on %s: %s", self.declaration.name, name, job.exception())
            return {name: job.result() for name, job in jobs.items()}

    def _on(self, graph: str) -> "Stage":
        """The stage on the graph of that name."""
        settings = Settings(self.settings)
        if "graphs" in settings:
            settings["graph"] = settings.pop("graphs")[graph]
        checkpoint = self.checkpoint / "graphs" / graph
        checkpoint.mkdir(parents=True, exist_ok=True)
        return replace(self, settings=settings, graphs=(graph,), checkpoint=checkpoint)

    @property
    def results(self) -> str:
        """The folder of the stage's figures."""
        return self.declaration.results

    def input(self, path: str) -> Path:
        """The path of a declared dependency, or of a file inside one."""
        if not any(Path(path).is_relative_to(declared) for declared in self.declaration.dependencies):
            raise InputError(f"{self.declaration.name} reads {path}; add it to the stage's deps in dvc.yaml")
        return self.root / path

    def output(self, path: str) -> Path:
        """The path at which to write a declared output, or a file inside one; its folder exists."""
        if not any(Path(path).is_relative_to(declared) for declared in self.declaration.outputs):
            raise InputError(f"{self.declaration.name} writes {path}; add it to the stage's outs in dvc.yaml")
        staged = self.staging / path
        staged.parent.mkdir(parents=True, exist_ok=True)
        return staged

    @cached_property
    def stopwatch(self) -> Stopwatch:
        """The stopwatch of the stage, started on first use; it counts earlier processes that were killed, too."""
        return Stopwatch(self.checkpoint / "elapsed.txt")

    @property
    def scratch(self) -> Path:
        """A folder for large files that are thrown away with the end of the stage."""
        folder = self.staging / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def metrics(self) -> Path:
        """The path at which to write the stage's metrics.json."""
        return self.output(f"{self.results}/metrics.json")

    @property
    def summary(self) -> Path:
        """The path at which to write the few figures that DVC shows: the declared file beside the results' folder."""
        if self.declaration.summary is None:
            beside = Path(self.results).parent
            raise InputError(f"{self.declaration.name} has no summary; add {beside}/NAME.yaml to its outs in dvc.yaml")
        return self.output(self.declaration.summary)

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Record figures of the graph at a step in MLflow, whose charts are grouped by the graph's name."""
        self.run.log(step, {f"{self.graph}/{name}": value for name, value in figures.items()})

    def report(self, figures: dict[str, Any]) -> None:
        """Record in MLflow the headline of nested figures, and of each method's row a run with its own."""
        self.run.head(headline(figures, self.settings))
        for graph, method, row in rows(figures):
            named = {"graph": graph, "method": method, "seed": self.seed}
            with open_child(self.run, f"{graph} {method}", parameters=named) as child:
                child.head(row)

    @contextmanager
    def progress(self, description: str) -> Iterator[OnProgress]:
        """Show a progress bar; the function that it yields takes the fraction done and a line of text."""
        told = self.told
        if told is not None:
            yield lambda fraction, text: tell(told, Advance(description, fraction, text))
            return
        with shown_progress() as show:
            yield lambda fraction, text: show(Advance(description, fraction, text))


def _worked(work: Callable[[Stage], T], stage: Stage) -> T:
    """Do the work on one graph in a process of its own, and send to MLflow all that was logged."""
    try:
        return work(stage)
    finally:
        stage.run.flush()


Work = Callable[[Stage, Share], None]
"""What one worker does of a stage."""


Function = Callable[[Stage], float | None]
"""A stage's function; what it returns, if anything, is what a search over settings makes best."""


def pipeline_stage(function: Function) -> Callable[[], None]:
    """Make `function` a Hydra program; script, function and stage have one name."""
    return _program(function, _undivided)


def shared_stage(work: Work) -> Callable[[Function], Callable[[], None]]:
    """Make a function a Hydra program that does a share of the stage's work instead, if there are several `workers`."""
    return lambda function: _program(function, work)


def _undivided(stage: Stage, share: Share) -> None:
    raise InputError(f"{stage.declaration.name} is the work of one process: leave `workers` at 1")


def _program(function: Function, work: Work) -> Callable[[], None]:
    script = Path(
        inspect.getfile(inspect.unwrap(function))
    )  # where joblib takes the function, nothing tells of its file

    @functools.wraps(function)
    def task(config: DictConfig) -> float | None:
        job = HydraConfig.get()
        root = Path.cwd()
        sweeping = job.mode == RunMode.MULTIRUN
        output_root = Path(job.runtime.output_dir) if sweeping else root
        # Jobs of a sweep run beside each other already, and some launchers let none start processes.
        processes = 1 if sweeping else config.get("processes", 1)
        overrides = job.overrides.task
        return run_stage(
            function,
            config,
            script=script,
            root=root,
            output_root=output_root,
            overrides=overrides,
            job=swept_job(overrides, open_store()) if sweeping else None,
            work=work,
            processes=processes,
        )

    program: Callable[[], None] = hydra.main(version_base="1.3", config_path="../conf", config_name="config")(task)
    return program


def run_stage(
    function: Function,
    config: DictConfig,
    *,
    script: Path,
    root: Path,
    output_root: Path,
    overrides: list[str],
    job: Job | None = None,
    work: Work = _undivided,
    processes: int = 1,
) -> float | None:
    """Run `function` with what its stage declares, and publish its outputs below `output_root` if it succeeds.

    Returns what the function returns.

    script: the file of the function. job: what the stage is a part of; what is done in that place is not done again.
    processes: graphs that it may work on at a time. A worker among several runs `work` instead, of which the checkpoint
    alone is left.
    """
    share = Share(config.get("worker", 0), config.get("workers", 1))
    declaration = read_declaration(function.__name__, root)
    config = completed(config)
    graphs, settings = graph_names(config), _settings(declaration, config)
    run_of = work_of(declaration, config, script, root)
    checkpoint = main_root() / ".checkpoints" / declaration.name / run_of
    staging = output_root / ".staging" / declaration.name

    tags = {
        "stage": declaration.name,
        "graph": " ".join(graphs),
        "mlflow.source.name": f"pipelines/{function.__name__}.py",
        **source_tags(root, overrides),
    }
    store = place_of(open_store(), job, config.get("aside", False))
    name = f"{declaration.name}/{'+'.join(graphs)}/{config.seed}"
    swept, parent_id = ({}, None) if job is None else (job.swept, job.parent_id)
    with ExitStack() as opened:
        opened.enter_context(_alone(checkpoint, share))
        if job is not None and (done := finished(output_root, declaration.name, run_of, job, store)) is not None:
            return done.figure
        parameters = {"graph": " ".join(graphs), **swept, **flatten(settings)}
        run = opened.enter_context(
            open_run(store, label(swept) or name, parameters=parameters, tags=tags, parent_id=parent_id)
        )
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        told.info("%s", _announcement(declaration, run, tags["graph"]))
        opened.callback(_keep_logs, run)
        run.write("config.yaml", OmegaConf.to_yaml(config, resolve=True))
        run.read_files(_data_read(declaration, config, root))
        stage = Stage(declaration, settings, graphs, root, staging, checkpoint, run, processes)
        if share.workers > 1:
            work(stage, share)
            shutil.rmtree(staging, ignore_errors=True)
            return None
        figure = function(stage)
        run.describe(_description(stage))
        _publish(declaration, staging, output_root)
        _keep_results(run, declaration, output_root)
        if job is not None:
            finish(output_root, declaration.name, Finished(run_of, run.run_id, figure))
        shutil.rmtree(checkpoint)
    return figure


def work_of(declaration: StageDeclaration, config: DictConfig, script: Path, root: Path) -> str:
    """A fingerprint of all that the outputs of a stage depend on: settings, inputs and code."""
    settings, code = _settings(declaration, config), digest_of(script, root)
    return fingerprint(settings, code, content=named_content(declaration.dependencies, root))


def _settings(declaration: StageDeclaration, config: DictConfig) -> Settings:
    everything: Any = OmegaConf.to_container(config, resolve=True)
    return settings_of(declaration.sections, everything)


@contextmanager
def _alone(checkpoint: Path, share: Share) -> Iterator[None]:
    """Wait until no other process has the checkpoint, which is there then; several workers are meant to share it.

    A search over settings may try the same ones twice, side by side.
    """
    locks = checkpoint.parents[1] / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    alone = FileLock(locks / f"{checkpoint.parent.name}-{checkpoint.name}.lock")
    with _acquired(alone) if share.workers == 1 else nullcontext():
        checkpoint.mkdir(parents=True, exist_ok=True)
        yield


def _acquired(lock: FileLock) -> AcquireReturnProxy:
    """Acquire the lock; say so if that means to wait."""
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        log.warning("another process runs this stage with the same settings; waiting until it has ended")
        return lock.acquire()


def _data_read(declaration: StageDeclaration, config: DictConfig, root: Path) -> dict[str, Path]:
    """The data that a stage depends on, price lists among them, and a user's own models."""
    data = {path: root / path for path in declaration.dependencies if Path(path).is_relative_to("data")}
    models = {graph.path: Path(graph.path) for graph in config.graphs.values() if graph.kind == "file"}
    return data | models


def _description(stage: Stage) -> str:
    """Say in Markdown what the stage does and on which graphs, and list the few figures that it has for DVC."""
    lines = [stage.declaration.description, f"Graphs: {', '.join(stage.graphs)}. Seed: {stage.seed}."]
    if (summary := stage.declaration.summary) is not None:
        lines.append((stage.staging / summary).read_text().strip().replace("\n", "; "))
    return "\n\n".join(line for line in lines if line)


def _announcement(declaration: StageDeclaration, run: Run, graphs: str) -> str:
    """One line on a stage that begins: what it does, how long that took the last time, and where its run is shown."""
    alike = f"tags.stage = '{declaration.name}' and tags.graph = '{graphs}' and attributes.status = 'FINISHED'"
    before = run.store.client.search_runs([run.store.experiment_id], alike, max_results=1)
    took = [f"{(one.info.end_time - one.info.start_time) / 60_000:.1f} min the last time." for one in before]
    address = run_address(run.store.experiment_id, run.run_id)
    return " ".join(filter(None, [f"{declaration.name}:", declaration.description, *took, address]))


def _keep_logs(run: Run) -> None:
    """Let the run have what was logged so far: the files of this process, which Hydra has opened."""
    files = (Path(one.baseFilename) for one in logging.getLogger().handlers if isinstance(one, logging.FileHandler))
    for file in files:
        run.artifact(file)


def _keep_results(run: Run, declaration: StageDeclaration, folder: Path) -> None:
    """Let the run have the figures for DVC, and all files beside its results that the stage has not given it."""
    if declaration.summary is not None:
        run.head(numbers(yaml.safe_load((folder / declaration.summary).read_text())))
    kept = run.artifacts()
    for path in declaration.outputs:
        if Path(path).parent == Path(declaration.results) and Path(path).name not in kept:
            run.artifact(folder / path)


def _publish(declaration: StageDeclaration, staging: Path, output_root: Path) -> None:
    """Move every declared output into place. Raises RLFlowError, and moves none, if one is missing."""
    missing = [path for path in declaration.outputs if not (staging / path).exists()]
    if missing:
        raise RLFlowError(
            f"{declaration.name} ended without writing {', '.join(missing)}, which dvc.yaml lists among its outs"
        )
    for path in declaration.outputs:
        target = output_root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            shutil.rmtree(target)
        os.replace(staging / path, target)
    shutil.rmtree(staging)
