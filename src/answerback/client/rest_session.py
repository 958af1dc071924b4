"""RestSession: a server without MCP, whose tools are called with plain HTTP requests.

A tool is called with `POST /NAME`; if the server has no such endpoint, with `POST /functions/NAME`,
and then with `POST /message` and an MCP `tools/call` in the body.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote, urljoin

import msgspec

from ..core.clocks import Deadline
from ..core.json_value import JsonObject
from ..core.limits import LARGE, MAX_BLOCKS, MAX_LIST_BYTES, ReceivedLimits
from ..core.reply import Reply, failure
from ..core.secrets import mask_url
from ..core.versions import LATEST_STATEFUL
from ..dialects import HttpReply
from ..errors import NotFound
from ..reading.read_reply import Hints, read_with
from ..types.json_text import has_more_marks
from .call_options import ClientOptions, reply_under_policy, under_policy
from .faults import (
    TIMED_OUT,
    TOO_LARGE,
    ConnectError,
    HttpRefused,
    NoAnswer,
    check_numbers,
    raised_error,
)
from .frames import ServerFacts
from .http_requests import ClientAuth, HttpRequests
from .results import KnownTool, RemoteTool, failed_call, known_tools, read_entries
from .targets import ServerEntry

T = TypeVar("T", bound=msgspec.Struct)
_JSON = {"accept": "application/json", "content-type": "application/json"}
_POLL_SECONDS = 0.1
"""Seconds between polls of a task; most of the waiting happens on the server."""
_NO_PAGE = frozenset({404, 405})
_NO_PAGE_CODES = (None, "ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED")
_ABSENT = "a plain REST server only has tools: no resources, prompts or completions"


class RestSession:
    """Sends a RemoteServer's requests as HTTP requests; only tools are supported."""

    is_opening = False
    """Always False, because requests need no open connection."""

    def __init__(
        self, entry: ServerEntry, auth: ClientAuth | None, limits: ReceivedLimits, *, strict: bool
    ) -> None:
        self.base = entry.url.rstrip("/")
        self.info = ServerFacts(version=LATEST_STATEFUL, info={"name": self.base})
        self.known: dict[str, KnownTool] = {}
        """The tools from the last list."""
        self._http = HttpRequests(self.base, entry.headers, auth)
        self._strict = strict
        self._limits = limits
        self._forms: dict[str, int] = {}
        """Which of the three request forms a tool accepts, once known."""

    async def entries(self, kind: type[T], options: ClientOptions) -> list[T]:
        """Return the tools that `GET /functions` lists; none if there is no such endpoint."""
        return await under_policy(options, self._list) if kind is RemoteTool else []

    async def call(self, name: str, given: JsonObject, options: ClientOptions) -> Reply[Any]:
        """Call a tool; a failed connection or a timeout results in a failed reply."""
        known = self.known.get(name)
        is_safe = known is not None and known.tool.is_safe_to_repeat

        async def once(deadline: Deadline) -> Reply[Any]:
            try:
                async with deadline.limit():
                    return await self._call(name, given)
            except TimeoutError:
                return failed_call(_late(deadline, f" the call to {name!r}"), known)
            except NoAnswer as error:
                return failed_call(error, known)

        return await reply_under_policy(options, once, may_repeat=is_safe)

    async def start_task(self, name: str, given: JsonObject, options: ClientOptions) -> NoReturn:
        raise TypeError("start_task needs a server that speaks MCP")

    async def ping(self, options: ClientOptions) -> None:
        await under_policy(options, self._list)

    async def read(self, uri: str, options: ClientOptions) -> Reply[Any]:
        return failure(_ABSENT, "NOT_FOUND")

    async def result(
        self, method: str, params: Mapping[str, Any], options: ClientOptions
    ) -> JsonObject:
        raise NotFound(_ABSENT)

    async def subscribe(self, uri: str, options: ClientOptions, *, wanted: bool) -> None:
        raise NotFound(_ABSENT)

    async def open(self) -> None:
        """Fetch the list of functions; raises ConnectError if the server cannot be reached."""
        self._http.open()
        try:
            await self._keep(await self._get("/functions"))
        except HttpRefused:
            pass  # The server has no list, but its tools can still be called.
        except NoAnswer as exc:
            await self.close()
            raise ConnectError(f"cannot connect to {mask_url(self.base)}: {exc}") from None

    open_shared = open

    async def close(self) -> None:
        await self._http.close()

    async def _list(self, deadline: Deadline) -> list[Any]:
        try:
            async with deadline.limit():
                return await self._keep(await self._get("/functions"))
        except TimeoutError:
            raise raised_error(_late(deadline)) from None
        except NoAnswer as exc:
            if isinstance(exc, HttpRefused) and exc.status in _NO_PAGE:
                return []
            raise raised_error(exc) from None

    async def _keep(self, page: bytes) -> list[RemoteTool]:
        """Read and remember a list's tools; raises NoAnswer if there are too many."""
        if len(page) <= LARGE:
            tools, self.known = self._read_tools(page)
        else:
            tools, self.known = await asyncio.to_thread(self._read_tools, page)
        return tools

    def _read_tools(self, page: bytes) -> tuple[list[RemoteTool], dict[str, KnownTool]]:
        if len(page) > MAX_LIST_BYTES or has_more_marks(page, self._limits.values):
            raise NoAnswer("the list of functions is too large", code=TOO_LARGE)
        try:
            found = msgspec.json.decode(page)
        except (ValueError, RecursionError):
            return [], self.known
        listed = found.get("functions") if isinstance(found, dict) else found
        tools = read_entries(listed[:MAX_BLOCKS] if isinstance(listed, list) else [], RemoteTool)
        return tools, known_tools(tools, self._limits)

    async def _call(self, name: str, body: JsonObject) -> Reply[Any]:
        """Try the request forms in order, until the server has an endpoint for one."""
        page = quote(name, safe="")
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        forms: list[tuple[str, JsonObject]] = [
            (f"/{page}", body),
            (f"/functions/{page}", body),
            ("/message", {**message, "params": {"name": name, "arguments": body}}),
        ]
        first = self._forms.get(name, 0)
        found: HttpReply | None = None
        for number in range(first, len(forms)):
            path, sent = forms[number]
            url = self.base + path
            encoded = msgspec.json.encode(sent)
            if b"null" in encoded:
                check_numbers(body)
            answer = await self._send("POST", url, _JSON, encoded)
            # A tool's reply has its own code; a missing endpoint has none, or the server's.
            code = answer.header("x-error-code")
            if answer.status in _NO_PAGE and code in _NO_PAGE_CODES:
                found = found or answer
                continue
            self._forms[name] = number
            if answer.status == 202:
                answer = await self._finished(answer)
            return await self._reply(name, answer)
        assert found is not None
        return await self._reply("", found)

    async def _reply(self, name: str, answer: HttpReply) -> Reply[Any]:
        """Read a response, in a thread if it is large."""
        known = self.known.get(name)

        def read_it() -> Reply[Any]:
            if known is None:
                return read_with(answer, Hints(limits=self._limits))
            return known.reply(answer, strict=self._strict)

        return read_it() if len(answer.body) <= LARGE else await asyncio.to_thread(read_it)

    async def _finished(self, made: HttpReply) -> HttpReply:
        """Wait for the task named in a response and return its final response.

        The task is cancelled if the caller is cancelled or stops waiting.
        """
        path = made.header("location") or ""
        if not path.startswith("/") or path.startswith("//"):
            return made
        url, answer = urljoin(self.base, path), made
        try:
            while answer.status == 202 and b'"input_required"' not in answer.body:
                # A server that ignores `Prefer` responds immediately.
                await asyncio.sleep(_POLL_SECONDS)
                headers = {**_JSON, "Prefer": "wait=20"}
                answer = await self._send("GET", url + "/result", headers)
        except asyncio.CancelledError:
            with suppress(NoAnswer, TimeoutError):
                async with asyncio.timeout(1):
                    await self._send("DELETE", url, _JSON)
            raise
        return answer

    async def _get(self, path: str) -> bytes:
        async with self._http.stream("GET", _JSON, url=self.base + path) as response:
            if response.status_code >= 300:
                raise self._http.refusal(response, await self._http.refusal_body(response))
            return await response.aread()

    async def _send(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None = None
    ) -> HttpReply:
        async with self._http.stream(method, headers, body, url) as response:
            found: bytes = await response.aread()
            status = response.status_code
            if 300 <= status < 400:
                raise self._http.refusal(response)
            return HttpReply(
                status,
                found if status < 300 else self._http.sent.masked(found),
                response.headers.get("content-type", "").partition(";")[0],
                tuple(response.headers.items()),
            )


def _late(deadline: Deadline, what: str = "") -> NoAnswer:
    text = f"the server did not answer{what} within {deadline.seconds:g} seconds"
    return NoAnswer(text, code=TIMED_OUT)
