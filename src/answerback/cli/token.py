"""`token`: prints a test token from a server that was started with --dev-auth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from urllib.parse import urlsplit

from ..auth.bearer import is_loopback_url
from ..auth.development import TOKEN_PATH
from ..errors import AnswerbackError
from ..http1.http_connection import HttpFailure
from ..http1.http_pool import Fetched, fetch
from .program import Program, add_repeatable, positive_int, print_line

_SECONDS = 10
_MAX_BODY = 64 * 1024
_EPILOG = """\
The token only works on this machine. For example:
  curl -H "Authorization: Bearer $(answerback token --user alice)" ..."""


class NoTestToken(AnswerbackError):
    code = "NO_TEST_TOKEN"


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser("token", "[URL] [options]", epilog=_EPILOG)
    url = "the server's address (default: http://127.0.0.1:8000)"
    parser.add_argument("url", nargs="?", metavar="URL", default="http://127.0.0.1:8000", help=url)
    parser.add_argument("--user", default="developer", help="the subject (default: developer)")
    add_repeatable(parser, "--scope", "SCOPE", "a scope for the token")
    text = "how long it is valid (default: 3600)"
    parser.add_argument("--seconds", type=positive_int, default=3600, help=text)
    options = parser.parse_args(arguments)
    server = options.url
    try:
        is_here = is_loopback_url(server)
    except ValueError as exc:
        raise NoTestToken(f"{server} is not a URL: {exc}") from None
    if not is_here:
        raise NoTestToken(f"{server} is not on this machine; test tokens only work here")
    parts = urlsplit(server)
    asked = {"user": options.user, "scopes": options.scope, "seconds": options.seconds}
    try:
        url = f"{parts.scheme}://{parts.netloc}{TOKEN_PATH}"
        found = asyncio.run(_post(url, json.dumps(asked).encode()))
        if found.status != 200:
            raise NoTestToken(
                f"{server} issues no test tokens ({found.status}); start it with: serve --dev-auth"
            )
        token = json.loads(found.body)["access_token"]
    except (HttpFailure, TimeoutError, ValueError, KeyError, TypeError) as exc:
        reason = str(exc) or f"it took more than {_SECONDS} seconds"
        raise NoTestToken(f"{server} did not respond: {reason}") from None
    print_line(token)
    return 0


async def _post(url: str, body: bytes) -> Fetched:
    headers = {"content-type": "application/json"}
    async with asyncio.timeout(_SECONDS):
        # Proxies from the environment do not apply to this machine.
        return await fetch("POST", url, headers, body, limit=_MAX_BODY, uses_proxies=False)
