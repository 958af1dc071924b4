"""String patterns, and the engine that runs each.

Python's `re`, which msgspec also uses, does not release the GIL, and takes quadratic or
exponential time for some patterns. It is used only for simple patterns: no repeated group, and
at most one long repetition. RE2, which is always linear, runs the others; without RE2, they are
refused at registration.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from math import inf
from typing import Any


def find_pattern_problem(pattern: str) -> str | None:
    """Return why the pattern cannot be served, or None."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"the pattern {pattern!r} is malformed: {error}"
    if is_simple(pattern):
        return None
    problem = f"the pattern {pattern!r} may take a very long time on some strings"
    try:
        _load_re2().compile(pattern)
    except ModuleNotFoundError:
        return (
            f"{problem}; run pip install 'answerback[patterns]', or rewrite it to begin with ^ and "
            "to have at most one * or + and no repeated group"
        )
    except Exception as error:  # noqa: BLE001 -- re2's error class is known only if it is installed
        reason = error.args[0] if error.args else ""
        # RE2's error text is bytes.
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(error)
        return f"{problem}, and RE2 cannot run it ({text}); rewrite it"
    return None


@cache
def searcher(pattern: str) -> Callable[[str], Any]:
    """Return a function that searches a string for the pattern in linear time."""
    if is_simple(pattern):
        return re.compile(pattern).search
    search: Callable[[str], Any] = _load_re2().compile(pattern).search
    return search


def _load_re2() -> Any:
    return import_module("re2")


@cache
def is_simple(pattern: str) -> bool:
    """Return whether the pattern's text shows that `re` searches every string quickly.

    Without a leading ^, a search restarts at each character, so a long repetition must come last.
    """
    is_anchored, depth, long, tries = pattern.startswith(("^", r"\A")), 0, 0, 1.0
    before = ""
    for found in _TOKEN.finditer(pattern):
        token = found[0]
        if repeat := _REPEAT.fullmatch(token):
            least, most = _bounds(repeat)
            # A `?` after an opening parenthesis starts a flag or look-around.
            if before.startswith("(") or (before == ")" and most > 1):
                return False
            if most > _MANY_TIMES:
                long += 1
                # At the end of the pattern, the search succeeds here and does not restart.
                is_anchored = is_anchored or found.end() == len(pattern)
            else:
                tries *= most - least + 1
        elif token == "|":
            tries *= 2
            is_anchored = is_anchored and depth > 0
        elif _BACK_REFERENCE.fullmatch(token):
            return False
        depth += token.startswith("(") - (token == ")")
        before = token
    if not long and is_anchored:
        return tries <= _MAX_TRIES
    return (is_anchored or not long) and long <= 1 and tries <= _MAX_TRIES_PER_CHARACTER


# An escape, a character class, the start of a group, a repetition, or one character.
_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?:|\?P<\w+>)?"
    r"|(?:[*+?]|\{\d+\}|\{\d*,\d*\})[?+]?|.",
    re.DOTALL,
)
_REPEAT = re.compile(r"(?:([*+?])|\{(\d*)(,?)(\d*)\})[?+]?")
_BACK_REFERENCE = re.compile(r"\\[1-9]")
# A repetition with a higher count than this is considered long.
_MANY_TIMES = 1_000
_MAX_TRIES = 100_000
_MAX_TRIES_PER_CHARACTER = 100


def _bounds(repeat: re.Match[str]) -> tuple[int, float]:
    sign, least, comma, most = repeat.groups()
    if sign:
        return int(sign == "+"), 1 if sign == "?" else inf
    if not comma:
        return int(least), int(least)
    return int(least or 0), int(most) if most else inf
