"""The files that a run has read, as MLflow's data sets: a name, a digest of the content, the place."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mlflow.entities import Dataset, DatasetInput, InputTag

_DIGEST_LENGTH = 32  # MLflow takes 36 characters


def data_sets(files: Mapping[str, Path]) -> list[DatasetInput]:
    """Describe files and folders by name, of which the last part is shown: `rollouts` of `data/rollouts`."""
    return [_data_set(name, path) for name, path in files.items()]


def _data_set(name: str, path: Path) -> DatasetInput:
    size = sum(file.stat().st_size for file in files_below(path))
    dataset = Dataset(
        name=name,
        digest=content_digest(path)[:_DIGEST_LENGTH],
        source_type="local",
        source=json.dumps({"uri": str(path)}),
        profile=json.dumps({"bytes": size}),
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", Path(name).stem)])


def content_digest(path: Path) -> str:
    """A digest of a file, or of the names and contents of all files of a folder."""
    digest = hashlib.sha256()
    for file in files_below(path):
        digest.update(str(file.relative_to(path)).encode())
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def named_content(paths: Iterable[str | Path], root: Path) -> Iterator[bytes]:
    """Yield the names below `root` and the content of all files of these paths, which are relative to it."""
    for path in paths:
        for file in files_below(root / path):
            yield str(file.relative_to(root)).encode()
            yield file.read_bytes()


def files_below(path: Path) -> Iterator[Path]:
    """Yield the file itself, or all files of a folder in order, without compiled Python."""
    if path.is_file():
        yield path
        return
    yield from (file for file in sorted(path.rglob("*")) if file.is_file() and file.suffix != ".pyc")
