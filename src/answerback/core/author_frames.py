"""Shortens tracebacks to the author's own lines."""

from __future__ import annotations

import importlib
import os
from types import TracebackType

_PACKAGE_FOLDER = os.path.dirname(os.path.dirname(__file__))


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


class OwnFramesLeftOut:
    """Leaves the library's frames out of the traceback if the library refuses what it was given.

    An exception of an author's class, or of another library, keeps all frames.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, exc: BaseException | None, trace: TracebackType | None) -> None:
        if trace is None or not isinstance(exc, TypeError | ValueError):
            return
        while trace.tb_next is not None:
            trace = trace.tb_next
        if _is_internal(trace):
            # The callers' frames are added later, when the exception reaches them.
            exc.__traceback__ = None
