"""An issuer on loopback: its metadata and keys over real HTTP, and tokens of every kind."""

from __future__ import annotations

import json
import threading
import time
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from typing import Any

from joserfc import jwk, jws

URL = "https://tools.example.com/mcp"
METADATA = "/.well-known/oauth-authorization-server"


@cache
def ec_key(kid: str = "one") -> Any:
    return jwk.generate_key("EC", "P-256", parameters={"kid": kid})


@cache
def rsa_key(kid: str = "rsa") -> Any:
    return jwk.generate_key("RSA", 2048, parameters={"kid": kid})


class Issuer:
    """Serves a metadata document and a key set; a test changes them as it likes."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.counts: Counter[str] = Counter()
        """The requests by their paths."""
        self.keys: list[Any] = [ec_key(), rsa_key()]
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body: bytes | None = None
        """Sent for the key set instead of the keys."""
        self.hangs = threading.Event()
        """Set lets the key set wait until it is cleared again."""
        self.goes_on = threading.Event()
        self.posted: list[tuple[str, bytes]] = []
        """The header `Authorization` and the body of each POST."""
        self.active: dict[str, Any] | None = None
        """The answer of an introspection."""
        self.metadata: dict[str, Any] = {
            "issuer": url,
            "jwks_uri": f"{url}/jwks",
            "introspection_endpoint": f"{url}/introspect",
        }

    def documents(self, path: str) -> bytes | None:
        if path == METADATA:
            return json.dumps(self.metadata).encode()
        if path == "/introspect":
            return json.dumps(self.active or {"active": False}).encode()
        if path != "/jwks":
            return None
        if self.body is not None:
            return self.body
        return json.dumps({"keys": [key.as_dict(private=False) for key in self.keys]}).encode()

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Good claims with changes; None removes one."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": URL,
            "sub": "alice",
            "client_id": "cli",
            "iat": now,
            "exp": now + 600,
            "scope": "read",
        } | changes
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, key: Any = None, header: dict[str, Any] | None = None, **changes: Any) -> str:
        """A token; without changes it is good."""
        key = key or ec_key()
        algorithm = "RS256" if key.key_type == "RSA" else "ES256"
        first = {"alg": algorithm, "kid": key.kid, "typ": "at+jwt"} | (header or {})
        first = {name: value for name, value in first.items() if value is not None}
        return sign(first, json.dumps(self.claims(**changes)).encode(), key)


def sign(header: dict[str, Any], payload: bytes, key: Any) -> str:
    """A signed token with any header, also one that no library would write."""
    start = b".".join((encode(json.dumps(header).encode()), encode(payload)))
    algorithm = "RS256" if key.key_type == "RSA" else "ES256"
    signature = jws.JWSRegistry.algorithms[algorithm].sign(start, key)
    return b".".join((start, encode(signature))).decode()


def encode(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


class _Handler(BaseHTTPRequestHandler):
    issuer: Issuer

    def do_GET(self) -> None:
        issuer, path = self.issuer, self.path.partition("?")[0]
        issuer.counts[path] += 1
        if path == "/jwks" and issuer.hangs.is_set():
            issuer.goes_on.wait(60)
        found = issuer.documents(path)
        self.send_response(issuer.status if found is not None else 404)
        for name, value in issuer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(found or b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.issuer.posted.append((self.headers["authorization"], body))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def running_issuer(
    base: str = "http://127.0.0.1", tls: SSLContext | None = None
) -> Iterator[Issuer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    issuer = Issuer(f"{base}:{server.server_port}")
    server.RequestHandlerClass = type("_Bound", (_Handler,), {"issuer": issuer})
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        issuer.goes_on.set()
        server.shutdown()
        server.server_close()
        thread.join(60)
