"""An app with `auth=`, in memory, and requests to it."""

from __future__ import annotations

import asyncio
from typing import Any

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

        async def run() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.asgi, client=("127.0.0.1", 1))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1"
            ) as client:
                return await asyncio.gather(
                    *(
                        client.request(
                            method, path, headers=httpx.Headers(headers, "latin-1"), **options
                        )
                        for method, path, headers, options in requests
                    )
                )

        return asyncio.run(run())

    def call(self, token: str | None = None, path: str = "/functions/who", **more: Any) -> Any:
        headers = [] if token is None else [("Authorization", f"Bearer {token}")]
        body = {} if path.startswith("/functions") else CALL
        return self.send("POST", path, headers, json=body, **more)


def oauth_caller(issuer: Issuer, **options: Any) -> Caller:
    return Caller(OAuth(issuer=issuer.url, url=URL, **options))
