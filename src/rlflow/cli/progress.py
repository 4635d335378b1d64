"""A progress bar on standard error, so that standard output stays for results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rlflow.method import OnProgress


@contextmanager
def progress_bar(title: str) -> Iterator[OnProgress]:
    columns = (TextColumn("{task.fields[title]}"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=1.0, title=title)
        yield lambda fraction, text: progress.update(task, completed=fraction, description=text)
