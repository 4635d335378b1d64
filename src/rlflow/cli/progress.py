"""A progress bar on standard error, so that standard output stays for results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rlflow.method import OnProgress


@contextmanager
def progress_bar(title: str) -> Iterator[OnProgress]:
    """Yield what moves the bar. Nothing is written where standard error is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda fraction, text: None
        return
    columns = (TextColumn("{task.fields[title]}"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=1.0, title=title)
        yield lambda fraction, text: progress.update(task, completed=fraction, description=text)
