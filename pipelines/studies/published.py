"""Publishing figures: with each results file goes a note of the code that made it, which tells when that has changed.

    publish(Path("data/results/headroom/metrics.json"), Headroom, document, __file__)
    made_by(Path("data/results"))["headroom/metrics.json"].is_current        # False: run it again before you quote it

Notes lie in data/results/code.yaml. What the six stages of the experiment write has none: dvc.lock holds the digest of
the code that they ran with.

The invariant: a file is current only if its bytes are those of its note, and its programs compute today what they did.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from experiment.formatting import markdown_table
from experiment.results import write_results
from filelock import FileLock
from tracking.code import digest_of
from tracking.provenance import commit_of

from rlflow.atomic_file import written_whole

ROOT = Path(__file__).parents[2]
RESULTS = Path("data/results")
NOTES = "code.yaml"
UNKNOWN = ""
"""The digest of code that nobody noted."""
PAGE = "docs/figures.md"
_HEAD = """# Published figures

Every file of `data/results`, the programs that made it, the commit that they were at, and whether their code has
changed since. A figure of changed code is not wrong, but nobody has measured it again: run its program before you
quote it. `python pipelines/check_results.py` says the same, and with `--page` writes this page, which a test compares.
Of files that are older than these notes, it is the commit that last changed them. The stages of the experiment have
none: dvc.lock holds the digest of their code.
"""


@dataclass(frozen=True)
class Note:
    """The code that made one results file: its programs with their digests, and a digest of the file's bytes.

    commit: empty if git knew none.
    """

    programs: dict[str, str]
    content: str
    commit: str


@dataclass(frozen=True)
class Maker:
    """The programs that made a results file, as far as they are known, and whether they compute the same today."""

    programs: tuple[str, ...]
    commit: str
    is_current: bool


def publish(path: Path, kind: Any, document: Any, *programs: str | Path) -> None:
    """Write a document of the type `kind` as `write_results` does, and note the programs that made it.

    programs: `__file__`, and scripts that it runs as processes of their own. Below no data/results the file is no
    published figure, and is only written.
    """
    write_results(path, kind, document)
    _write_note(path, _digests(programs))


def publish_part(path: Path, kind: Any, document: Any, *programs: str | Path) -> None:
    """Write a document of which the other parts are those that the file had: it counts as old as its oldest part.

    To have all of it by today's code, delete the file first.
    """
    publish_derived(path, kind, document, [path] if path.exists() else [], *programs)


def publish_derived(path: Path, kind: Any, document: Any, sources: Iterable[Path], *programs: str | Path) -> None:
    """Write a document that was made from other results files: it counts as old as the oldest of these."""
    digests = _digests(programs)
    for source in sources:
        digests |= _noted_programs(source) or dict.fromkeys(digests, UNKNOWN)
    write_results(path, kind, document)
    _write_note(path, digests)


def _noted_programs(path: Path) -> dict[str, str]:
    """The programs of a file's note with their digests; none of a file without a note."""
    folder = _folder(path)
    note = None if folder is None else read_notes(folder).get(_name(path, folder))
    return {} if note is None else note.programs


def _digests(programs: Iterable[str | Path]) -> dict[str, str]:
    scripts = [Path(program).resolve() for program in programs]
    return {script.relative_to(ROOT).as_posix(): digest_of(script, ROOT) for script in scripts}


def _folder(path: Path) -> Path | None:
    """The folder data/results that a file lies below, if it lies below one."""
    return next((parent for parent in path.absolute().parents if parent.parts[-2:] == RESULTS.parts), None)


def _name(path: Path, folder: Path) -> str:
    return path.absolute().relative_to(folder).as_posix()


def _write_note(path: Path, digests: dict[str, str]) -> None:
    if (folder := _folder(path)) is None:
        return
    note = Note(digests, _content(path), (commit_of(ROOT, "HEAD") or "")[:8])
    with FileLock(folder / f".{NOTES}.lock"):
        write_notes(folder, read_notes(folder) | {_name(path, folder): note})


def read_notes(folder: Path) -> dict[str, Note]:
    """Return the notes of a folder of results, by the paths of the files in it."""
    path = folder / NOTES
    found = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {name: Note(**note) for name, note in found.items()}


def write_notes(folder: Path, notes: Mapping[str, Note]) -> None:
    """Write the notes of a folder of results."""
    with written_whole(folder / NOTES) as draft:
        draft.write_text(yaml.safe_dump({name: asdict(note) for name, note in notes.items()}), encoding="utf-8")


def outdated(folder: Path) -> list[str]:
    """Return a sentence for each .json file of a folder of results that today's code did not make."""
    makers = {name: maker for name, maker in made_by(folder).items() if not maker.is_current}
    return [
        f"{folder / name}: the code that made it {'has changed since' if maker.programs else 'was not noted'}"
        for name, maker in makers.items()
    ]


def made_by(folder: Path) -> dict[str, Maker]:
    """Return what made each .json file of a folder of results, by its path there."""
    known = {name: _noted(folder / name, note) for name, note in read_notes(folder).items()} | dict(_staged(folder))
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.json"))
    return {name: known.get(name, Maker((), "", is_current=False)) for name in names}


def page(root: Path) -> str:
    """Return docs/figures.md for a checkout."""
    rows = [
        [f"`{name}`", ", ".join(f"`{program}`" for program in maker.programs) or "unknown", maker.commit, _state(maker)]
        for name, maker in made_by(root / RESULTS).items()
    ]
    return f"{_HEAD}\n{markdown_table(['file', 'made by', 'at commit', 'code since'], rows, texts=4)}\n"


def _state(maker: Maker) -> str:
    return "unchanged" if maker.is_current else "changed" if maker.programs else "not known"


def _noted(path: Path, note: Note) -> Maker:
    same_file = path.is_file() and _content(path) == note.content
    return Maker(
        (*note.programs,), note.commit, same_file and all(map(_computes, note.programs, note.programs.values()))
    )


def _staged(folder: Path) -> Iterator[tuple[str, Maker]]:
    """The makers of the files that the experiment's stages wrote, by the dvc.lock beside data/."""
    root = folder.absolute().parents[1]
    lock = root / "dvc.lock"
    stages = yaml.safe_load(lock.read_text(encoding="utf-8"))["stages"] if lock.is_file() else {}
    for stage in stages.values():
        for name, digest in stage.get("params", {}).get("data/code.yaml", {}).items():
            script = f"pipelines/{name}.py"
            maker = Maker((script,), "", is_current=_computes(script, digest))
            yield from ((path.relative_to(folder).as_posix(), maker) for path in folder.glob(f"{name}/*.json"))


def _computes(script: str, digest: str) -> bool:
    """Return True if a script computes today what it did when this was its digest."""
    return (ROOT / script).is_file() and digest_of(ROOT / script, ROOT) == digest


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
