"""Answers MCP requests for one App, whichever wire they came by."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ..call import Call, Handler, settled
from ..dialects import mcp as dialect
from ..dialects.blocks import project_block, write_block
from ..peer import NeedsInput
from ..reply import Reply
from ..types.problems import InvalidOutput
from ..versions import LATEST_LEGACY, LEGACY, MODERN, Version
from . import params
from .completion import complete
from .entries import prompt_entry, resource_entry, tool_entry
from .exchange import Exchange
from .messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    Request,
    RpcError,
    error_frame,
    result_frame,
)
from .pages import page
from .session import Client, Session

if TYPE_CHECKING:
    from ..app import App
    from ..content import Embedded
    from ..paths import Paths
    from ..resource import Resource
    from ..seal import Sealer

_encode = msgspec.json.Encoder().encode
SERVER_INFO = params.PREFIX + "serverInfo"


class Engine:
    """One for each wire; it keeps nothing of any client."""

    def __init__(self, app: App, paths: Paths, sealer: Callable[[], Sealer]) -> None:
        self._app = app
        self._paths = paths
        self._sealer = sealer
        self._methods: dict[str, Callable[[Exchange, msgspec.Raw], Awaitable[bytes]]] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "server/discover": self._discover,
        }

    async def respond(self, request: Request, exchange: Exchange) -> bytes:
        """The frame that answers a request; whatever happens, there is one."""
        try:
            return result_frame(request.id, await self.answer(request, exchange))
        except RpcError as error:
            return error_frame(request.id, error)
        except Exception:  # noqa: BLE001 -- a fault of ours ends one request, not the server
            log_fault(request.method)
            return error_frame(request.id, RpcError(INTERNAL_ERROR, "Internal error"))

    async def answer(self, request: Request, exchange: Exchange) -> bytes:
        """The result of a request that needs no session; raises RpcError."""
        method = self._methods.get(request.method)
        if method is None or not self._offers(request.method, exchange.version):
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
        return await method(exchange, request.params)

    def initialize(self, raw: msgspec.Raw) -> tuple[Session, bytes]:
        """Open a legacy session; a version we do not speak is answered with our newest."""
        asked = params.read(raw, params.Initialize)
        version = LEGACY.get(asked.version, LATEST_LEGACY)
        result: dict[str, Any] = {
            "protocolVersion": version.name,
            "capabilities": self.capabilities(version),
            "serverInfo": self.server_info(version),
        }
        if self._app.description:
            result["instructions"] = self._app.description
        client = Client.of(asked.capabilities, elicitation=version.elicitation)
        return Session(version, client), _encode(result)

    async def _discover(self, exchange: Exchange, _: msgspec.Raw) -> bytes:
        version = exchange.version
        result: dict[str, Any] = {
            "resultType": "complete",
            "supportedVersions": sorted(MODERN, reverse=True),
            "capabilities": self.capabilities(version),
        }
        if self._app.description:
            result["instructions"] = self._app.description
        return self._finish(result, version, cacheable=True)

    def capabilities(self, version: Version) -> dict[str, Any]:
        """Exactly what is served: what is not said here answers that there is no such method."""
        found: dict[str, Any] = {"tools": {"listChanged": True}}
        if self._app.resources:
            found["resources"] = {"listChanged": True, "subscribe": True}
        if self._app.prompts:
            found["prompts"] = {"listChanged": True}
        if version.completions and (self._app.resources or self._app.prompts):
            found["completions"] = {}
        found["logging"] = {}
        return found

    def server_info(self, version: Version) -> dict[str, Any]:
        info: dict[str, Any] = {"name": self._app.name, "version": self._app.version}
        if version.titles and self._app.title:
            info["title"] = self._app.title
        return info

    def _offers(self, method: str, version: Version) -> bool:
        family = method.partition("/")[0]
        if family == "tools":
            return True
        if family == "server":
            return version.modern
        capability = "completions" if family == "completion" else family
        return capability in self.capabilities(version) or (
            # Older versions complete without saying so.
            family == "completion" and not version.completions
        )

    async def _list_tools(self, exchange: Exchange, raw: msgspec.Raw) -> bytes:
        return self._list("tools", list(self._app.tools.values()), tool_entry, exchange, raw)

    async def _list_resources(self, exchange: Exchange, raw: msgspec.Raw) -> bytes:
        fixed = [each for each in self._app.resources.values() if each.template is None]
        return self._list("resources", fixed, resource_entry, exchange, raw)

    async def _list_templates(self, exchange: Exchange, raw: msgspec.Raw) -> bytes:
        open_ = [each for each in self._app.resources.values() if each.template is not None]
        return self._list("resourceTemplates", open_, resource_entry, exchange, raw)

    async def _list_prompts(self, exchange: Exchange, raw: msgspec.Raw) -> bytes:
        return self._list("prompts", list(self._app.prompts.values()), prompt_entry, exchange, raw)

    def _list(
        self,
        key: str,
        items: list[Any],
        entry: Callable[[Any, Version], dict[str, Any]],
        exchange: Exchange,
        raw: msgspec.Raw,
    ) -> bytes:
        shown, after = page(items, params.read(raw, params.Page).cursor)
        result: dict[str, Any] = {key: [entry(item, exchange.version) for item in shown]}
        if after is not None:
            result["nextCursor"] = after
        return self._finish(result, exchange.version, cacheable=True)

    async def _call_tool(self, exchange: Exchange, raw: msgspec.Raw) -> bytes:
        asked = params.read(raw, params.CallTool)
        prefix = self._app.contract.tool_prefix
        tool = self._app.tools.get(asked.name[len(prefix) :])
        if tool is None or not asked.name.startswith(prefix):
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {asked.name}")
        arguments = bytes(asked.arguments)
        if not arguments.lstrip().startswith(b"{"):
            raise RpcError(INVALID_PARAMS, "arguments must be an object")
        call = Call(tool.name, arguments, exchange, wire="mcp")
        outcome = await self._run("tool", self._paths.tools, call, exchange, raw)
        if isinstance(outcome, bytes):
            return outcome
        result = dialect.write(outcome, tool.shape, tool.contract, exchange.version)
        return result if not exchange.version.modern else self._signed(result)

    async def _run(
        self, kind: str, path: Handler, call: Call, exchange: Exchange, raw: msgspec.Raw
    ) -> Reply[Any] | bytes:
        """The reply, or the result that asks the client for more."""
        exchange.begin(call)
        if not exchange.version.modern:
            return settled(await path(call))
        # Only a modern client pays for what sealing needs.
        from .rounds import input_required, recall

        request = b"%b\0%b\0%b" % (kind.encode(), call.name.encode(), call.arguments)
        recall(exchange, raw, request, self._sealer())
        outcome = await path(call)
        if isinstance(outcome, NeedsInput):
            asking = input_required(exchange, outcome, request, self._sealer())
            return self._finish(asking, exchange.version)
        return outcome

    async def _read_resource(self, exchange: Exchange, raw: msgspec.Raw) -> bytes:
        uri = params.read(raw, params.ReadResource).uri
        resource, arguments = self._find_resource(uri, exchange.version)
        call = Call(resource.uri, arguments, exchange, wire="mcp")
        reply = await self._run("resource", self._paths.resources, call, exchange, raw)
        if isinstance(reply, bytes):
            return reply
        if reply.error is not None:
            if reply.error.row.status == 404:
                raise _no_resource(uri, exchange.version)
            raise RpcError(_code(reply.error.row.status), reply.error.message)
        from ..resource import contents_of

        try:
            bodies = contents_of(resource, uri, reply)
        except InvalidOutput as exc:
            raise RpcError(INTERNAL_ERROR, f"Invalid output: {exc}") from None
        contents = [_content(body, exchange.version) for body in bodies]
        return self._finish({"contents": contents}, exchange.version, cacheable=True)

    def _find_resource(self, uri: str, version: Version) -> tuple[Resource, bytes]:
        exact = self._app.resources.get(uri)
        for resource in [exact] if exact else self._app.resources.values():
            arguments = resource.arguments_for(uri)
            if arguments is not None:
                return resource, arguments
        raise _no_resource(uri, version)

    async def _get_prompt(self, exchange: Exchange, raw: msgspec.Raw) -> bytes:
        asked = params.read(raw, params.GetPrompt)
        prompt = self._app.prompts.get(asked.name)
        if prompt is None:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {asked.name}")
        arguments = _encode(prompt.from_strings(list(asked.arguments.items())))
        call = Call(prompt.name, arguments, exchange, wire="mcp")
        reply = await self._run("prompt", self._paths.prompts, call, exchange, raw)
        if isinstance(reply, bytes):
            return reply
        if reply.error is not None:
            raise RpcError(_code(reply.error.row.status), reply.error.message)
        roles = reply.meta["roles"]
        blocks = [write_block(project_block(block, exchange.version)) for block in reply.content]
        result: dict[str, Any] = {
            "messages": [
                {"role": role, "content": block} for role, block in zip(roles, blocks, strict=True)
            ]
        }
        if prompt.description:
            result["description"] = prompt.description
        return self._finish(result, exchange.version)

    async def _complete(self, exchange: Exchange, raw: msgspec.Raw) -> bytes:
        asked = params.read(raw, params.Complete)
        result = {"completion": await complete(self._app, self._paths, asked, exchange)}
        return self._finish(result, exchange.version)

    def _finish(
        self, result: dict[str, Any], version: Version, *, cacheable: bool = False
    ) -> bytes:
        """The result with what every modern result carries."""
        if not version.modern:
            return _encode(result)
        result.setdefault("resultType", "complete")
        if cacheable:
            result |= {"ttlMs": 0, "cacheScope": "private"}
        result["_meta"] = {SERVER_INFO: self.server_info(version)}
        return _encode(result)

    def _signed(self, result: bytes) -> bytes:
        """A tool's result ends in its `_meta`, and that never is empty."""
        info = _encode(self.server_info(LATEST_LEGACY))
        return b'%b,"%b":%b}}' % (result[:-2], SERVER_INFO.encode(), info)


def _content(body: Embedded, version: Version) -> dict[str, Any]:
    """A body as it is read by itself: its `_meta` stands beside it, not around it."""
    block = write_block(project_block(body, version))
    content: dict[str, Any] = block["resource"]
    return content | ({"_meta": block["_meta"]} if "_meta" in block else {})


def _no_resource(uri: str, version: Version) -> RpcError:
    code = INVALID_PARAMS if version.modern else RESOURCE_NOT_FOUND
    return RpcError(code, f"Resource not found: {uri}", {"uri": uri})


def _code(status: int) -> int:
    """A prompt or resource has no way to fail but an error of the protocol."""
    return INVALID_PARAMS if 400 <= status < 500 else INTERNAL_ERROR


def log_fault(method: str) -> None:
    import logging

    logging.getLogger("answerback").exception("a fault of Answerback's own in %s", method)
