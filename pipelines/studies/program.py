"""Studies: Hydra programs beside the pipeline, each of which goes through many graphs, costs or searches.

    @study_program("headroom")                                    settings: conf/study/headroom.yaml, groups: conf/
    def main(config: DictConfig) -> None: ...

    with open_study("headroom", settings) as study:
        graph = options_of("headroom")("graph", "bert")                    a section of conf/, by its name
        models = graph_files({"bert": graph}, study.folder, processes=2)   the models of sections
        rows = study.rows(cells, run_cell, on_row)                         each cell once, whatever is killed
        study.run.artifact(published(rows))

The invariant: what a study keeps in its folder is there until the study has ended well, and no longer.
"""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import hydra
from hydra import compose
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from tracking.data_set import named_content
from tracking.factories import model_file_of
from tracking.provenance import source_tags
from tracking.run import Run, open_run
from tracking.share import Share
from tracking.store import main_root, open_store

from rlflow.cli.progress import progress_bar
from rlflow.errors import InputError, RLFlowError
from rlflow.kept import fingerprint
from rlflow.runtime.isolation import Limits, call_isolated
from studies.runner import gathered, kept_rows

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=tuple[object, ...])

OptionOf = Callable[[str, str], dict[str, Any]]
"""Of a group and a name: that option's section."""

CONF = Path(__file__).parents[2] / "conf"
GROUPS = f"hydra.searchpath=['file://{CONF}']"
"""Where a study's settings find the options of groups, which the experiment's own settings lie beside."""

RUNNING = {"worker", "workers", "processes", "longest_s"}
"""Settings that say how cells are run, on which no row depends."""

_CODE = ("src/rlflow", "pipelines", "conf")


def study_program(configuration: str) -> Callable[[Callable[[DictConfig], None]], Callable[[], None]]:
    """Return the decorator that makes a function a Hydra program with the settings conf/study/`configuration`.yaml."""

    def decorate(task: Callable[[DictConfig], None]) -> Callable[[], None]:
        run = hydra.main(version_base="1.3", config_path=str(CONF / "study"), config_name=configuration)(task)

        @wraps(task)
        def program() -> None:
            sys.argv.append(GROUPS)
            run()

        return program

    return decorate


@contextmanager
def study_run(study: str, parameters: Mapping[str, Any]) -> Iterator[Run]:
    """Open the run of a study, tagged with how the program was started. It closes as `open_run` does."""
    tags = {"stage": study, **source_tags(Path.cwd(), HydraConfig.get().overrides.task)}
    with open_run(open_store(), study, parameters=parameters, tags=tags) as run:
        yield run


@dataclass(frozen=True)
class OpenStudy:
    """A study that runs: the folder for what it keeps until it has ended well, its run, and its share of the cells."""

    name: str
    settings: Mapping[str, Any]
    folder: Path
    run: Run
    share: Share
    missing: list[tuple[object, ...]] = field(default_factory=list)

    @property
    def publishes(self) -> bool:
        """False for one of several workers, who leave rows for a run that plays all."""
        return self.share.workers == 1

    def rows(
        self, cells: Mapping[K, T], run_cell: Callable[[T], R], on_row: Callable[[Run, K, R], str], kind: Any = Any
    ) -> dict[K, R]:
        """Run the cells of this worker, each in a process of its own; return their rows as `gathered` does.

        on_row: logs a row, and says in a few words what it shows. kind: the type of rows, if it is not JSON's.
        """
        longest_s, processes = self.settings["longest_s"], self.settings.get("processes", 1)
        keys = list(cells)
        mine = {keys[number]: cells[keys[number]] for number in self.share.of(len(keys))}
        return self.gathered(mine, kept_rows(mine, run_cell, lambda _: longest_s, processes, self.folder, kind), on_row)

    def gathered(
        self, cells: Mapping[K, T], rows: Iterable[tuple[K, R]], on_row: Callable[[Run, K, R], str]
    ) -> dict[K, R]:
        """Return the rows by key, in the order of the cells; those that are missing are named when the study ends."""
        with progress_bar(self.name.replace("_", " ")) as on_progress:
            found = gathered(cells, rows, partial(on_row, self.run), on_progress)
        self.missing.extend(key for key in cells if key not in found)
        return found

    def check_complete(self) -> None:
        """Raise `RLFlowError` naming the cells without a row."""
        if missing := [" ".join(map(str, key)) for key in self.missing]:
            raise RLFlowError(f"without a result, to be tried again by the next run: {', '.join(missing)}")


@contextmanager
def open_study(
    study: str, settings: Mapping[str, Any], lasting: Mapping[str, Any] | None = None
) -> Iterator[OpenStudy]:
    """Open the run and the folder of a study; cells without a row are an `RLFlowError` at its end.

    The folder goes when the study has ended well, and stays after an error. lasting: what the things in it depend on,
    by default all settings but those that say how cells are run.
    """
    lasting = {name: settings[name] for name in settings.keys() - RUNNING} if lasting is None else lasting
    share = Share(settings.get("worker", 0), settings.get("workers", 1))
    folder = checkpoint_of(study.replace(" ", "_"), lasting)
    with study_run(study, settings) as run:
        opened = OpenStudy(study, settings, folder, run, share)
        yield opened
        opened.check_complete()
    if opened.publishes:
        shutil.rmtree(folder)


def options_of(program: str) -> OptionOf:
    """Return what finds options of the running program by group and name; `program` is its configuration's name."""
    return partial(option, program, HydraConfig.get().overrides.task)


def option(program: str, overrides: Sequence[str], group: str, name: str) -> dict[str, Any]:
    """Return one option of a group; what it takes from elsewhere comes from the program's own configuration.

    program: the configuration's name. overrides: those that the program was started with. `InputError` for an option
    that there is not.
    """
    known = sorted(file.stem for file in (CONF / group).glob("*.yaml"))
    if name not in known:
        raise InputError(f"there is no {group} {name!r}: choose one of {', '.join(known)}")
    composed: Any = OmegaConf.to_container(
        compose(program, [*overrides, f"+{group}@{group}={name}", GROUPS]), resolve=True
    )
    section: dict[str, Any] = composed[group]
    return section


def graph_files(sections: Mapping[str, Any], folder: Path, processes: int) -> dict[str, Path]:
    """Return the graphs' files, each made in a process of its own, since a large model would leave much memory behind.

    Those that lie in the folder already are not made again.
    """

    def write(graph: str) -> Path:
        place = folder / f"{graph}.onnx"
        return place if place.exists() else call_isolated(Limits(), model_file_of, sections[graph], place)

    with ThreadPoolExecutor(processes) as pool:
        return dict(zip(sections, pool.map(write, sections), strict=True))


def exported(folder: str | None) -> dict[str, dict[str, Any]]:
    """Return sections of conf/graph for the models of a folder, by the stem of the file; none without a folder.

    Raises `InputError` if the folder has no .onnx file.
    """
    if folder is None:
        return {}
    files = sorted(Path(folder).resolve().glob("*.onnx"))
    if not files:
        raise InputError(
            f"exports={folder} has no .onnx file: make some with `make renew NAME='exports.full_size {folder}'`"
        )
    return {file.stem: {"kind": "file", "path": str(file)} for file in files}


def checkpoint_of(study: str, settings: Mapping[str, Any]) -> Path:
    """Make the folder that outlives the process until the study has ended well.

    It is the same for the same settings and code; the code is that of the working folder, with its rules and conf/.
    """
    folder = main_root() / ".checkpoints" / study / fingerprint(settings, content=named_content(_CODE, Path()))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
