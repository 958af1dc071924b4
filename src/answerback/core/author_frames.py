"""Shortens tracebacks to the author's own lines."""

from __future__ import annotations

import importlib
import os
from types import TracebackType

_PACKAGE_FOLDER = os.path.dirname(os.path.dirname(__file__))
_REGISTERING = frozenset(
    {"__init__", "tool", "add_tool", "resource", "prompt", "completion", "register", "include"}
    | {"widget", "route"}
)
"""The methods of App that refuse what the author wrote."""


def author_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback without our and importlib's frames before and after the author's own."""
    while trace is not None and _is_internal(trace):
        trace = trace.tb_next
    frame = trace
    while frame is not None and frame.tb_next is not None:
        if _is_internal(frame.tb_next):
            frame.tb_next = None
        frame = frame.tb_next
    return trace


def _is_internal(trace: TracebackType) -> bool:
    file = trace.tb_frame.f_code.co_filename
    return file.startswith((_PACKAGE_FOLDER, "<frozen importlib")) or file == importlib.__file__


def shorten_refusal(exc: BaseException) -> None:
    """If *exc* refuses a registration, leave only the author's frames in its traceback."""
    frames = _frames(exc.__traceback__)
    ours = [frame for frame in frames if _is_internal(frame)]
    # If the last frame is not ours, a class of the author's or another library raised it.
    if not ours or frames[-1] is not ours[-1] or not isinstance(exc, TypeError | ValueError):
        return
    if ours[0].tb_frame.f_code.co_name in _REGISTERING:
        exc.__traceback__ = author_frames(exc.__traceback__)


def _frames(trace: TracebackType | None) -> list[TracebackType]:
    found = []
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found
