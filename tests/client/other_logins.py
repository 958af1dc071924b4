"""Logins of our client to servers of others that have an issuer of their own.

`make clientconformance` runs them; each server takes seconds to start.
"""

from __future__ import annotations

import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from tests.ports import listening

from answerback import connect
from answerback.client.login import Login

SDK = """
import secrets
import sys
import time

from mcp.server.auth import provider as oauth
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

base = f"http://127.0.0.1:{sys.argv[1]}"


class Issuer:
    def __init__(self):
        self.clients, self.codes, self.tokens, self.refresh = {}, {}, {}, {}

    async def get_client(self, id):
        return self.clients.get(id)

    async def register_client(self, client):
        self.clients[client.client_id] = client

    async def authorize(self, client, asked):
        code = secrets.token_urlsafe()
        self.codes[code] = oauth.AuthorizationCode(
            code=code,
            scopes=asked.scopes or ["user"],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=asked.code_challenge,
            redirect_uri=asked.redirect_uri,
            redirect_uri_provided_explicitly=asked.redirect_uri_provided_explicitly,
            resource=asked.resource,
        )
        return oauth.construct_redirect_uri(str(asked.redirect_uri), code=code, state=asked.state)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        token = secrets.token_urlsafe()
        self.tokens[token] = oauth.AccessToken(
            token=token, client_id=client.client_id, scopes=code.scopes, resource=code.resource
        )
        return OAuthToken(access_token=token, scope=" ".join(code.scopes), token_type="Bearer")

    async def load_refresh_token(self, client, token):
        return None

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def revoke_token(self, token):
        pass


server = MCPServer(
    "sdk",
    auth_server_provider=Issuer(),
    auth=AuthSettings(
        issuer_url=base,
        resource_server_url=f"{base}/mcp",
        required_scopes=["user"],
        client_registration_options=ClientRegistrationOptions(enabled=True),
    ),
)


@server.tool()
def add(x: int, y: int) -> int:
    return x + y


server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
"""
FASTMCP = """
import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions

base = f"http://127.0.0.1:{sys.argv[1]}"
registration = ClientRegistrationOptions(enabled=True)
auth = InMemoryOAuthProvider(base_url=base, client_registration_options=registration)
server = FastMCP("fastmcp", auth=auth)


@server.tool
def add(x: int, y: int) -> int:
    return x + y


server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
"""
LOGGED_IN = ["2025-11-25", 3, "2026-07-28", 3]
"""The result of `log_in` if all goes well."""
SERVERS = {"official SDK": SDK, "FastMCP": FASTMCP}


def visit(page: str) -> None:
    """Be the browser of a user who agrees."""
    urllib.request.urlopen(page, timeout=60).close()


def log_in(source: str) -> list[Any]:
    """The versions that were spoken, and the data of a call after a login in each."""
    found: list[Any] = []
    choices: list[dict[str, Any]] = [{"version": "2025-11-25"}, {}]
    with (
        tempfile.TemporaryDirectory() as folder,
        listening(
            lambda port: [sys.executable, "-c", source, str(port)], Path(folder, "log")
        ) as running,
    ):
        for options in choices:
            login = Login(open_url=visit, timeout=30)
            url = f"http://127.0.0.1:{running.port}/mcp"
            with connect(url, auth=login, **options) as server:
                found += [server.info.version.name, server.call("add", x=1, y=2).data]
    return found
