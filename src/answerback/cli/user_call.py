"""One call of an App's tool, resource or prompt, for the user at the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..calls.call import Call
from ..registry.declarations import registry_of
from ..server.single_call import HandlerName, call_once
from .program import WrongOption, add_repeatable
from .terminal_peer import TerminalPeer

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from ..app import App
    from ..core.reply import Reply
    from .program import Options


def add_user_options(parser: ArgumentParser) -> None:
    parser.add_argument("--user", metavar="NAME", help="act as this user, where there are gates")
    add_repeatable(parser, "--scope", "SCOPE", "a scope of the user")


def call_as_user(
    app: App,
    name: str,
    arguments: bytes,
    options: Options,
    stdin: int,
    handler: HandlerName = "tools",
) -> Reply[Any]:
    """Call an entry of the app as `--user`; questions and progress are shown on the terminal."""
    if options.scope and options.user is None:
        raise WrongOption("--scope needs --user")
    peer = TerminalPeer(stdin)
    call = Call(name, arguments, peer, wire="call")
    if options.user is not None:
        from ..core.authentication import User

        # The app's issuer, so that the gates' links are for the user who logs in there.
        issuer = "" if app.auth is None else app.auth.issuer
        call.user = User(subject=options.user, issuer=issuer, scopes=frozenset(options.scope))
    try:
        reply = call_once(registry_of(app), call, handler)
    finally:
        peer.clear_progress()
    return _with_user_hint(reply, call, options)


def _with_user_hint(reply: Reply[Any], call: Call, options: Options) -> Reply[Any]:
    """Name the options that a gate's refusal asks for."""
    if reply.error is None or call.challenge is None:
        return reply
    missing = [] if options.user is not None else ["--user NAME"]
    given = options.scope or ()
    missing += [f"--scope {each}" for each in call.challenge.scopes if each not in given]
    if not missing:
        return reply
    hint = f"act as a user: add {' '.join(missing)}"
    return msgspec.structs.replace(reply, error=msgspec.structs.replace(reply.error, hint=hint))
