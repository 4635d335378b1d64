"""The overrides that a program is started with, of which a stage refuses those that it would ignore or cannot take.

    train_controller.py --multirun reward=incremental,runtime
    # train_controller ignores reward=incremental,runtime: reward is read by collect_rollouts; leave it out
    train_controller.py --multirun temperature=0.5,hot
    # temperature: Expected `float`, got `str`, and it is 'hot'

A stage reads the sections that dvc.yaml declares, the sections that these refer to (`${temperature}`), and where every
stage's work lies: the names of graphs, the workers. An option may fill several sections, such as one of
world_model, which says of each what it brings; its group is read if one of them is.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from rlflow.errors import InputError
from tracking.composition import completed, graph_names
from tracking.declaration import StageDeclaration, read_declarations
from tracking.sweep import asked_for

_OF_EVERY_STAGE = ("seed", "worker", "workers", "processes", "model", "aside", "hydra")
_NAMING = ("kind", "path", "sha256")
"""The settings of a graph that tell which one it is."""
_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
_PACKAGE = re.compile(r"# *@package +(\S+)")


class RefuseOverrides(Callback):
    """A Hydra callback that ends a stage's program before its first job, if an override is ignored or of a wrong type.

    Hydra turns the errors of callbacks into warnings, so that the program is left.
    """

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Refuse overrides of a single run."""
        self.on_multirun_start(config)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Refuse overrides of all jobs, and settings that a search over them would draw."""
        overrides = asked_for(config)
        folders = [Path(source.path) for source in config.hydra.runtime.config_sources if source.schema == "file"]
        try:
            refuse_ignored(config.hydra.job.name, overrides, config, folders, Path.cwd())
            if _is_of_the_experiment(config.hydra.job):
                for job in _jobs(config, overrides):
                    completed(job)
        except InputError as error:
            sys.exit(str(error))


def _is_of_the_experiment(job: DictConfig) -> bool:
    """Return True for a stage, and for a program that works by the experiment's settings."""
    return job.name in read_declarations(Path.cwd()) or job.get("config_name") == "config"


def refuse_ignored(
    script: str, overrides: Iterable[str], config: DictConfig, folders: Iterable[Path], root: Path
) -> None:
    """Raise `InputError` for the first override that the stage of this script in `root`/dvc.yaml would ignore.

    config: what the overrides were composed to, unresolved. folders: where groups of options lie.
    A script that is no stage may be started with anything.
    """
    read = {name: _read(stage, config) for name, stage in read_declarations(root).items()}
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    for override in parsed if script in read else ():
        filled = set(_filled(override, list(folders)))
        if not _overlap(filled, read[script]):
            readers = [stage for stage, sections in read.items() if _overlap(filled, sections)]
            told = f"is read by {' and '.join(readers) or 'no stage'}"
            raise InputError(f"{script} ignores {override.input_line}: {override.key_or_group} {told}; leave it out")


def _jobs(config: DictConfig, overrides: Iterable[str]) -> Iterator[DictConfig]:
    """Yield the configuration with the first of the values of each setting that is swept over, and with each other."""
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    sweeps = [
        [f"{override.key_or_group}={value}" for value in override.sweep_string_iterator()]
        for override in parsed
        if override.is_discrete_sweep() and _is_setting(OmegaConf.select(config, override.key_or_group))
    ]
    first = _with(config, *(values[0] for values in sweeps))
    yield first
    yield from (_with(first, value) for values in sweeps for value in values[1:])


def _is_setting(found: Any) -> bool:
    """Return False for a group of settings, of which another option is another section."""
    return found is not None and not isinstance(found, DictConfig)


def _with(config: DictConfig, *settings: str) -> DictConfig:
    changed = OmegaConf.merge(config, OmegaConf.from_dotlist(list(settings)))
    assert isinstance(changed, DictConfig)
    return changed


def _read(stage: StageDeclaration, config: DictConfig) -> set[str]:
    """The places in the configuration that a stage reads, and those that these refer to."""
    settings = OmegaConf.to_container(config, resolve=False)
    found: set[str] = set()
    graphs = {f"graphs.{name}.{key}" for name in graph_names(config) for key in _NAMING}
    waiting = {*stage.sections, *_OF_EVERY_STAGE, *graphs}
    while waiting:
        found |= waiting
        waiting = {name for place in waiting for name in _REFERENCE.findall(str(_at(place, settings)))} - found
    return found


def _at(place: str, settings: Any) -> Any:
    """Return the part of the settings at a place, with its references; None if there is no such place."""
    for key in place.split("."):
        settings = settings.get(key) if isinstance(settings, dict) else None
    return settings


def _filled(override: Override, folders: list[Path]) -> Iterator[str]:
    """The places that an override fills; of a group's option, those that any option of the group does."""
    if override.package not in (None, "_global_"):
        yield override.package
    else:
        yield from _filled_by(override.key_or_group, folders)


def _filled_by(group: str, folders: list[Path]) -> Iterator[str]:
    """The places that the options of a group fill, and that of a setting which is no group."""
    yield group.replace("/", ".")
    for option in (file for folder in folders for file in (folder / group).rglob("*.yaml")):
        text = option.read_text(encoding="utf-8")
        package = _PACKAGE.match(text)
        if package and package[1] != "_global_":
            yield package[1]
        elif package:
            content: Any = OmegaConf.to_container(OmegaConf.create(text), resolve=False)
            yield from content.keys() - {"defaults"}
            yield from _overridden(content.get("defaults", []), folders)


def _overridden(defaults: Iterable[Any], folders: list[Path]) -> Iterator[str]:
    """The places of the groups of which a defaults list takes another option."""
    for entry in defaults:
        for key in entry if isinstance(entry, dict) else ():
            group, _, package = key.removeprefix("override ").strip().partition("@")
            yield from [package] if package else _filled_by(group.strip("/"), folders)


def _overlap(some: Iterable[str], others: Iterable[str]) -> bool:
    """Return True if a place of one kind is one of the other, or lies in it."""
    return any(
        f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.") for one in some for other in others
    )
