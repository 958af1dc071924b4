"""`token`: prints a test token of a server that was started with --dev-auth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from ..auth.development import TOKEN_PATH
from ..auth.urls import is_loopback_url
from ..errors import AnswerbackError
from .program import Program, positive_int, print_text

_EPILOG = """\
The token is for this machine alone. For example:
  curl -H "Authorization: Bearer $(answerback token --user alice)" ..."""


class NoTestToken(AnswerbackError):
    code = "NO_TEST_TOKEN"


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser("token", "[URL] [options]", epilog=_EPILOG)
    url = "the address of the server (default: http://127.0.0.1:8000)"
    parser.add_argument("url", nargs="?", metavar="URL", default="http://127.0.0.1:8000", help=url)
    parser.add_argument("--user", default="developer", help="the subject (default: developer)")
    parser.add_argument(
        "--scope", action="append", default=[], help="a scope of the token; may be repeated"
    )
    parser.add_argument(
        "--seconds", type=positive_int, default=3600, help="how long it is valid (default: 3600)"
    )
    options = parser.parse_args(arguments)
    asked = {"user": options.user, "scopes": options.scope, "seconds": options.seconds}
    print_text(_fetch(options.url, asked) + "\n")
    return 0


def _fetch(server: str, asked: dict[str, object]) -> str:
    if not is_loopback_url(server):
        raise NoTestToken(f"{server} is not on this machine; test tokens are for it alone")
    parts = urlsplit(server)
    url = f"{parts.scheme}://{parts.netloc}{TOKEN_PATH}"
    request = Request(url, json.dumps(asked).encode(), {"Content-Type": "application/json"})
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=10) as response:
            token: str = json.load(response)["access_token"]
            return token
    except HTTPError as exc:
        exc.close()
        raise NoTestToken(
            f"{server} gives no test tokens ({exc.code}); start it with: serve --dev-auth"
        ) from None
    except (URLError, OSError, ValueError, KeyError) as exc:
        raise NoTestToken(f"{server} does not answer: {getattr(exc, 'reason', exc)}") from None
