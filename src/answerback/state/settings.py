"""The settings of the state: its URL from an option or the environment, and what it needs."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..errors import AnswerbackError

if TYPE_CHECKING:
    from .shared import SharedState

STATE, STATE_LISTEN = "ANSWERBACK_STATE", "ANSWERBACK_STATE_LISTEN"
"""The environment variables for the database, and for the database itself behind a pooler."""
_SCHEMES = ("postgresql://", "postgres://")


class WrongState(AnswerbackError):
    """The URL of the state is missing or wrong, or a package is missing."""

    code = "BAD_OPTION"


def state_of(
    url: str | None = None, *, listen: str | None = None, init: bool = False
) -> SharedState | None:
    """Return the state at *url*, or that of the environment; None if neither names one.

    Raises WrongState or CannotUseState.
    """
    url = url or os.environ.get(STATE)
    if not url:
        return None
    listen = listen or os.environ.get(STATE_LISTEN)
    for each in (url, listen):
        if each:
            check_url(each)
    from .shared import open_state

    return open_state(url, listen=listen or None, init=init)


def check_url(url: str) -> None:
    """Raise WrongState unless this is a URL of PostgreSQL, and its driver is installed."""
    if not url.startswith(_SCHEMES):
        raise WrongState(
            "the state needs a URL of PostgreSQL, such as postgresql://user@host/database"
        )
    for package in ("psycopg", "cryptography"):
        if find_spec(package) is None:
            raise WrongState(
                f"the state needs the package {package}: pip install 'answerback[postgres]'"
            )
