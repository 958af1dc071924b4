"""Interpreter settings for a serving process: garbage collection, threads.

They affect the whole process, so only the commands `serve`, `mcp` and `call` make them, and
an author or the environment can prevent it. `python -m bench settings` shows the gain: typed
records of 10 MB take 0.53 to 0.59 times the CPU time, calls over 1,000 connections 0.82 to 0.93
times, and a quick call beside two busy threads waits 0.07 to 0.12 times as long; calls over 32
connections take 1.11 to 1.13 times the CPU time. All settings were measured together.
"""

from __future__ import annotations

import gc
import os
import sys

_OFF = "ANSWERBACK_TUNE"
_GC_THRESHOLD = 20_000
_DEFAULT_SWITCH_INTERVAL = 0.005
_SWITCH_INTERVAL = 0.0005


def collect_garbage_less_often() -> None:
    """Exempt all existing objects from collection, and collect others less often."""
    if os.environ.get(_OFF) == "0":
        return
    gc.freeze()
    first, *others = gc.get_threshold()
    # An author may have turned collection off (0), or set a higher threshold.
    if 0 < first < _GC_THRESHOLD:
        gc.set_threshold(_GC_THRESHOLD, *others)


def switch_threads_sooner() -> None:
    """Let quick calls interrupt the threads of long ones sooner than by default."""
    if os.environ.get(_OFF) != "0" and sys.getswitchinterval() == _DEFAULT_SWITCH_INTERVAL:
        sys.setswitchinterval(_SWITCH_INTERVAL)
