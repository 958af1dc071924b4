"""The `lint` report for the terminal, and its progress bar. Only this module needs rich."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import needs_extra
from .finding import Severity
from .lint.linter import FileFinding, LintCounts, Report
from .lint.rewriting import excerpt, locate
from .reports import summary

with needs_extra("lint"):
    from rich.console import Console
    from rich.text import Text

_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_MAX_SHOWN = 1024 * 1024
_MARGIN = 8
_BAR_STEP = 256 * 1024
"""The number of bytes between progress updates; an update takes longer than checking a reply."""


class TerminalReport(Report):
    def __init__(self, console: Console) -> None:
        self._console = console

    def add(self, found: FileFinding) -> None:
        finding = found.finding
        style = _STYLES[finding.severity]
        head = Text.assemble(
            (_printable(f"{found.file}:{found.line}"), "bold"),
            " ",
            (f"{finding.severity} {finding.rule}", style),
            f" {finding.name}",
        )
        self._print(head)
        self._print(Text(f"  {_printable(finding.message)}"))
        if len(found.body) < _MAX_SHOWN:
            # Print the line that the finding is about, with a marker under the value.
            width = max(20, self._console.width - _MARGIN)
            span = locate(found.body, found.body_pointer)
            lines_before, text, column, length = excerpt(found.body, span, width)
            number = str(found.body_line + lines_before)
            self._print(Text.assemble((f"{number:>5} │ ", "dim"), _printable(text)))
            self._print(Text.assemble(("      │ ", "dim"), " " * column, ("^" * length, style)))
        if finding.hint:
            self._print(Text.assemble(("  → ", "green"), finding.hint))
        self._print(Text())

    def done(self, counts: LintCounts) -> None:
        if not counts.replies and not counts.other_messages:
            return
        style = "bold red" if counts.errors else "yellow" if counts.by_severity else "green"
        self._print(Text(summary(counts), style=style))

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def _printable(text: str) -> str:
    """Replace control characters, so that a recorded reply cannot move the cursor."""
    return "".join(char if char.isprintable() else "·" for char in text)


@contextmanager
def progress_bar(console: Console, name: str, size: int | None) -> Iterator[Callable[[int], None]]:
    """Show how much of a long input has been read; yields a function that takes a byte count."""
    # Imported here because only long inputs need the bar.
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(_printable(name), total=size)
        unshown = 0

        def advance(number: int) -> None:
            nonlocal unshown
            unshown += number
            if unshown >= _BAR_STEP:
                progress.advance(task, unshown)
                unshown = 0

        yield advance
