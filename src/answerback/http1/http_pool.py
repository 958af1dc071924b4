"""A pool of HTTP/1.1 connections, with proxies, TLS and cookies; `fetch` sends one request."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from asyncio import BaseEventLoop
from base64 import b64encode
from collections.abc import Mapping
from errno import ECONNREFUSED
from ssl import SSLContext
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

from .http_connection import HttpConnection, HttpFailure, HttpResponse

_CONNECT_SECONDS = 10.0
_KEEP_SECONDS = 4.0
"""How long an idle connection is kept. Many servers close theirs after 5 seconds."""
_MAX_IDLE = 20
_MAX_ROUTES = 64
_SAFE = "/:@!$&'()*+,;=-._~%?"
_USER_AGENT = f"answerback/{sys.modules['answerback'].__version__}"
_IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})


class HttpUrl(msgspec.Struct, frozen=True):
    """The parts of a URL that a request needs."""

    scheme: str
    host: str
    port: int
    netloc: str
    """The host and the port, as in the `Host` header."""
    target: str
    """The path and the query."""
    login: str
    """The user and the password from the URL, for the `Authorization` header."""

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


def parse_url(url: str) -> HttpUrl:
    """Parse a URL; raises HttpFailure, leaving out the URL because it may contain secrets."""
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode()
    except ValueError as exc:
        # The exception's text may quote part of the password.
        reason = "its host or port is malformed" if "@" in url else str(exc)
        raise HttpFailure(f"it is not a URL: {reason}", may_have_run=False) from None
    if scheme not in ("http", "https") or not host or any(each <= " " for each in host):
        raise HttpFailure("it is not the URL of an HTTP server", may_have_run=False)
    usual = 443 if scheme == "https" else 80
    name = f"[{host}]" if ":" in host else host
    target = quote(parts.path or "/", safe=_SAFE)
    if parts.query:
        target += "?" + quote(parts.query, safe=_SAFE)
    login = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        login = "Basic " + b64encode(pair.encode()).decode()
    netloc = name if port in (None, usual) else f"{name}:{port}"
    return HttpUrl(scheme, host, usual if port is None else port, netloc, target, login)


class HttpPool:
    """Sends requests and reuses idle connections."""

    def __init__(self, *, uses_proxies: bool = True, tls: SSLContext | None = None) -> None:
        self._uses_proxies = uses_proxies
        self._idle: dict[tuple[str, str, int], list[HttpConnection]] = {}
        self._open: set[HttpConnection] = set()
        self._routes: dict[str, tuple[HttpUrl, HttpUrl | None]] = {}
        self._tls = tls
        self._cookies = Cookies()
        self.is_closed = False

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> HttpResponse:
        """Send a request, with lower-case header names; raises HttpFailure."""
        route = self._routes.get(url)
        if route is None:
            # Most URLs are reused, so their parts and proxies are cached.
            where = parse_url(url)
            if len(self._routes) >= _MAX_ROUTES:
                self._routes.clear()
            route = self._routes[url] = (where, proxy_of(where) if self._uses_proxies else None)
        where, proxy = route
        head = self._request_head(method, where, headers, body, proxy)
        connection = self._idle_connection(where)
        if connection is not None:
            try:
                found = await connection.request(method, head, body)
            except HttpFailure as exc:
                # The server may close an idle connection at any time.
                may_repeat = method in _IDEMPOTENT or not exc.may_have_run
                if self.is_closed or not may_repeat:
                    raise
                connection = None
        if connection is None:
            connection = await self._connected(where, proxy)
            found = await connection.request(method, head, body)
        if found.cookies:
            self._cookies.keep(where, found.cookies)
        return HttpResponse(connection, found, url)

    def close(self) -> None:
        self.is_closed = True
        for connection in list(self._open):
            connection.close()
        self._open.clear()
        self._idle.clear()

    def _request_head(
        self,
        method: str,
        where: HttpUrl,
        headers: Mapping[str, str],
        body: bytes | None,
        proxy: HttpUrl | None,
    ) -> bytes:
        target = where.target
        added = {"host": where.netloc, "accept-encoding": "gzip", "user-agent": _USER_AGENT}
        if where.login:
            added["authorization"] = where.login
        if proxy is not None and where.scheme == "http":
            target = f"http://{where.netloc}{target}"
            if proxy.login:
                added["proxy-authorization"] = proxy.login
        if self._cookies and (cookies := self._cookies.header(where)):
            added["cookie"] = cookies
        if body is not None or method == "POST":
            added["content-length"] = str(len(body or b""))
        return encode_head(method, target, {**added, **headers})

    def _idle_connection(self, where: HttpUrl) -> HttpConnection | None:
        idle = self._idle.get(where.origin)
        now = asyncio.get_running_loop().time()
        while idle:
            connection = idle.pop()
            seconds = connection.keep_seconds
            limit = _KEEP_SECONDS if seconds is None else min(_KEEP_SECONDS, seconds - 1)
            if now - connection.idle_since < limit and not connection.is_stale():
                return connection
            self._forget(connection)
        return None

    def _forget(self, connection: HttpConnection) -> None:
        connection.close()
        self._open.discard(connection)

    async def _connected(self, where: HttpUrl, proxy: HttpUrl | None) -> HttpConnection:
        """Open a connection to a server, through the proxy if there is one."""
        self._open = {each for each in self._open if not each.is_closed}
        first = proxy or where
        connection = HttpConnection(lambda idle: self._keep(where, idle))
        loop = asyncio.get_running_loop()
        # uvloop tries the addresses one after another; it does not support this option.
        # An IP address needs no race; asyncio leaks a socket if a race is cancelled.
        is_address = ":" in first.host or first.host.replace(".", "").isdigit()
        can_race = isinstance(loop, BaseEventLoop) and not is_address
        race: Any = {"happy_eyeballs_delay": 0.25} if can_race else {}
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                tls = None
                if "https" in (first.scheme, where.scheme):
                    if self._tls is None:
                        # This loads hundreds of certificates.
                        self._tls = await asyncio.to_thread(tls_context)
                    tls = self._tls
                await loop.create_connection(
                    lambda: connection,
                    first.host,
                    first.port,
                    ssl=tls if first.scheme == "https" else None,
                    **race,
                )
                if proxy is not None and where.scheme == "https":
                    await _open_tunnel(connection, where, proxy, tls)
        except BaseException as exc:
            connection.close()
            if not isinstance(exc, OSError | HttpFailure | ValueError):
                raise
            text = f"cannot connect to {where.scheme}://{where.netloc}: {_reason(exc)}"
            raise HttpFailure(text, may_have_run=False) from None
        if self.is_closed:
            connection.close()
            raise HttpFailure("the connection was closed", may_have_run=False)
        self._open.add(connection)
        return connection

    def _keep(self, where: HttpUrl, connection: HttpConnection) -> None:
        idle = self._idle.setdefault(where.origin, [])
        if self.is_closed or len(idle) >= _MAX_IDLE:
            self._forget(connection)
            return
        connection.idle_since = asyncio.get_running_loop().time()
        idle.append(connection)


def encode_head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """Encode a request line and headers; raises HttpFailure if they are malformed."""
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    text = "".join((f"{method} {target} HTTP/1.1\r\n", *lines, "\r\n"))
    ends = len(lines) + 2
    if text.count("\n") != ends or text.count("\r") != ends or "\0" in text:
        raise HttpFailure("a header has a line break", may_have_run=False)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        text = "a header has characters that HTTP cannot send"
        raise HttpFailure(text, may_have_run=False) from None


async def _open_tunnel(
    connection: HttpConnection, where: HttpUrl, proxy: HttpUrl, tls: SSLContext | None
) -> None:
    """Ask the proxy for a tunnel to the server and start TLS in it."""
    host = f"[{where.host}]" if ":" in where.host else where.host
    target = f"{host}:{where.port}"
    headers = {"host": target}
    if proxy.login:
        headers["proxy-authorization"] = proxy.login
    head = await connection.request("CONNECT", encode_head("CONNECT", target, headers), None)
    if head.status >= 300:
        raise OSError(f"the proxy {proxy.netloc} answered with HTTP status {head.status}")
    assert connection.transport is not None
    assert tls is not None
    loop = asyncio.get_running_loop()
    transport = await loop.start_tls(
        connection.transport, connection, tls, server_hostname=where.host
    )
    if transport is None:
        raise OSError("the tunnel was closed")
    connection.connection_made(transport)


def tls_context() -> SSLContext:
    """Load the trusted certificates: the system's, or those in `SSL_CERT_FILE`."""
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if sys.platform == "darwin" and not paths.cafile and not paths.capath:
        # Python from python.org has no certificates until the user installs them.
        try:
            import certifi
        except ModuleNotFoundError:
            pass
        else:
            context.load_verify_locations(cafile=certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context


def proxy_of(where: HttpUrl) -> HttpUrl | None:
    """Return the proxy for a URL, from the environment; raises HttpFailure."""
    is_named = any(name.lower().endswith("_proxy") for name in os.environ)
    if not is_named and sys.platform not in ("darwin", "win32"):
        return None
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    url = proxies.get(where.scheme) or proxies.get("all")
    if not url or proxy_bypass(f"{where.host}:{where.port}") or proxy_bypass(where.host):
        return None
    try:
        return parse_url(url if "://" in url else f"http://{url}")
    except HttpFailure:
        text = "the proxy set in the environment is not an HTTP proxy"
        raise HttpFailure(text, may_have_run=False) from None


class Cookies:
    """The servers' cookies; a load balancer uses them to find the right server."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str, int], dict[str, tuple[str, str]]] = {}

    def __bool__(self) -> bool:
        return bool(self._values)

    def keep(self, where: HttpUrl, headers: tuple[str, ...]) -> None:
        """Keep a response's cookies; they are sent only to the same origin."""
        cookies = self._values.setdefault(where.origin, {})
        for header in headers:
            pair, *attributes = header.split(";")
            name, equals, value = pair.strip().partition("=")
            found = {
                key.strip().lower(): text.strip()
                for key, _, text in (each.partition("=") for each in attributes)
            }
            if not equals or not name:
                continue
            if found.get("max-age", "1").lstrip("-") == "0" or "-" in found.get("max-age", ""):
                cookies.pop(name, None)
            elif len(cookies) < 50:
                path = found.get("path", "/")
                cookies[name] = (value, path if path.startswith("/") else "/")

    def header(self, where: HttpUrl) -> str:
        """Return the value of the `Cookie` header; empty if there are none for this path."""
        cookies = self._values.get(where.origin, {})
        path = where.target.partition("?")[0]
        return "; ".join(
            f"{name}={value}"
            for name, (value, prefix) in cookies.items()
            if path == prefix or path.startswith(prefix.removesuffix("/") + "/")
        )


def _reason(exc: Exception) -> str:
    """Return why a connection could not be opened."""
    text = str(exc) or type(exc).__name__
    if isinstance(exc, TimeoutError):
        return "it took too long"
    # The error for several addresses contains their error messages, but no errno.
    is_refused = isinstance(exc, ConnectionRefusedError) or f"[Errno {ECONNREFUSED}]" in text
    return "nothing is listening there; is the server running?" if is_refused else text


class BodyTooLarge(HttpFailure):
    """A response's body is larger than the caller allows."""


class Fetched(msgspec.Struct, frozen=True):
    """A response with its body; its header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


async def fetch(
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: bytes | None = None,
    *,
    limit: int,
    uses_proxies: bool = True,
    tls: SSLContext | None = None,
) -> Fetched:
    """Send a request without following redirects.

    Raises HttpFailure, or BodyTooLarge if the body exceeds *limit* bytes. Time limits are
    up to the caller. Header names are in lower case.
    """
    pool = HttpPool(uses_proxies=uses_proxies, tls=tls)
    try:
        response = await pool.send(method, url, headers, content)
        body = await response.read_up_to(limit + 1)
    finally:
        pool.close()
    if len(body) > limit:
        raise BodyTooLarge(f"the response is larger than {limit} bytes")
    return Fetched(response.status_code, response.headers, body)
