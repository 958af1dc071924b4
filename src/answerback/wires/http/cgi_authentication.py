"""Authentication of a CGI request; Apache passes the header on with `CGIPassAuth On`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...authentication import Credentials, User
from ...dialects import HttpReply
from ...registry import Registry
from .authentication_step import AuthenticationStep, RefusedRequest, authentication_step
from .routes import Routes

if TYPE_CHECKING:
    from ..cgi import CgiRequest

_NOT_HEADERS = ("HTTP_PROXY", "HTTPS")


def authenticate(
    registry: Registry, request: CgiRequest, environ: Mapping[str, str], routes: Routes
) -> HttpReply | None:
    """The response that refuses a request, or shows a page; None lets the request go on."""
    step = authentication_step(registry)
    if step is None:
        return None
    page = step.page(request.method, request.path)
    if page is not None:
        return page
    refused = step.refuse_others(environ.get("REMOTE_ADDR", ""))
    if refused is not None:
        return routes.refuse(refused, request)
    found = _run(step, _credentials(request, environ))
    if isinstance(found, RefusedRequest):
        return found.added_to(routes.refuse(found.reply, request))
    request.user, request.has_auth = found, True
    return None


def _run(step: AuthenticationStep, credentials: Credentials) -> User | RefusedRequest | None:
    # The keys of an issuer are fetched on an event loop.
    import asyncio

    return asyncio.run(step.identify(credentials))


def _credentials(request: CgiRequest, environ: Mapping[str, str]) -> Credentials:
    headers = [
        (name.removeprefix("HTTP_").replace("_", "-").lower().encode(), os.fsencode(value))
        for name, value in environ.items()
        if name.startswith("HTTP_") and name not in _NOT_HEADERS
    ]
    query = os.fsencode(environ.get("QUERY_STRING", ""))
    return Credentials(request.method, request.path, query, headers)
