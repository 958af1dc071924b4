"""Decides which texts of an author's validators and `__post_init__` methods a caller reads.

The text of a ValueError or AssertionError is for the caller, unless it quotes a value that was sent
under the name of a secret. The texts of other exceptions are for the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from .secret_names import is_secret_name

_MAX_LENGTH = 500
_MAX_VALUES = 2_000
_SEPARATORS = re.compile(r"[.\[\]'\"]+")


def refusal(
    error: BaseException, sent: Any, path: str = "", aliases: frozenset[str] = frozenset()
) -> str:
    """Return the text of a refusal: the author's own, or one with the class of the error alone.

    *sent* is the value at *path* that was refused, and *aliases* are further names of secrets. A
    text that is not for the caller is logged.
    """
    text = str(error)
    is_for_caller = isinstance(error, ValueError | AssertionError)
    if is_for_caller and not quotes_secret(text, sent, path, aliases):
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
    # Many texts of Python quote a value by its `repr`.
    return any(secret is None or secret in text or repr(secret)[1:-1] in text for secret in secrets)


def is_secret_path(path: str, aliases: frozenset[str] = frozenset()) -> bool:
    """Return whether one of the names on the path is the name of a secret, or in *aliases*."""
    return any(name in aliases or is_secret_name(name) for name in _SEPARATORS.split(path))


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
