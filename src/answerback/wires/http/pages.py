"""What is not a call: the list of functions, the OpenAPI document, health, and 404 for the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ...dialects import write
from ...errors import needs_extra
from ...reply import Reply, failure
from ...shape import RESULT
from ..asgi.request import headers_of
from ..listing import health, listing
from .guard import Guard
from .refusals import no_route, refuse_method

with needs_extra("serve"):
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

if TYPE_CHECKING:
    from ...app import App

_ALLOWED = "GET, HEAD"


class Pages:
    def __init__(self, app: App, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    def starlette(self) -> Starlette:
        pages = Starlette(
            routes=[
                Route("/functions", self._guarded(self._functions)),
                Route("/openapi.json", self._guarded(self._openapi)),
                Route("/healthz", self._guarded(self._health)),
            ],
            exception_handlers={HTTPException: self._refuse, Exception: self._fail},
        )
        # A redirect would be sent before the guard has looked, to whatever host was said.
        pages.router.redirect_slashes = False
        return pages

    def _guarded(self, page: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            refused = self._guard.refuse(request.scope, headers_of(request.scope))
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
        refused = self._guard.refuse(request.scope, headers_of(request.scope))
        if refused is not None:
            return self._say(refused)
        if exc.status_code != 405:
            return self._say(no_route(request.url.path))
        said = refuse_method(request.method, _ALLOWED)
        return self._say(said or no_route(request.url.path), {"Allow": _ALLOWED})

    async def _fail(self, _: Request, exc: Exception) -> Response:
        """What went wrong is raised again after this, and logged by the server."""
        return self._say(failure("Internal server error"))

    def _say(self, reply: Reply[Any], more: dict[str, str] | None = None) -> Response:
        contract = self._app.contract
        written = write(reply, contract.http, RESULT, contract)
        headers = dict(written.headers) | (more or {})
        return Response(written.body, written.status, headers, written.media_type)
