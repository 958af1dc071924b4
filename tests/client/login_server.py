"""A server that wants a login, and its issuer, in one: a test changes it as it likes."""

from __future__ import annotations

import json
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

from tests.client.conftest import http_server

TOOL = {"name": "greet", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
RESULTS: dict[str, dict[str, Any]] = {
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "hello"}]},
}


class LoginServer:
    """The MCP server at `/mcp`, its metadata, and an issuer that agrees to every login."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/mcp"
        self.issuer = url
        self.requests: list[tuple[str, dict[str, str]]] = []
        """The path and the form or query of each request to the issuer."""
        self.used: list[str] = []
        """The header `Authorization` of each request to the MCP server."""
        self.scope = "read"
        self.call_scope = ""
        """The scope that `tools/call` needs besides."""
        self.seconds = 600.0
        self.resource: dict[str, Any] | None = {
            "resource": self.url,
            "authorization_servers": [url],
        }
        self.metadata: dict[str, Any] = {
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "registration_endpoint": f"{url}/register",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }
        self.answer: dict[str, str | None] = {"iss": url}
        """Changes of the answer that the browser brings; None leaves a parameter out."""
        self.revoked: set[str] = set()
        self.refused_refresh = False
        self.status: dict[str, int] = {}
        """Statuses with which paths fail."""
        self.silent: set[str] = set()
        """Paths that are not answered before `answers` is set; `asked_silent` is called first."""
        self.asked_silent: Callable[[], object] = bool
        self.answers = threading.Event()
        self.waits = threading.Event()
        """Set once a token is asked for."""
        self.goes_on = threading.Event()
        """A request for a token waits until this is set."""
        self.goes_on.set()
        self.registers_scopes = True
        """False refuses to register scopes; True grants those alone that were registered."""
        self.moved: dict[str, str] = {}
        """The addresses that paths are redirected to."""
        self.tokens: dict[str, str] = {}
        """The scopes of the tokens that were issued."""
        self.registered: dict[str, Any] = {}
        self._challenge = ""
        self._issued = 0
        self._lock = threading.Lock()

    def paths(self, *wanted: str) -> list[str]:
        """The requests to the issuer in their order, as far as *wanted* names them."""
        return [path for path, _ in self.requests if path in wanted]

    def sent(self, path: str) -> dict[str, str]:
        """The form or the query of the last request for a path."""
        return [each for known, each in self.requests if known == path][-1]

    def visit(self, page: str) -> None:
        """Be the browser of a user who agrees."""
        urlopen(page, timeout=60).close()

    def authorize(self, query: dict[str, str]) -> str:
        self._challenge = query["code_challenge"]
        self._asked = query.get("scope", "")
        answer = {"code": "the-code", "state": query["state"], **self.answer}
        registered = {"offline_access", *str(self.registered.get("scope", "")).split()}
        if self.registers_scopes and self.registered and not {*self._asked.split()} <= registered:
            answer |= {"code": None, "error": "invalid_scope"}
        kept = {name: value for name, value in answer.items() if value is not None}
        return f"{query['redirect_uri']}?{urlencode(kept)}"

    def token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.waits.set()
        self.goes_on.wait(60)
        if form["grant_type"] == "refresh_token" and self.refused_refresh:
            return 400, {"error": "invalid_grant", "error_description": "the token was revoked"}
        if form["grant_type"] == "authorization_code":
            digest = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest())
            if digest.rstrip(b"=").decode() != self._challenge or form["code"] != "the-code":
                return 400, {"error": "invalid_grant"}
        with self._lock:
            self._issued += 1
            token = f"token-{self._issued}"
        self.tokens[token] = self._asked
        return 200, {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": self.seconds,
            "refresh_token": f"refresh-{self._issued}",
            "scope": self._asked,
        }

    def refusal(self, authorization: str, method: str) -> tuple[int, str] | None:
        """The status and the challenge for a request without the right token."""
        token = authorization.removeprefix("Bearer ")
        metadata = f'resource_metadata="{self.issuer}/.well-known/oauth-protected-resource/mcp"'
        if token not in self.tokens or token in self.revoked:
            return 401, f'Bearer {metadata}, scope="{self.scope}"'
        granted = ["", *self.tokens[token].split()]
        if method != "tools/call" or self.call_scope in granted:
            return None
        error = f'error="insufficient_scope", scope="{self.call_scope}"'
        return 403, f"Bearer {error}, {metadata}"


class _Handler(BaseHTTPRequestHandler):
    server_state: LoginServer

    def do_GET(self) -> None:
        state = self.server_state
        path, _, query = self.path.partition("?")
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        state.requests.append((path, asked))
        if path in state.silent:
            state.asked_silent()
            state.answers.wait(60)
        if path in state.moved:
            self.send_json(302, {}, location=state.moved[path])
        elif path in state.status:
            self.send_json(state.status[path], {})
        elif path == "/.well-known/oauth-protected-resource/mcp" and state.resource:
            self.send_json(200, state.resource)
        elif path == "/.well-known/oauth-authorization-server":
            self.send_json(200, state.metadata)
        elif path == "/authorize":
            self.send_json(302, {}, location=state.authorize(asked))
        else:
            self.send_json(404, {})

    def do_POST(self) -> None:
        state = self.server_state
        body = self.rfile.read(int(self.headers["content-length"]))
        path = urlsplit(self.path).path
        if path in state.moved:
            self.send_json(307, {}, location=state.moved[path])
        elif path == "/mcp":
            self.do_mcp(json.loads(body))
        elif path in state.status:
            self.send_json(state.status[path], {"error": "server_error"})
        elif path == "/register":
            client = json.loads(body)
            state.requests.append((path, client))
            if "scope" in client and not state.registers_scopes:
                self.send_json(400, {"error": "invalid_client_metadata"})
                return
            state.registered = client
            self.send_json(201, {**client, "client_id": "registered"})
        else:
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            basic = self.headers.get("authorization", "")
            state.requests.append((path, {**form, "basic": basic} if basic else form))
            self.send_json(*state.token(form))

    def do_mcp(self, asked: dict[str, Any]) -> None:
        state, method = self.server_state, asked["method"]
        state.used.append(self.headers.get("authorization", ""))
        refusal = state.refusal(state.used[-1], method)
        if refusal is not None:
            self.send_json(refusal[0], {}, **{"www-authenticate": refusal[1]})
            return
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **RESULTS[method]}
        self.send_json(200, {"jsonrpc": "2.0", "id": asked["id"], "result": result})

    def send_json(self, status: int, document: Any, **headers: str) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@contextmanager
def login_servers() -> Iterator[Callable[[], LoginServer]]:
    """Makes servers that forget each other, at one address; the newest one answers."""
    handler = type("_Bound", (_Handler,), {})
    with http_server(handler) as url:

        def make() -> LoginServer:
            state = LoginServer(url)
            handler.server_state = state  # type: ignore[attr-defined] # of _Handler
            return state

        yield make
