"""The options of the commands that share their state with other hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..server.shared_state import use_state
from ..state.settings import STATE, STATE_LISTEN, WrongState, state_of

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ..calls.runtime import Runtime
    from ..state.shared import SharedState


def add_state_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        metavar="URL",
        help="share tasks, keys and sessions with other hosts in this PostgreSQL database "
        f"(default: {STATE} of the environment)",
    )
    parser.add_argument(
        "--state-listen",
        metavar="URL",
        help="the database itself, if --state goes through a pooler such as pgbouncer "
        f"(default: {STATE_LISTEN})",
    )
    parser.add_argument(
        "--state-init", action="store_true", help="make or update the tables of the state first"
    )


def open_state_of(options: Namespace) -> SharedState | None:
    """Return the state that the options or the environment name; None if they name none.

    Raises WrongState or CannotUseState.
    """
    shared = state_of(options.state, listen=options.state_listen, init=options.state_init)
    if shared is None and (options.state_listen or options.state_init):
        raise WrongState(f"--state-listen and --state-init need --state, or {STATE}")
    return shared


def use_state_of(options: Namespace, runtime: Runtime) -> bool:
    """Keep the runtime's state where the options say; return whether they name a database."""
    return use_state(runtime, open_state_of(options))
