"""Studies: Hydra programs beside the pipeline, each of which goes through many graphs, costs or searches.

    @study_program("headroom")                                    settings: conf/study/headroom.yaml, groups: conf/
    def main(config: DictConfig) -> None: ...

    with checkpoint("headroom", settings) as folder, study_run("headroom", settings) as run:
        graph = options_of("headroom")("graph", "bert")           a section of conf/, by its name
        graph_files({"bert": graph}, folder, processes=2)         the models of sections

The invariant: what a study keeps in its folder is there until the study has ended well, and no longer.
"""

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any

import hydra
from hydra import compose
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from tracking.data_set import named_content
from tracking.factories import model_file_of
from tracking.provenance import source_tags
from tracking.run import Run, open_run
from tracking.store import main_root, open_store

from rlflow.kept import fingerprint
from rlflow.runtime.isolation import Limits, call_isolated

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
