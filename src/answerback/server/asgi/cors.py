"""CORS: which web pages of other origins may use the server, and which headers they see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.reply import failure
from ...errors import needs_extra
from ..http.host_and_origin import Guard
from ..http.routes import Routes
from .request import HttpRequest, Message, Receive, Scope, Send

with needs_extra("serve"):
    from starlette.middleware.cors import CORSMiddleware

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_SHOWN_HEADERS = (
    *("X-Error-Code", "X-Error-Hint", "X-Error-Url", "Location", "Preference-Applied"),
    *("Retry-After", "Mcp-Session-Id", "WWW-Authenticate"),
)


class Cors:
    """Adds the headers of CORS to the responses of *answer*."""

    def __init__(
        self, answer: ASGIApp, origins: Sequence[str], guard: Guard, routes: Routes
    ) -> None:
        self._guard = guard
        self._routes = routes
        self._answer = CORSMiddleware(
            answer,
            allow_origins=origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=_SHOWN_HEADERS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS":
            await self._answer_preflight(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer_preflight(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an OPTIONS request; a refused one gets JSON, like every other refusal."""
        request = HttpRequest(scope, receive, send)
        refused = self._guard.refuse(scope, request.headers)
        sent: list[Message] = []

        async def collect(message: Message) -> None:
            sent.append(message)

        if refused is None:
            await self._answer(scope, receive, collect)
            is_preflight = b"access-control-request-method" in request.headers
            if sent[0]["status"] < 400 or not is_preflight:
                for message in sent:
                    await send(message)
                return
            reason = b"".join(message.get("body", b"") for message in sent).decode()
            refused = failure(reason, code="FOREIGN_ORIGIN")
        await request.respond_with(self._routes.refuse(refused, request))
