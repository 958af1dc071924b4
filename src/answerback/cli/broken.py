"""Shows a person where a text that should be JSON is none."""

from __future__ import annotations

import json

_AROUND = 30


def where(text: bytes) -> str | None:
    """What is wrong, with the place below it; None where Python's own reader is content."""
    try:
        json.loads(text)
    except json.JSONDecodeError as exc:
        what = exc.msg[:1].lower() + exc.msg[1:]
        line = exc.doc.splitlines()[exc.lineno - 1 : exc.lineno] or [""]
        return f"{what} at line {exc.lineno}, column {exc.colno}\n{_marked(line[0], exc.colno - 1)}"
    except (ValueError, RecursionError):
        # Not UTF-8, or too deep.
        return None
    return None


def _marked(line: str, column: int) -> str:
    """The line, or what is around the column, with a mark under it."""
    start = max(column - _AROUND, 0)
    end = column + _AROUND
    head, tail = "…" if start else "", "…" if end < len(line) else ""
    # A tab is as wide as any other blank, so that the mark is in its place.
    shown = line[start:end].replace("\t", " ")
    return f"{head}{shown}{tail}\n{' ' * (len(head) + column - start)}^"
