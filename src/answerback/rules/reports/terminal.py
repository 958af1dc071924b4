"""Findings for a person at a terminal: each with the line it is about, and what to do."""

from __future__ import annotations

from ...errors import needs_extra
from ..finding import Severity
from ..lint.json_locate import excerpt, locate
from ..lint.linter import Hit, Tally
from .plain import summary

with needs_extra("lint"):
    from rich.console import Console
    from rich.text import Text

_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_SHOWN = 1024 * 1024
_MARGIN = 8


class Terminal:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._any = False

    def hit(self, hit: Hit) -> None:
        told = hit.finding
        style = _STYLES[told.severity]
        head = Text.assemble(
            (f"{hit.file}:{hit.line}", "bold"),
            " ",
            (f"{told.severity} {told.rule}", style),
            f" {told.name}",
        )
        self._say(head)
        self._say(Text(f"  {told.message}"))
        if len(hit.body) < _SHOWN:
            self._show(hit, style)
        if told.hint:
            self._say(Text.assemble(("  → ", "green"), told.hint))
        self._say(Text())
        self._any = True

    def file_done(self, name: str, replies: int) -> None:
        pass

    def done(self, tally: Tally) -> None:
        if not tally.replies and not tally.others:
            return
        style = "bold red" if tally.errors else "yellow" if tally.findings else "green"
        self._say(Text(summary(tally), style=style))

    def _show(self, hit: Hit, style: str) -> None:
        """The line that the finding is about, with a mark under the place."""
        width = max(20, self._console.width - _MARGIN)
        span = locate(hit.body, hit.within)
        before, text, column, length = excerpt(hit.body, span, width)
        number = str(hit.first + before)
        self._say(Text.assemble((f"{number:>5} │ ", "dim"), _printable(text)))
        self._say(Text.assemble(("      │ ", "dim"), " " * column, ("^" * length, style)))

    def _say(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def _printable(text: str) -> str:
    """What a stranger recorded must not move the cursor."""
    return "".join(char if char.isprintable() else "·" for char in text)
