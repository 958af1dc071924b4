"""REST: one POST is one call. Turns a request into a Call, and its outcome into a response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...calls.pipeline import Call, settled
from ...dialects import HttpReply, write
from ...dialects.accept import choose
from ...dialects.http_reply import JSON
from ...reply import Reply
from ...shape import RESULT
from ..asgi.request import IN_JSON, Gone, Headers, Incoming, Pairs
from .guard import Guard
from .options import WebOptions
from .refusals import refuse_media, refuse_method

if TYPE_CHECKING:
    from ...app import App


# Longer than any that is meant; a longer one is not worth the time to read it.
_LONGEST_ACCEPT = 2048


class Functions:
    """Answers the requests to the functions' route; which those are is not its business."""

    def __init__(self, app: App, guard: Guard, options: WebOptions) -> None:
        self._app = app
        self._guard = guard
        self._max_body = options.max_body

    async def call(self, name: str, incoming: Incoming) -> None:
        try:
            body = await incoming.body(self._max_body)
        except Gone:
            await incoming.leave()
            return
        refused = self._refuse(incoming)
        if refused is not None:
            reply = refused
        elif not isinstance(body, bytes):
            reply = body
        else:
            call = Call(name, body or b"{}", wire="rest", caller=incoming.caller)
            call.is_gone = incoming.is_gone
            reply = settled(await self._app.paths.tools(call))
        written = self._write(name, reply, incoming.headers)
        await incoming.respond(written.status, _headers(written), written.body)

    def _refuse(self, incoming: Incoming) -> Reply[Any] | None:
        refused = self._guard.refuse(incoming.scope, incoming.headers)
        media = incoming.headers.get(b"content-type", b"")
        # What nearly all send is not worth two more calls.
        if refused or (media == b"application/json" and incoming.method == "POST"):
            return refused
        return refuse_method(incoming.method, "POST") or refuse_media(media.decode("latin-1"))

    def _write(self, name: str, reply: Reply[Any], headers: Headers) -> HttpReply:
        contract = self._app.contract
        dialect = contract.http
        if b"accept" in headers:
            accept = headers[b"accept"][:_LONGEST_ACCEPT].decode("latin-1")
            dialect = choose(accept, contract, failed=reply.error is not None)
        tool = self._app.tools.get(name)
        # An error has no shape, and may be that the annotations could not be read.
        shape = tool.shape if tool is not None and reply.error is None else RESULT
        return write(reply, dialect, shape, contract)


def _headers(written: HttpReply) -> Pairs:
    """What goes before the body, but for its length."""
    if written.media_type == JSON and not written.headers:
        return IN_JSON
    headers = [(b"content-type", written.media_type.encode("latin-1"))]
    headers += [(name.lower().encode(), value.encode()) for name, value in written.headers]
    if written.status == 405:
        headers.append((b"allow", b"POST"))
    return tuple(headers)
