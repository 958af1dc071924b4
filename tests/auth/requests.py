"""An app with `auth=`, in memory, and requests to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

import httpx
from tests.auth.issuer import URL, Issuer

from answerback import App, Context
from answerback.auth import OAuth

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "who", "arguments": {}},
}
PATHS = ("/mcp", "/message", "/functions/who")


Sent: TypeAlias = tuple[str, str, Any, dict[str, Any]]
"""The method, the path, the headers and further options of a request."""
T = TypeVar("T")


class Caller:
    """Sends requests to an app; *ran* has the subjects of the calls that got through."""

    def __init__(self, auth: Any, **options: Any) -> None:
        self.ran: list[str | None] = []
        self.app = App("guarded", auth=auth, **options)
        self.auth = auth

        @self.app.tool
        async def who(ctx: Context) -> str | None:
            subject = None if ctx.user is None else ctx.user.subject
            self.ran.append(subject)
            return subject

        self.asgi = self.app.asgi()

    def send(self, method: str, path: str, headers: Any = (), **options: Any) -> httpx.Response:
        return self.send_all([(method, path, headers, options)])[0]

    def send_all(
        self, requests: list[tuple[str, str, Any, dict[str, Any]]]
    ) -> list[httpx.Response]:
        """Send requests at the same time."""

        async def send(client: httpx.AsyncClient) -> list[httpx.Response]:
            return await asyncio.gather(
                *(
                    client.request(method, path, headers=httpx.Headers(headers, "latin-1"), **more)
                    for method, path, headers, more in requests
                )
            )

        return self._run(send)

    def call_until(self, token: str, status: int) -> httpx.Response:
        """Call again and again until the response has a status; fails after a minute."""

        async def send(client: httpx.AsyncClient) -> httpx.Response:
            async with asyncio.timeout(60):
                while True:
                    headers = {"Authorization": f"Bearer {token}"}
                    reply = await client.post("/functions/who", json={}, headers=headers)
                    if reply.status_code == status:
                        return reply
                    # A request in memory may not wait for anything, so let other tasks run.
                    await asyncio.sleep(0)

        return self._run(send)

    def _run(self, send: Callable[[httpx.AsyncClient], Coroutine[Any, Any, T]]) -> T:
        async def run() -> T:
            transport = httpx.ASGITransport(self.asgi, client=("127.0.0.1", 1))
            url = "http://127.0.0.1"
            async with httpx.AsyncClient(transport=transport, base_url=url) as client:
                return await send(client)

        return asyncio.run(run())

    def call(self, token: str | None = None, path: str = "/functions/who", **more: Any) -> Any:
        headers = [] if token is None else [("Authorization", f"Bearer {token}")]
        body = {} if path.startswith("/functions") else CALL
        return self.send("POST", path, headers, json=body, **more)


def oauth_caller(issuer: Issuer, **options: Any) -> Caller:
    return Caller(OAuth(issuer=issuer.url, url=URL, **options))
