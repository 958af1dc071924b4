"""What a person reads when a command cannot be carried out."""

from __future__ import annotations

from ..errors import AnswerbackError
from .program import tell
from .target import CannotLoad


def explain(exc: AnswerbackError) -> int:
    """Say it in one line, under the traceback of what is the author's own; give exit status 2."""
    cause = exc.__cause__ if isinstance(exc, CannotLoad) else None
    if cause is not None:
        import traceback

        tell("".join(traceback.format_exception(cause)).rstrip())
    tell(f"error: {exc}")
    return 2
