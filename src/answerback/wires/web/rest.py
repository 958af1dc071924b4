"""REST: one POST is one call. Turns a request into a Call, and its outcome into a response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...call import Call, settled
from ...dialects import Written, write
from ...dialects.accept import choose
from ...reply import Reply
from ...shape import RESULT
from ..http import refuse_media, refuse_method
from .body import Gone, Headers, Receive, Scope, Send, headers_of, read_body
from .guard import Guard
from .options import WebOptions

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

    async def call(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        try:
            reply = await self._reply(name, scope, headers, receive)
        except Gone:
            return
        tool = self._app.tools.get(name)
        contract = self._app.contract
        accept = headers.get(b"accept", b"")[:_LONGEST_ACCEPT].decode("latin-1")
        dialect = choose(accept, contract, failed=not reply.ok)
        # An error has no shape, and may be that the annotations could not be read.
        shape = tool.shape if tool is not None and reply.ok else RESULT
        written = write(reply, dialect, shape, contract)
        await respond(send, written, allow="POST")

    async def _reply(
        self, name: str, scope: Scope, headers: Headers, receive: Receive
    ) -> Reply[Any]:
        body = await read_body(receive, headers, self._max_body)
        refused = (
            self._guard.refuse(scope, headers)
            or refuse_method(scope["method"], "POST")
            or refuse_media(headers.get(b"content-type", b"").decode("latin-1"))
        )
        if refused is not None:
            return refused
        if isinstance(body, Reply):
            return body
        call = Call(name, body or b"{}", wire="rest")
        try:
            return settled(await self._app.paths.tools(call))
        except BaseException:  # The server gives the call up: a thread may still be at it.
            call.cancelled = True
            raise


async def respond(send: Send, written: Written, *, allow: str) -> None:
    headers = [
        (b"content-type", written.media_type.encode("latin-1")),
        (b"content-length", b"%d" % len(written.body)),
    ]
    if written.headers:
        headers += [(name.lower().encode(), value.encode()) for name, value in written.headers]
    if written.status == 405:
        headers.append((b"allow", allow.encode()))
    await send({"type": "http.response.start", "status": written.status, "headers": headers})
    await send({"type": "http.response.body", "body": written.body})
