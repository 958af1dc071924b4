"""The user's part of a login, in a browser: the authorization request, the redirect address, and
checking the answer (PKCE S256, state, iss)."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from ..faults import LoginError
from .discovery import IssuerMetadata

_MAX_REQUEST = 16_384
_READ_SECONDS = 5.0
_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Login</title>"
    "<body style='font-family:sans-serif;margin:4em auto;max-width:30em'><p>{}</p></body></html>"
)
_TAKEN = "The program has received the answer. You can close this page."
_REFUSED = "This answer does not belong to a pending login."


class LoopbackRedirect:
    """Listens on 127.0.0.1 while the user logs in: `async with LoopbackRedirect(uri) as redirect`.

    Port 0 in *uri* means any free port. A request to the path of *uri* is the answer if `accepts`
    returns True for its query; any other request gets an error page, and the wait continues.
    """

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        if parts.scheme != "http" or parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise ValueError(
                f"redirect_uri={uri!r} should be an http address on this machine, such as "
                "'http://127.0.0.1:3030/callback'"
            )
        self._host = parts.hostname
        self._netloc = "[::1]" if self._host == "::1" else self._host
        self._port = parts.port or 0
        self._path = parts.path or "/"
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[dict[str, str]] | None = None
        self.accepts: Callable[[Mapping[str, str]], bool] = bool
        self.refused = 0
        """How many answers from other logins have arrived."""

    @property
    def uri(self) -> str:
        return f"http://{self._netloc}:{self._port}{self._path}"

    async def __aenter__(self) -> LoopbackRedirect:
        self._answer = asyncio.get_running_loop().create_future()
        host = "127.0.0.1" if self._host == "localhost" else self._host
        try:
            self._server = await asyncio.start_server(
                self._serve, host, self._port, limit=_MAX_REQUEST
            )
        except OSError as exc:
            text = f"cannot listen on {self.uri} for the redirect after the login: {exc.strerror}"
            raise LoginError(text) from None
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()

    async def answer(self) -> dict[str, str]:
        """Wait for the answer: the query sent to the redirect address."""
        assert self._answer is not None
        return await asyncio.shield(self._answer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._take(head.partition(b"\r\n")[0].decode("latin-1"))
                body = _PAGE.format(text).encode()
                headers = (
                    f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\n"
                    f"content-length: {len(body)}\r\nconnection: close\r\n"
                    "cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\r\n"
                )
                writer.write(headers.encode() + body)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _take(self, line: str) -> tuple[str, str]:
        method, _, rest = line.partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        if method != "GET" or target.path != self._path:
            return "404 Not Found", "There is nothing here."
        found = dict(parse_qsl(target.query))
        assert self._answer is not None
        if self._answer.done() or not self.accepts(found):
            self.refused += not self._answer.done()
            return "400 Bad Request", _REFUSED
        self._answer.set_result(found)
        return "200 OK", _TAKEN


OpenUrl = Callable[[str], Any]
"""Shows the user a page. Returns None if the browser follows the redirect itself; otherwise, the
address or the code that the user pasted. May be async."""


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """One authorization request, with the secrets for checking its answer."""

    issuer: IssuerMetadata
    client_id: str
    redirect: str
    resource: str
    scopes: tuple[str, ...]
    assume_pkce: bool = False
    state: str = msgspec.field(default_factory=lambda: token_urlsafe(32))
    verifier: str = msgspec.field(default_factory=lambda: token_urlsafe(64))

    def __post_init__(self) -> None:
        issuer = self.issuer
        if not issuer.authorization_endpoint:
            raise LoginError(f"{issuer.issuer} has no page where users log in")
        methods = issuer.code_challenge_methods_supported
        if "S256" not in methods and (methods or not self.assume_pkce):
            hint = "" if methods else "; if you know that it does, write Login(assume_pkce=True)"
            raise LoginError(
                f"{issuer.issuer} does not say that it supports PKCE with S256 "
                f"(code_challenge_methods_supported), and a login without it is not safe{hint}"
            )

    @property
    def url(self) -> str:
        """The page where the user logs in."""
        digest = sha256(self.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "state": self.state,
            "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "resource": self.resource,
        }
        if self.scopes:
            query["scope"] = " ".join(self.scopes)
        if "offline_access" in self.scopes:
            # OpenID Connect issuers send no refresh token without this.
            query["prompt"] = "consent"
        page = self.issuer.authorization_endpoint
        return f"{page}{'&' if urlsplit(page).query else '?'}{urlencode(query)}"

    def is_answer(self, answer: Mapping[str, str]) -> bool:
        """Return whether an answer belongs to this request."""
        return compare_digest(answer.get("state", "").encode(), self.state.encode())

    def code_of(self, answer: Mapping[str, str]) -> str:
        """Return an answer's code; raises LoginError if it has none or is from another issuer."""
        if not self.is_answer(answer):
            raise LoginError("the answer belongs to another login: its state differs; log in again")
        issuer, named = self.issuer.issuer, answer.get("iss")
        if named is None and self.issuer.authorization_response_iss_parameter_supported:
            raise LoginError(f"the answer does not name its issuer, which {issuer} always does")
        # Compare exactly, because an equivalent URL is still a different issuer.
        if named is not None and named != issuer:
            raise LoginError(f"the answer is from the issuer {named!r}, not from {issuer!r}")
        if "error" in answer:
            if answer["error"] == "access_denied":
                raise LoginError("the user did not agree to the login", code="FORBIDDEN")
            reason = f"{answer['error']} {answer.get('error_description', '')}"
            raise LoginError(f"{issuer} refuses the login: {reason}".rstrip())
        if not answer.get("code"):
            raise LoginError("the answer has no code")
        return answer["code"]

    def pasted(self, text: str) -> dict[str, str]:
        """Return the answer in an address or a code that the user pasted."""
        text = text.strip()
        if not text:
            raise LoginError("nothing was pasted, so the login has ended")
        if "://" in text or "code=" in text:
            query = urlsplit(text).query if "://" in text else text.lstrip("?")
            return dict(parse_qsl(query))
        if self.issuer.authorization_response_iss_parameter_supported:
            raise LoginError("paste the whole address, not just the code: it names the issuer")
        # A bare code has no state. The verifier ties it to this login.
        return {"code": text, "state": self.state}


async def call_user(function: Callable[..., Any], *arguments: object) -> object:
    """Call the user's function; a plain one runs in a thread, because it may wait for a person."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    answer: Future[Any] = Future()

    def run() -> None:
        answer.set_running_or_notify_cancel()
        try:
            answer.set_result(function(*arguments))
        except Exception as exc:  # noqa: BLE001 -- any exception is passed to the waiting task
            answer.set_exception(exc)

    # A thread waiting for a person must not keep the program from exiting.
    threading.Thread(target=run, name="answerback-login", daemon=True).start()
    found = await asyncio.wrap_future(answer)
    return await found if inspect.isawaitable(found) else found


def browser(url: str) -> None:
    """Open a page in the user's browser; raises LoginError if there is none."""
    import webbrowser

    if not webbrowser.open(url):
        raise LoginError(
            "there is no browser on this machine; use Login(open_url=paste), which asks for the "
            "address that another browser ends up at"
        )


def paste(url: str) -> str:
    """Ask the user to open a page in any browser and paste the address that it ends up at."""
    sys.stderr.write(
        f"Open this page in a browser, and log in:\n\n  {url}\n\n"
        "The browser then tries to open an address on this machine, which may fail.\n"
    )
    return input("Paste that address here: ")
