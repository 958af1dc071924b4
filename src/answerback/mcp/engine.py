"""Answers MCP requests for one App, whichever wire they came by."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from ..calls.pipeline import Call, Outcome, settled
from ..dialects import mcp as dialect
from ..dialects.mcp_blocks import project_block, write_block
from ..reply import Reply
from ..shape import RESULT
from ..types.problems import InvalidOutput
from . import params
from .completion import complete
from .listing import LISTS, one_page
from .mcp_peer import Exchange
from .messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    Params,
    Request,
    RpcError,
    error_frame,
    result_frame,
)
from .server_info import About

if TYPE_CHECKING:
    from ..app import App
    from ..calls.handlers import Paths
    from ..content import Embedded
    from ..tools.resource import Resource
    from ..tools.tool import Tool
    from ..versions import Version
    from .signing import Sealer

_encode = msgspec.json.Encoder().encode


class Engine:
    """One for each wire; it keeps nothing of any client."""

    def __init__(self, app: App, paths: Paths, sealer: Callable[[], Sealer]) -> None:
        self._app = app
        self._paths = paths
        self._sealer = sealer
        self._prefix = app.contract.tool_prefix
        self.about = About(app)
        self._methods: dict[str, Callable[[Exchange, Params], Coroutine[Any, Any, bytes]]] = {
            "tools/call": self._call_tool,
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
        }

    def is_quick(self, request: Request) -> bool:
        """Whether it is answered at once and without a word before.

        No author's code runs for it, or only such as never waits and has nobody to talk to.
        """
        if request.method not in self._methods:
            return True
        tool = self._app.tools.get(self.tool_called(request))
        return tool is not None and tool.inline and _is_silent(tool)

    def tool_called(self, request: Request) -> str:
        """The tool that a request calls, if it calls one."""
        if isinstance(request.params, params.ToolCall):
            return request.params.name.removeprefix(self._prefix)
        if request.method != "tools/call":
            return ""
        try:
            name = params.read(request.params, params.CallTool).name
        except RpcError:
            return ""
        return name.removeprefix(self._prefix)

    async def respond(self, request: Request, exchange: Exchange) -> bytes:
        """The frame that answers a request; whatever happens, there is one."""
        try:
            return result_frame(request.id, await self.answer(request, exchange))
        except RpcError as error:
            return error_frame(request.id, error)
        except Exception:  # noqa: BLE001 -- a fault of ours ends one request, not the server
            log_fault(request.method)
            return error_frame(request.id, RpcError(INTERNAL_ERROR, "Internal error"))

    def answer(self, request: Request, exchange: Exchange) -> Awaitable[bytes]:
        """The result of a request that needs no session, to be awaited; raises RpcError."""
        name = request.method
        if name == "tools/call":  # Offered in every version, and nearly all that is asked.
            return self._call_tool(exchange, request.params)
        if not self.about.offers(name, exchange.version):
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {name}")
        method = self._methods.get(name)
        if method is not None:
            return method(exchange, request.params)
        return self._tell(name, exchange.version, request.params)

    async def _tell(self, name: str, version: Version, raw: Params) -> bytes:
        """What needs no code of an author's."""
        if name in LISTS:
            listed = one_page(self._app, name, version, raw)
            return self.about.finish(listed, version, cacheable=True)
        if name == "server/discover":
            return self.about.discover(version)
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {name}")

    async def _call_tool(self, exchange: Exchange, raw: Params) -> bytes:
        asked = raw if isinstance(raw, params.ToolCall) else params.read(raw, params.CallTool)
        if not asked.name.startswith(self._prefix):
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {asked.name}")
        name = asked.name[len(self._prefix) :]
        arguments = bytes(asked.arguments)
        if not arguments.lstrip().startswith(b"{"):
            raise RpcError(INVALID_PARAMS, "arguments must be an object")
        call = Call(name, arguments, exchange, wire="mcp", caller=exchange.caller)
        self._begin("tool", call, exchange, raw)
        outcome = self._settled("tool", call, exchange, await self._paths.tools(call))
        if isinstance(outcome, bytes):
            return outcome
        tool = self._app.tools.get(name)
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {asked.name}")
        # An error has no shape, and may be that the annotations could not be read.
        shape = tool.shape if outcome.error is None else RESULT
        result = dialect.write(outcome, shape, tool.contract, exchange.version)
        return result if not exchange.version.modern else self.about.signed(result)

    def _begin(self, kind: str, call: Call, exchange: Exchange, raw: Params) -> None:
        """Tie the call to its request, with what the client answered when it was asked before."""
        exchange.begin(call)
        if not exchange.version.modern:
            return
        retry = raw if isinstance(raw, params.ToolCall) else params.read(raw, params.Retry)
        if retry.responses or retry.state is not None:
            # Only one who is asked pays for what sealing needs.
            from .input_required import recall

            recall(exchange, retry, _bound(kind, call), self._sealer())

    def _settled(
        self, kind: str, call: Call, exchange: Exchange, outcome: Outcome
    ) -> Reply[Any] | bytes:
        """The reply, or the result that asks the client for more."""
        exchange.end()
        if isinstance(outcome, Reply):
            return outcome
        if not exchange.version.modern:
            return settled(outcome)
        from .input_required import input_required

        asking = input_required(exchange, outcome, _bound(kind, call), self._sealer())
        return self.about.finish(asking, exchange.version)

    async def _read_resource(self, exchange: Exchange, raw: Params) -> bytes:
        uri = params.read(raw, params.ReadResource).uri
        resource, arguments = self._find_resource(uri, exchange.version)
        call = Call(resource.uri, arguments, exchange, wire="mcp", caller=exchange.caller)
        self._begin("resource", call, exchange, raw)
        reply = self._settled("resource", call, exchange, await self._paths.resources(call))
        if isinstance(reply, bytes):
            return reply
        if reply.error is not None:
            if reply.error.row.status == 404:
                raise _no_resource(uri, exchange.version)
            raise RpcError(_code(reply.error.row.status), reply.error.message)
        from ..tools.resource import contents_of

        try:
            bodies = contents_of(resource, uri, reply)
        except InvalidOutput as exc:
            raise RpcError(INTERNAL_ERROR, f"Invalid output: {exc}") from None
        contents = [_content(body, exchange.version) for body in bodies]
        return self.about.finish({"contents": contents}, exchange.version, cacheable=True)

    def _find_resource(self, uri: str, version: Version) -> tuple[Resource, bytes]:
        exact = self._app.resources.get(uri)
        for resource in [exact] if exact else self._app.resources.values():
            arguments = resource.arguments_for(uri)
            if arguments is not None:
                return resource, arguments
        raise _no_resource(uri, version)

    async def _get_prompt(self, exchange: Exchange, raw: Params) -> bytes:
        asked = params.read(raw, params.GetPrompt)
        prompt = self._app.prompts.get(asked.name)
        if prompt is None:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {asked.name}")
        arguments = _encode(prompt.signature.from_strings(list(asked.arguments.items())))
        call = Call(prompt.name, arguments, exchange, wire="mcp", caller=exchange.caller)
        self._begin("prompt", call, exchange, raw)
        reply = self._settled("prompt", call, exchange, await self._paths.prompts(call))
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
        return self.about.finish(result, exchange.version)

    async def _complete(self, exchange: Exchange, raw: Params) -> bytes:
        asked = params.read(raw, params.Complete)
        result = {"completion": await complete(self._app, self._paths, asked, exchange)}
        return self.about.finish(result, exchange.version)


def _is_silent(tool: Tool) -> bool:
    """Whether it can neither tell nor ask the other end anything."""
    try:
        signature = tool.signature
    except (NameError, TypeError):
        return False  # The call will say what is wrong with it.
    return signature.context is None and not signature.questions


def _bound(kind: str, call: Call) -> bytes:
    """What an answer to a question belongs to."""
    return b"%b\0%b\0%b" % (kind.encode(), call.name.encode(), call.arguments)


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
