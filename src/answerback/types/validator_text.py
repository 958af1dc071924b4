"""Decides which texts from an author's validators and `__post_init__` methods a caller reads.

The text of a ValueError or AssertionError is for the caller, unless it quotes a value that was
sent under a secret's name. Other exceptions' texts are for the log.
"""

from __future__ import annotations

from typing import Any

from ..core.log import logger
from ..core.secrets import quotes_secret

_MAX_LENGTH = 500


def refusal(
    error: BaseException, sent: Any, path: str = "", aliases: frozenset[str] = frozenset()
) -> str:
    """Return a refusal's text: the author's own, or one with only the error's class.

    *sent* is the refused value at *path*, and *aliases* are further secret names. A text that is
    not for the caller is logged.
    """
    text = str(error)
    is_for_caller = isinstance(error, ValueError | AssertionError)
    if is_for_caller and not quotes_secret(text, sent, path, aliases):
        return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"
    message = "a validator or __post_init__ raised an exception; callers do not see its text"
    logger().warning(message, exc_info=error)
    return f"refused by its class ({type(error).__name__})"
