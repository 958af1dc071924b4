"""Serves the pages that authors registered with `@app.route`."""

from __future__ import annotations

from typing import Any

from ...calls.failures import error_for, log_internal_error
from ...contract import MASKED
from ...core.reply import Reply, failure
from ...errors import ToolError, needs_extra
from ...registry.declarations import Registry
from ..http.host_and_origin import Guard
from ..http.refusals import too_large
from ..http.routes import Routes
from .request import MAX_BODY_HINT, HttpRequest, Message, Receive, Scope, Send

with needs_extra("serve"):
    from starlette.requests import ClientDisconnect
    from starlette.routing import Match, Route


class _TooLarge(Exception):
    """The body of a request is larger than the server allows."""


class OwnPages:
    """The pages of an app and the apps it includes."""

    def __init__(self, registry: Registry, guard: Guard, routes: Routes, max_body: int) -> None:
        self._max_body = max_body
        self._guard = guard
        self._routes = routes
        self._pages = [
            Route(each.path, each.fn, methods=list(each.methods))
            for app in registry.apps()
            for each in app.routes
        ]

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request for a page; return False for other requests."""
        found = None
        for page in self._pages:
            match, child = page.matches(scope)
            if match is Match.FULL or (match is Match.PARTIAL and found is None):
                found = page, child
            if match is Match.FULL:
                break
        if found is None:
            return False
        request = HttpRequest(scope, receive, send)
        refused = self._guard.refuse(scope, request.headers)
        if refused is not None:
            await request.respond_with(self._routes.refuse(refused, request))
            return True
        page, child = found
        await self._run(page, {**scope, **child}, receive, send)
        return True

    async def _run(self, page: Route, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._max_body:
                raise _TooLarge
            return message

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await page.handle(scope, limited, watched)
        except _TooLarge:
            if not has_begun:
                request = HttpRequest(scope, receive, send)
                refused = too_large(self._max_body, MAX_BODY_HINT)
                await request.respond_with(self._routes.refuse(refused, request))
        except ClientDisconnect:
            return  # The page was reading the body, and nobody waits for an answer.
        except Exception as exc:
            reply = _failed_page(exc, scope)
            if has_begun:
                raise
            request = HttpRequest(scope, receive, send)
            await request.respond_with(self._routes.refuse(reply, request))


def _failed_page(exc: Exception, scope: Scope) -> Reply[Any]:
    """Return the reply for a page that raised; only a ToolError has a message for the client."""
    if isinstance(exc, ToolError):
        return Reply(error=error_for(exc, scope["path"], MASKED, noun="page"))
    log_internal_error(f"{scope['method']} {scope['path']}")
    return failure("Internal server error")
