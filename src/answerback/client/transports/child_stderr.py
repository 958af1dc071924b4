"""A child process's stderr, line by line, for `connect(stderr=…)`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from ...core.log import logger

_LOGGER = logger("answerback.client")
_MAX_LINE = 64 * 1024
"""Bytes after which a line without an end is cut."""


@runtime_checkable
class TextStream(Protocol):
    """A stream of text, such as `sys.stderr`."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...
    def isatty(self) -> bool: ...


StderrOption: TypeAlias = "str | os.PathLike[str] | TextStream | Callable[[str], object]"


def check_stderr(given: object) -> None:
    """Raise TypeError for a value that `stderr=` does not take."""
    if not isinstance(given, str | os.PathLike | TextStream) and not callable(given):
        text = "should be a file's name, a stream such as sys.stderr, or a function"
        raise TypeError(f"stderr={given!r} {text}")


def line_writer(given: StderrOption, server: str) -> Callable[[str], object]:
    """Return a function that takes a line; with a server's name it begins with that."""
    prefix = f"{server}: " if server else ""

    def write(line: str) -> None:
        text = prefix + line
        if isinstance(given, TextStream):
            given.write(f"{_printable(text) if given.isatty() else text}\n")
            given.flush()
        elif callable(given):
            given(text)
        else:
            # It may have secrets, which only this program's user may see.
            file = os.open(given, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with open(file, "a", encoding="utf-8") as opened:
                opened.write(f"{text}\n")

    return write


def _printable(text: str) -> str:
    """Escape the control characters, which a terminal would obey."""
    return "".join(
        each if each.isprintable() or each == "\t" else each.encode("unicode_escape").decode()
        for each in text
    )


class StderrLines:
    """Cuts the bytes of one child's stderr into lines."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write: Callable[[str], object] | None = write
        self._rest = b""

    def take(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > _MAX_LINE:
            lines.append(rest)
            rest = b""
        self._rest = rest
        for line in lines:
            self._give(line)

    def end(self) -> None:
        """Give the last line, if it has no end."""
        rest, self._rest = self._rest, b""
        if rest:
            self._give(rest)

    def _give(self, line: bytes) -> None:
        if self._write is None:
            return
        try:
            self._write(line.decode(errors="replace").rstrip("\r"))
        except Exception:
            self._write = None
            _LOGGER.exception("stderr= failed; it gets no more lines of this server")
