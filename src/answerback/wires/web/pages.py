"""What is not a call: the list of functions, the OpenAPI document, health, and 404 for the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ...dialects import write
from ...errors import needs_extra
from ...reply import Reply, failure
from ...shape import RESULT
from ..http import no_route
from ..listing import health, listing
from .guard import Guard

with needs_extra("serve"):
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

if TYPE_CHECKING:
    from ...app import App


class Pages:
    def __init__(self, app: App, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    def starlette(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/functions", self._guarded(self._functions)),
                Route("/openapi.json", self._guarded(self._openapi)),
                Route("/healthz", self._guarded(self._health)),
            ],
            exception_handlers={HTTPException: self._refuse},
        )

    def _guarded(self, page: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            refused = self._guard.refuse(request.scope, dict(request.scope["headers"]))
            if refused is not None:
                return self._say(refused)
            return Response(msgspec.json.encode(page(request)), media_type="application/json")

        return answer

    def _functions(self, _: Request) -> Any:
        return listing(self._app)

    def _openapi(self, request: Request) -> Any:
        from .openapi import document_json

        return msgspec.Raw(document_json(self._app, request.scope.get("root_path", "")))

    def _health(self, _: Request) -> Any:
        return health(self._app)

    async def _refuse(self, request: Request, exc: Exception) -> Response:
        assert isinstance(exc, HTTPException)
        refused = self._guard.refuse(request.scope, dict(request.scope["headers"]))
        if refused is not None:
            return self._say(refused)
        if exc.status_code == 405:
            allow = (exc.headers or {}).get("Allow", "GET")
            said = failure(
                f"Method not allowed: {request.method}; use {allow}", code="METHOD_NOT_ALLOWED"
            )
            return self._say(said, {"Allow": allow})
        return self._say(no_route(request.url.path))

    def _say(self, reply: Reply[Any], more: dict[str, str] | None = None) -> Response:
        contract = self._app.contract
        written = write(reply, contract.http, RESULT, contract)
        headers = dict(written.headers) | (more or {})
        return Response(written.body, written.status, headers, written.media_type)
