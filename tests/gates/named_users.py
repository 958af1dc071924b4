"""An authenticator for the tests of gates, and ways to call an app as a user over each wire."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx

from answerback import App
from answerback.core.authentication import AppAuth, AuthPage, Challenge, Credentials, User
from answerback.registry.declarations import registry_of

METADATA = "https://tools.example.com/.well-known/oauth-protected-resource/mcp"
PREFIX = "io.modelcontextprotocol/"
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class NamedUsers(AppAuth):
    """Takes the token for the name of the user; the scopes follow it, separated by commas."""

    anonymous = True
    pages: Mapping[str, AuthPage] | None = None

    async def authenticate(self, credentials: Credentials) -> User | None:
        headers = dict(credentials.headers)
        token = headers.get(b"authorization", b"").removeprefix(b"Bearer ").decode()
        if not token:
            return None
        subject, *scopes = token.split(",")
        return User(subject=subject, issuer="https://id.example.com", scopes=frozenset(scopes))

    def www_authenticate(self, challenge: Challenge) -> str:
        found = {
            "error": challenge.error or "",
            "error_description": challenge.description if challenge.error else "",
            "scope": " ".join(challenge.scopes),
            "resource_metadata": METADATA,
        }
        return "Bearer " + ", ".join(f'{name}="{text}"' for name, text in found.items() if text)


def gated_app(name: str = "bank", **options: Any) -> App:
    """An app that authenticates by the name of the user."""
    app = App(name, **options)
    registry_of(app).auth = NamedUsers()
    return app


def authenticated(app: App) -> Callable[..., Awaitable[None]]:
    """The ASGI application of *app*; the user of a request is in its scope."""
    serve: Any = app.asgi(hosts=["test"])

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and app.auth is not None:
            credentials = Credentials("POST", scope["path"], b"", scope["headers"])
            scope["user"] = await app.auth.authenticate(credentials)
        await serve(scope, receive, send)

    return answer


def post(app: App, path: str, body: Any, token: str = "", **headers: str) -> httpx.Response:
    """POST *body* as JSON; *token* names the user."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(authenticated(app))
        sent = JSON | {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            sent["authorization"] = f"Bearer {token}"
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post(path, json=body, headers=sent)

    return asyncio.run(send())


def request(method: str, id: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def rpc(app: App, method: str, token: str = "", *, era: str = "2025-11-25", **params: Any) -> Any:
    """The HTTP response to one MCP request, in either era."""
    headers = {"mcp_protocol_version": era}
    if era == "2026-07-28":
        capabilities = params.pop("capabilities", {})
        meta = {"protocolVersion": era, "clientCapabilities": capabilities}
        params["_meta"] = {PREFIX + name: value for name, value in meta.items()} | params.pop(
            "meta", {}
        )
        headers["mcp_method"] = method
        if name := params.get("name") or params.get("uri"):
            headers["mcp_name"] = name
    return post(app, "/mcp", request(method, **params), token, **headers)
