"""Patterns of strings, and the engine that runs each.

Python's `re` keeps the interpreter to itself, and takes quadratic or exponential time for some
patterns; msgspec uses it too. It runs a pattern only if the pattern is simple: then the next
character alone decides how to go on, so that a search is linear. RE2, which is always linear,
runs the others. Without RE2 they are refused at registration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

# Repetitions up to this total are tried one by one; the time for that is small.
_MAX_TRIES = 1_000
# A search that starts again at each character may read as many again.
_MANY_TIMES = 100


def find_pattern_problem(pattern: str) -> str | None:
    """Return why the pattern cannot be served, or None."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"the pattern {pattern!r} is malformed: {error}"
    if is_simple(pattern):
        return None
    problem = f"the pattern {pattern!r} may take very long for some strings"
    try:
        _load_re2().compile(pattern)
    except ModuleNotFoundError:
        return (
            f"{problem}; run pip install 'answerback[patterns]', or rewrite it without nested or "
            "overlapping repetition, beginning with ^"
        )
    except Exception as error:  # noqa: BLE001 - re2's error class is known only if it is installed
        return f"{problem}, and RE2 cannot run it ({_reason(error)}); rewrite it"
    return None


def _reason(error: Exception) -> str:
    """Return the text of RE2's error, which has bytes."""
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(error)


@cache
def searcher(pattern: str) -> Callable[[str], Any]:
    """Return a function that searches a string for the pattern in linear time."""
    if is_simple(pattern):
        return re.compile(pattern).search
    search: Callable[[str], Any] = _load_re2().compile(pattern).search
    return search


def _load_re2() -> Any:
    from importlib import import_module

    return import_module("re2")


@cache
def is_simple(pattern: str) -> bool:
    """Return whether Python's `re` searches every string for the pattern in linear time."""
    # The parser of `re` has no public name. A pattern that it cannot read is not simple.
    try:
        from re import _parser

        tree = _parser.parse(pattern)
        flags = tree.state.flags
        parts = list(tree)
        # With MULTILINE, ^ matches at each line.
        is_anchored = _is_anchored(parts) and not flags & re.MULTILINE
        if not is_anchored and _repeats_before_end(parts):
            return False
        return _Reader(ignore_case=bool(flags & re.IGNORECASE)).is_simple(parts)
    except (_NotSimple, ImportError, RecursionError, re.error):
        return False


class _NotSimple(Exception):
    """The pattern is not simple, or has a part that this module does not know."""


_Chars = frozenset[int]
_NONE: _Chars = frozenset()
# The characters up to 255 each by itself, and 256 for all others.
_EVERY: _Chars = frozenset(range(257))
_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


class _Reader:
    """Checks the parts of a pattern, as the parser of `re` returns them."""

    def __init__(self, *, ignore_case: bool) -> None:
        self._ignore_case = ignore_case
        self._tries = 1

    def is_simple(self, parts: Sequence[Any]) -> bool:
        self._check(parts, _NONE, inside=False)
        return self._tries <= _MAX_TRIES

    def _check(self, parts: Sequence[Any], follow: _Chars, *, inside: bool) -> None:
        """Check the parts; *follow* has the characters that may come after them.

        *inside* says that the parts are in a repetition.
        """
        for n, (op, argument) in enumerate(parts):
            after, can_be_empty = self._first(parts[n + 1 :])
            if can_be_empty:
                after |= follow
            name = str(op)
            if name in ("MAX_REPEAT", "MIN_REPEAT"):
                self._check_repeat(argument, after, inside=inside)
            elif name == "SUBPATTERN":
                self._check(list(argument[3]), after, inside=inside)
            elif name == "BRANCH":
                self._check_branch(argument[1], after, inside=inside)
            elif name not in ("LITERAL", "NOT_LITERAL", "IN", "ANY", "AT"):
                raise _NotSimple(name)

    def _check_repeat(self, argument: Any, after: _Chars, *, inside: bool) -> None:
        least, most, body = argument
        parts, unlimited = list(body), str(most) == "MAXREPEAT"
        first, can_be_empty = self._first(parts)
        if unlimited and can_be_empty:
            raise _NotSimple("a repetition of nothing")
        if least != most and first & after:
            # It is not clear where the repetition ends.
            if unlimited or inside:
                raise _NotSimple("overlapping repetition")
            self._tries *= most - least + 1
        # The tries of each round would multiply.
        self._check(parts, first | after, inside=inside or most > 1)

    def _check_branch(self, branches: Sequence[Any], after: _Chars, *, inside: bool) -> None:
        seen: _Chars = _NONE
        for branch in branches:
            parts = list(branch)
            first, can_be_empty = self._first(parts)
            first |= after if can_be_empty else _NONE
            if first & seen:
                if inside:
                    raise _NotSimple("overlapping branches in a repetition")
                self._tries *= 2
            seen |= first
            self._check(parts, after, inside=inside)

    def _first(self, parts: Sequence[Any]) -> tuple[_Chars, bool]:
        """Return the characters that the parts may begin with, and whether they can be empty."""
        found: _Chars = _NONE
        for op, argument in parts:
            first, can_be_empty = self._first_of(str(op), argument)
            found |= first
            if not can_be_empty:
                return found, False
        return found, True

    def _first_of(self, name: str, argument: Any) -> tuple[_Chars, bool]:
        if name == "AT":
            return _NONE, True
        if name == "SUBPATTERN":
            return self._first(list(argument[3]))
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            first, can_be_empty = self._first(list(argument[2]))
            return first, can_be_empty or argument[0] == 0
        if name == "BRANCH":
            each = [self._first(list(branch)) for branch in argument[1]]
            return frozenset().union(*(first for first, _ in each)), any(empty for _, empty in each)
        return self._chars(name, argument), False

    def _chars(self, name: str, argument: Any) -> _Chars:
        """Return the characters that a part of one character stands for, or more than those."""
        if name == "ANY":
            return _EVERY
        if name == "IN":
            negated = bool(argument) and str(argument[0][0]) == "NEGATE"
            chars = frozenset[int]().union(*(self._chars(str(op), arg) for op, arg in argument))
            return (_EVERY - chars) | {256} if negated else chars
        if name == "NEGATE":
            return _NONE
        if name == "NOT_LITERAL":
            return _EVERY if self._ignore_case else _EVERY - {argument}
        if name == "LITERAL":
            return self._both_cases({min(argument, 256)})
        if name == "RANGE":
            low, high = argument
            return self._both_cases({*range(low, min(high, 255) + 1), *([256] * (high > 255))})
        if name == "CATEGORY":
            return _category(str(argument))
        raise _NotSimple(name)

    def _both_cases(self, chars: set[int]) -> _Chars:
        if not self._ignore_case:
            return frozenset(chars)
        texts = {chr(each) for each in chars if each < 256}
        cases = {other for each in texts for other in (each.lower(), each.upper())}
        return frozenset({*chars, 256, *(ord(each) for each in cases if len(each) == 1)} & _EVERY)


@cache
def _category(name: str) -> _Chars:
    kind = name.removeprefix("CATEGORY_")
    plain = _CATEGORIES.get(kind.removeprefix("NOT_"))
    if plain is None:
        raise _NotSimple(name)
    chars = {n for n in range(256) if re.match(plain, chr(n))}
    return frozenset({*(set(range(256)) - chars if kind.startswith("NOT_") else chars), 256})


def _is_anchored(parts: Sequence[Any]) -> bool:
    """Return whether a match can begin only at the start of the string."""
    if not parts:
        return False
    op, argument = parts[0]
    if str(op) == "SUBPATTERN":
        return _is_anchored(list(argument[3]))
    if str(op) == "BRANCH":
        return all(_is_anchored(list(branch)) for branch in argument[1])
    return str(op) == "AT" and str(argument) in ("AT_BEGINNING", "AT_BEGINNING_STRING")


def _repeats_before_end(parts: Sequence[Any]) -> bool:
    """Return whether anything follows a long repetition, so that a search may start again."""
    return any(map(_has_long_repeat, parts[:-1])) or any(map(_has_inner_repeat, parts[-1:]))


def _has_inner_repeat(part: Any) -> bool:
    """Return whether the last part has a long repetition that is not all of it."""
    op, argument = part
    if str(op) in ("MAX_REPEAT", "MIN_REPEAT"):
        return any(map(_has_long_repeat, argument[2]))
    return _has_long_repeat(part)


def _has_long_repeat(part: Any) -> bool:
    op, argument = part
    name = str(op)
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        return argument[1] > _MANY_TIMES or any(map(_has_long_repeat, argument[2]))
    if name == "SUBPATTERN":
        return any(map(_has_long_repeat, argument[3]))
    if name == "BRANCH":
        return any(any(map(_has_long_repeat, branch)) for branch in argument[1])
    return False
