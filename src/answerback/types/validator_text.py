"""Decides which texts of an author's validators and `__post_init__` methods a caller reads.

A text is for the caller if the validator's own package raised it by `raise` or `assert`. The
texts of other exceptions, such as that of `int("x")` in a validator, are for the log. No text
is for the caller if it quotes a value that was sent under the name of a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from types import TracebackType
from typing import Any

from .secret_names import is_secret_name

# The packages that call validators; a validator's first frame comes after theirs.
_CALLERS = frozenset({"pydantic", "pydantic_core", "msgspec", "answerback"})
_MAX_LENGTH = 500
_MAX_VALUES = 2_000
_SEPARATORS = re.compile(r"[.\[\]'\"]+")


def is_meant_for_caller(error: BaseException) -> bool:
    """Return whether a validator raised the error itself, by `raise` or `assert`."""
    from dis import opmap

    frames = [
        each
        for each in _frames(error.__traceback__)
        if _package(each) not in _CALLERS or each.tb_next is None
    ]
    if not frames:
        return False
    first, last = frames[0], frames[-1]
    raised = last.tb_frame.f_code.co_code[last.tb_lasti] == opmap["RAISE_VARARGS"]
    return raised and _package(first) == _package(last)


def refusal(
    error: BaseException, sent: Any, path: str = "", aliases: frozenset[str] = frozenset()
) -> str:
    """Return the text of a refusal: the author's own, or one with the class of the error alone.

    *sent* is the value at *path* that was refused, and *aliases* are further names of secrets. A
    text that is not for the caller is logged.
    """
    text = str(error)
    is_kind = isinstance(error, ValueError | TypeError | AssertionError)
    if is_kind and is_meant_for_caller(error) and not quotes_secret(text, sent, path, aliases):
        return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"
    import logging

    message = "a validator or __post_init__ raised an exception; callers do not see its text"
    logging.getLogger("answerback").warning(message, exc_info=error)
    return f"refused by its class ({type(error).__name__})"


def quotes_secret(
    text: str, sent: Any, path: str = "", aliases: frozenset[str] = frozenset()
) -> bool:
    """Return whether the text may have a value in it that was sent under the name of a secret.

    True also if *sent* has too many values to look at each.
    """
    secrets = _secrets(sent, is_secret_path(path, aliases), aliases)
    return any(secret is None or secret in text for secret in secrets)


def is_secret_path(path: str, aliases: frozenset[str] = frozenset()) -> bool:
    """Return whether one of the names on the path is the name of a secret, or in *aliases*."""
    return any(name in aliases or is_secret_name(name) for name in _SEPARATORS.split(path))


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _package(traceback: TracebackType) -> str:
    name = traceback.tb_frame.f_globals.get("__name__")
    return str(name).partition(".")[0]


def _secrets(sent: Any, is_secret: bool, aliases: frozenset[str]) -> Iterator[str | None]:
    """Yield the texts of values that stand under the name of a secret; None for too many values."""
    # A stack instead of recursion, because the value may be nested deep.
    waiting: list[tuple[Any, bool]] = [(sent, is_secret)]
    for _ in range(_MAX_VALUES):
        if not waiting:
            return
        value, is_secret = waiting.pop()
        if isinstance(value, dict):
            items = islice(value.items(), _MAX_VALUES)
            waiting += [
                (each, is_secret or key in aliases or is_secret_name(key)) for key, each in items
            ]
        elif isinstance(value, list):
            waiting += [(each, is_secret) for each in value[:_MAX_VALUES]]
        elif is_secret and value not in (None, ""):
            yield str(value)
    yield None
