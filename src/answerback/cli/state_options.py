"""The options of the commands that share their state with other hosts."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..errors import AnswerbackError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ..calls.runtime import Runtime
    from ..state.shared import SharedState

_VARIABLE = "ANSWERBACK_STATE"
_SCHEMES = ("postgresql://", "postgres://")


class WrongState(AnswerbackError):
    """The URL of the state is missing or wrong, or a package is missing."""

    code = "BAD_OPTION"


def add_state_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        metavar="URL",
        help="share tasks and keys with other hosts in this PostgreSQL database "
        f"(default: {_VARIABLE} of the environment)",
    )
    parser.add_argument(
        "--state-listen",
        metavar="URL",
        help="the database itself, if --state goes through a pooler such as pgbouncer",
    )
    parser.add_argument(
        "--state-init", action="store_true", help="make or update the tables of the state first"
    )


def open_state_of(options: Namespace) -> SharedState | None:
    """Return the state that the options or the environment name; None if they name none.

    Raises WrongState or CannotUseState.
    """
    url = options.state or os.environ.get(_VARIABLE)
    if not url:
        if options.state_listen or options.state_init:
            raise WrongState(f"--state-listen and --state-init need --state, or {_VARIABLE}")
        return None
    check_url(url)
    if options.state_listen:
        check_url(options.state_listen)
    from ..state.shared import open_state

    return open_state(url, listen=options.state_listen, init=options.state_init)


def use_state_of(options: Namespace, runtime: Runtime) -> bool:
    """Keep the runtime's state where the options say; return whether they name a database."""
    shared = open_state_of(options)
    if shared is None:
        return False
    from ..server.shared_state import use_state

    use_state(runtime, shared)
    return True


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
