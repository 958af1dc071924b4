"""A bar that shows how far a long input has been read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...errors import needs_extra

with needs_extra("lint"):
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

_STEP = 256 * 1024
"""How many bytes are read between two looks at the bar, which costs more than a reply."""


@contextmanager
def bar(console: Console, name: str, size: int | None) -> Iterator[Callable[[int], None]]:
    """Shows itself for as long as it lasts; gives what is to be told of the bytes read."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(name, total=size)
        waiting = 0

        def read(number: int) -> None:
            nonlocal waiting
            waiting += number
            if waiting >= _STEP:
                progress.advance(task, waiting)
                waiting = 0

        yield read
