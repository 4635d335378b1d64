"""What lies in a folder, so that two of them can be compared to the byte."""

from pathlib import Path


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of each file in a folder, by its name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}
