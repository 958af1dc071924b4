"""RestServer: a server without MCP, whose tools are called by plain HTTP requests.

A tool is called by `POST /NAME`; if the server has no such page, by `POST /functions/NAME`, and
then by `POST /message` with a `tools/call` of MCP in the body.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from ..dialects import HttpReply
from ..errors import ToolError
from ..reading import read
from ..reply import Reply, failure
from ..versions import LATEST_STATEFUL
from .eras import ServerFacts
from .faults import TIMED_OUT, ConnectError, HttpRefused, NoAnswer, failed_reply, raised_error
from .listed import (
    FilledPrompt,
    RemotePrompt,
    RemoteResource,
    RemoteTemplate,
    RemoteTool,
    read_entries,
)
from .results import KnownTool, known_tools
from .targets import ServerEntry
from .user_handlers import OnProgress

if TYPE_CHECKING:
    from .transports.http_requests import ClientAuth

_JSON = {"accept": "application/json", "content-type": "application/json"}
_NO_PAGE = frozenset({404, 405})
_ABSENT = "plain REST has tools alone"


class RestServer:
    """A server whose tools are HTTP pages; it has no resources and no prompts."""

    def __init__(
        self,
        entry: ServerEntry,
        auth: ClientAuth | None,
        timeout: float | None = 60.0,
        *,
        strict: bool = False,
    ) -> None:
        from .transports.http_requests import HttpRequests

        self._base = entry.url.rstrip("/")
        self._http = HttpRequests(self._base, entry.headers, auth)
        self._timeout = timeout
        self._strict = strict
        self._known: dict[str, KnownTool] = {}
        """The tools of the list that was read last."""
        self._forms: dict[str, int] = {}
        """Which of the three forms of request a tool takes, once it is known."""
        self.info = ServerFacts(version=LATEST_STATEFUL, info={"name": self._base})

    async def open(self) -> None:
        """Ask for the list of functions; raises ConnectError if the server cannot be reached."""
        self._http.open()
        try:
            self._keep(await self._get("/functions"))
        except HttpRefused:
            pass  # The server has no list; its tools can be called all the same.
        except NoAnswer as exc:
            await self.close()
            raise ConnectError(f"cannot connect to {self._base}: {exc}") from None

    async def close(self) -> None:
        await self._http.close()

    async def tools(self) -> list[RemoteTool]:
        """The tools that `GET /functions` lists; none if there is no such page."""
        try:
            return self._keep(await self._get("/functions"))
        except HttpRefused as exc:
            if exc.status in _NO_PAGE:
                return []
            raise raised_error(exc) from None
        except NoAnswer as exc:
            raise raised_error(exc) from None

    def _keep(self, page: bytes) -> list[RemoteTool]:
        """The tools of a list, which are known from now on."""
        try:
            found = msgspec.json.decode(page)
        except ValueError:
            return []
        listed = found.get("functions") if isinstance(found, dict) else found
        tools = read_entries(listed if isinstance(listed, list) else [], RemoteTool)
        self._known = known_tools(tools)
        return tools

    async def resources(self) -> list[RemoteResource]:
        return []

    async def templates(self) -> list[RemoteTemplate]:
        return []

    async def prompts(self) -> list[RemotePrompt]:
        return []

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: Any
    ) -> Reply[Any]:
        """Call a tool; a connection that fails and a time-out are failed replies."""
        body = {**(arguments or {}), **named}
        try:
            async with asyncio.timeout(self._timeout):
                return await self._call(name, body)
        except TimeoutError:
            text = f"the server did not answer within {self._timeout:g} seconds"
            return failed_reply(NoAnswer(text, code=TIMED_OUT))
        except NoAnswer as error:
            return failed_reply(error)

    async def read(self, uri: str) -> Reply[Any]:
        return failure(_ABSENT, "NOT_FOUND")

    async def prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, /, **named: str
    ) -> FilledPrompt:
        raise ToolError(_ABSENT, "NOT_FOUND")

    def options(
        self, *, timeout: float | None = None, progress: OnProgress | None = None
    ) -> RestServer:
        changed = copy.copy(self)
        changed._timeout = self._timeout if timeout is None else timeout
        return changed

    async def _call(self, name: str, body: dict[str, Any]) -> Reply[Any]:
        """Try the forms of request in their order, until the server has the page."""
        page = quote(name, safe="")
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        forms: list[tuple[str, dict[str, Any]]] = [
            (f"/{page}", body),
            (f"/functions/{page}", body),
            ("/message", {**message, "params": {"name": name, "arguments": body}}),
        ]
        first = self._forms.get(name, 0)
        found: HttpReply | None = None
        for number in range(first, len(forms)):
            path, sent = forms[number]
            answer = await self._post(path, sent)
            # A reply that a tool wrote has a code of its own; a missing page has none.
            if answer.status in _NO_PAGE and not _is_tools_reply(answer):
                found = found or answer
                continue
            self._forms[name] = number
            known = self._known.get(name)
            return read(answer) if known is None else known.reply(answer, strict=self._strict)
        assert found is not None
        return read(found)

    async def _get(self, path: str) -> bytes:
        async with self._http.stream("GET", _JSON, url=self._base + path) as response:
            body: bytes = await response.aread()
            if response.status_code >= 300:
                raise HttpRefused(response.status_code, body[:500].decode(errors="replace"))
            return body

    async def _post(self, path: str, body: dict[str, Any]) -> HttpReply:
        encoded = msgspec.json.encode(body)
        async with self._http.stream("POST", _JSON, encoded, self._base + path) as response:
            return HttpReply(
                response.status_code,
                await response.aread(),
                response.headers.get("content-type", "").partition(";")[0],
                tuple(response.headers.items()),
            )


def _is_tools_reply(answer: HttpReply) -> bool:
    code = answer.header("x-error-code")
    return code is not None and code not in ("ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED")
