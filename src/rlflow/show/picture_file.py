"""Writing pictures to files."""

from __future__ import annotations

from pathlib import Path

from rlflow.errors import InputError
from rlflow.extras import needs

with needs("plots", "a picture"):
    from matplotlib.figure import Figure

_DOTS_PER_INCH = 150
_FORMATS = (".png", ".svg", ".pdf")


def save(figure: Figure, path: Path) -> None:
    """Write `figure` in the format that the suffix of `path` names: png, svg or pdf. Missing folders are made.

    `InputError` for another suffix.
    """
    if path.suffix not in _FORMATS:
        raise InputError(f"{path} does not name a picture format: let it end in one of {', '.join(_FORMATS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=_DOTS_PER_INCH)
