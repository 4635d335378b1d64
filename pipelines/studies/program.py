"""Studies: Hydra programs beside the pipeline, each of which goes through many graphs, costs or searches.

    @study_program("headroom")                                    settings: conf/study/headroom.yaml, groups: conf/
    def main(config: DictConfig) -> None: ...

    with checkpoint("headroom", settings) as folder, study_run("headroom", settings) as run:
        graph = options_of("headroom")("graph", "bert")           a section of conf/, by its name
        graph_files({"bert": graph}, folder, processes=2)         the models of sections

    run_cells("reward_study", settings, cells_of, run_cell, on_row, publish)         all that a study of cells does

The invariant: what a study keeps in its folder is there until the study has ended well, and no longer.
"""

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from tracking.store import main_root, open_store

from rlflow.cli.progress import progress_bar
from rlflow.kept import fingerprint
from rlflow.runtime.isolation import Limits, call_isolated
from studies.runner import Row, check_complete, gathered, kept_rows

T = TypeVar("T")
K = TypeVar("K", bound=tuple[object, ...])

OptionOf = Callable[[str, str], dict[str, Any]]
"""Of a group and a name: that option's section."""

CONF = Path(__file__).parents[2] / "conf"
GROUPS = f"hydra.searchpath=['file://{CONF}']"
"""Where a study's settings find the options of groups, which the experiment's own settings lie beside."""

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


def run_cells(
    study: str,
    settings: Mapping[str, Any],
    cells_of: Callable[[Path], Mapping[K, T]],
    run_cell: Callable[[T], Row],
    on_row: Callable[[Run, K, Row], str],
    publish: Callable[[Mapping[K, Row]], Path],
) -> None:
    """Run the cells of a study one after another, publish the rows, and go on where a killed run was.

    cells_of: given the folder of the checkpoint. on_row: logs a row, and says in a few words what it shows. publish:
    writes the documents, and returns what the run keeps. A cell without a row is named by an `RLFlowError` at the end.
    """
    with (
        checkpoint(study, settings) as folder,
        study_run(study, settings) as run,
        progress_bar(study.replace("_", " ")) as on_progress,
    ):
        cells = cells_of(folder)
        kept = kept_rows(cells, run_cell, lambda _: settings["longest_s"], 1, folder)
        rows = gathered(cells, kept, partial(on_row, run), on_progress)
        if rows:
            run.artifact(publish(rows))
        check_complete(cells, rows)


@contextmanager
def checkpoint(study: str, settings: Mapping[str, Any]) -> Iterator[Path]:
    """Lend the folder of `checkpoint_of`; it goes when the study has ended well, and stays after an error."""
    folder = checkpoint_of(study, settings)
    yield folder
    shutil.rmtree(folder)


def options_of(program: str) -> OptionOf:
    """Return what finds options of the running program by group and name; `program` is its configuration's name."""
    return partial(option, program, HydraConfig.get().overrides.task)


def option(program: str, overrides: Sequence[str], group: str, name: str) -> dict[str, Any]:
    """Return one option of a group; what it takes from elsewhere comes from the program's own configuration.

    program: the configuration's name. overrides: those that the program was started with.
    """
    composed: Any = OmegaConf.to_container(compose(program, [*overrides, f"+{group}={name}", GROUPS]), resolve=True)
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


def checkpoint_of(study: str, settings: Mapping[str, Any]) -> Path:
    """Make the folder that outlives the process until the study has ended well.

    It is the same for the same settings and code; the code is that of the working folder, with its rules and conf/.
    """
    folder = main_root() / ".checkpoints" / study / fingerprint(settings, content=named_content(_CODE, Path()))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
