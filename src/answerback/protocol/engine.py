"""Answers MCP requests for one registry, from any wire."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import Enum
from functools import cached_property, partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, get_args, get_origin

import msgspec

from ..calls.call import Call, Outcome, reply_or_refusal
from ..calls.failures import log_internal_error
from ..calls.runtime import Runtime
from ..core.author_errors import did_you_mean, similar_names
from ..core.content import changed_block
from ..core.json_value import JsonObject
from ..core.limits import LARGE_BODY
from ..core.reply import Reply
from ..dialects import mcp as dialect
from ..dialects.common import REFUSAL
from ..dialects.mcp_blocks import write_blocks
from ..registry.declarations import completion_key
from ..tools.tool import Tool
from ..types.problems import InvalidOutput, without_metadata
from .jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Complete,
    Frame,
    GetPrompt,
    Params,
    ReadResource,
    Request,
    RetriedRequest,
    RpcError,
    ToolCall,
    error_frame,
    large_result_frame,
    read_params,
    result_frame,
)
from .listing import (
    LISTS,
    entry_error,
    find_resource,
    is_visible_to,
    list_page,
    no_resource,
    referenced_entry,
    resource_error,
)
from .mcp_peer import McpPeer
from .session import ServerInfo
from .subscriptions import Listen

if TYPE_CHECKING:
    from ..core.signing import Signer
    from .task_methods import TaskFeed, TaskMethods


_encode = msgspec.json.Encoder().encode
_Method: TypeAlias = Callable[[McpPeer, Params], Coroutine[Any, Any, Frame]]
MAX_VALUES = 100
"""The maximum number of values in a completion result."""
_NO_SESSION = "only a client with a session, or one that uses MCP 2026-07-28, can be asked"
# `tasks/result` waits for a task's code, and asks the client its questions.
_RUN_AUTHORS_CODE = frozenset(
    {"tools/call", "resources/read", "prompts/get", "completion/complete", "tasks/result"}
)
_TASKS = {
    "tasks/get": "tasks",
    "tasks/cancel": "tasks",
    "tasks/update": "tasks extension",
    "tasks/result": "core tasks",
    "tasks/list": "task list",
}
"""The task methods, and the capability that each requires."""


class Engine:
    """Answers the MCP methods. Each wire has its own engine, which keeps no client state."""

    def __init__(self, runtime: Runtime, signer: Callable[[], Signer]) -> None:
        self.runtime = runtime
        self._registry = registry = runtime.registry
        self._handlers = runtime.handlers
        self._signer = signer
        self._prefix = registry.contract.tool_prefix
        self.server_info = ServerInfo(registry)
        # By method: the required capability, and the function that answers it.
        self._methods: dict[str, tuple[str, _Method]] = {
            "tools/call": ("", self._call_tool),
            "resources/read": ("resources", self._read_resource),
            "prompts/get": ("prompts", self._get_prompt),
            "completion/complete": ("completion", self._complete),
            "server/discover": ("server", self._discover),
            # Careless clients request lists that the server does not offer; these are empty.
            **{name: ("", partial(self._list, name)) for name in LISTS},
            **{name: (needed, partial(self._tasks, name)) for name, needed in _TASKS.items()},
        }

    @cached_property
    def task_methods(self) -> TaskMethods:
        # Imported here, so that apps without tasks do not pay for it.
        from .task_methods import TaskMethods

        return TaskMethods(self.runtime, self.server_info)

    def may_ask(self, request: Request) -> bool:
        """Return whether the request runs author code that can ask the client."""
        if request.method != "tools/call":
            return request.method in _RUN_AUTHORS_CODE
        tool = self._registry.tools.get(self.tool_name(request))
        if tool is None:
            return False
        try:
            signature = tool.signature
        except (NameError, TypeError):
            return True  # The call will report the problem with the signature.
        return signature.context is not None or bool(signature.questions or tool.middleware)

    def tool_name(self, request: Request) -> str:
        """Return the name of the called tool; empty if the request does not call one."""
        params = request.params
        return params.name.removeprefix(self._prefix) if isinstance(params, ToolCall) else ""

    async def respond(self, request: Request, peer: McpPeer) -> Frame:
        """Return the response to a request. Never raises; an error is stored in `peer.error`."""
        try:
            found = self._methods.get(request.method)
            # A method that needs no capability exists in every version.
            if found is None or (found[0] and not self.server_info.offers(found[0], peer.version)):
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
            result = await found[1](peer, request.params)
            if isinstance(result, bytes):
                return result_frame(request.id, result)
            return large_result_frame(request.id, result)
        except RpcError as error:
            # Its traceback's frames refer to the peer, which would create a reference cycle.
            peer.error = error.with_traceback(None)
        except Exception:  # noqa: BLE001 -- our bug ends one request, not the server
            log_internal_error(request.method)
            peer.error = RpcError(INTERNAL_ERROR, "Internal error")
        return error_frame(request.id, peer.error)

    async def _list(self, method: str, peer: McpPeer, raw: Params) -> bytes:
        page = list_page(self._registry, method, peer.version, raw, self._seen_by(peer))
        return self.server_info.encode_result(page, peer.version, cacheable=True)

    async def _tasks(self, method: str, peer: McpPeer, raw: Params) -> bytes:
        return await self.task_methods.answer(method, peer, raw)

    async def task_feed(self, raw: Params, peer: McpPeer) -> TaskFeed | None:
        """Return the task notifications that a `subscriptions/listen` asks for; raises RpcError."""
        if not self._registry.has_tasks:
            return None
        ids = read_params(raw, Listen).notifications.tasks
        if not ids:
            return None
        from .task_methods import missing_tasks, open_feed

        if not peer.client.tasks:
            raise missing_tasks("taskIds needs the tasks extension")
        return await open_feed(self.task_methods, ids, peer)

    def _seen_by(self, peer: McpPeer) -> Callable[[Any], bool] | None:
        """Return a predicate: may the client see an entry? None if nothing is hidden."""
        return is_visible_to(peer) if self._registry.hides_entries else None

    async def _discover(self, peer: McpPeer, raw: Params) -> bytes:
        return self.server_info.discover(peer.version)

    async def _call_tool(self, peer: McpPeer, raw: Params) -> Frame:
        asked = raw if isinstance(raw, ToolCall) else read_params(raw, ToolCall)
        prefix = self._prefix
        if not asked.name.startswith(prefix):
            raise self._unknown_tool(asked.name, peer)
        arguments = bytes(asked.arguments)
        if not arguments.lstrip().startswith(b"{"):
            raise RpcError(INVALID_PARAMS, "arguments must be an object")
        name = asked.name[len(prefix) :]
        call = Call(name, arguments, peer, wire="mcp", caller=peer.caller)
        version = peer.version
        if version.stateless and (asked.responses or asked.state is not None):
            self._recall_answers("tool", call, peer, asked)
        handle: Callable[[Call], Coroutine[Any, Any, Outcome | bytes]] = self._handlers.tools
        if self._registry.has_tasks or self._registry.has_keys:
            handle = self.task_methods.handler(call, asked, peer)
        outcome = await handle(call)
        if call.tool is None:
            raise self._unknown_tool(asked.name, peer)
        # Bytes are the result of a call that became a task.
        if isinstance(outcome, bytes) or (isinstance(outcome, Reply) and outcome.error is None):
            reply: Reply[Any] | bytes = outcome
        else:
            reply = self._reply_or_question("tool", call, peer, outcome)
        if isinstance(reply, bytes):
            return reply
        server_info = self.server_info.json if version.stateless else b""
        pieces = dialect.write_in_pieces(
            reply, call.shape, call.tool.contract, version, server_info=server_info
        )
        encoded = reply.encoded
        is_large = encoded is not None and len(encoded) >= LARGE_BODY
        return pieces if is_large else b"".join(pieces)

    def _unknown_tool(self, name: str, peer: McpPeer) -> RpcError:
        seen = self._seen_by(peer)
        known = [
            self._prefix + each
            for each, tool in self._registry.tools.items()
            if seen is None or seen(tool)
        ]
        prefixed = self._prefix + name
        found = [prefixed] if prefixed in known else similar_names(name, known, limit=3)
        hint = did_you_mean(found)
        return RpcError(INVALID_PARAMS, f"Unknown tool: {name}" + (hint and f"; {hint}"))

    def _recall_answers(self, kind: str, call: Call, peer: McpPeer, raw: Params) -> None:
        """Set the peer's answers to those sent with this request and earlier ones."""
        retry = read_params(raw, RetriedRequest)
        if retry.responses or retry.state is not None:
            # Imported here, because only a question needs signed state.
            from .refusals import recall

            recall(peer, retry, _binding(kind, call, peer), self._signer())

    def _reply_or_question(
        self, kind: str, call: Call, peer: McpPeer, outcome: Outcome
    ) -> Reply[Any] | bytes:
        """Return the reply, or a result that asks for the user's answers."""
        if isinstance(outcome, Reply) and REFUSAL not in outcome.meta:
            return outcome
        # Imported here, because most calls are not refused.
        from .refusals import input_required, refuse

        if isinstance(outcome, Reply):
            outcome = refuse(kind, call, peer, outcome, self.runtime)
        if isinstance(outcome, Reply):
            return outcome
        if not peer.version.stateless:
            refused = reply_or_refusal(outcome)
            if peer.session is not None:
                return refused
            assert refused.error is not None
            error = msgspec.structs.replace(refused.error, hint=_NO_SESSION)
            return msgspec.structs.replace(refused, error=error)
        asking = input_required(peer, outcome, _binding(kind, call, peer), self._signer())
        return self.server_info.encode_result(asking, peer.version)

    async def _read_resource(self, peer: McpPeer, raw: Params) -> bytes:
        uri = read_params(raw, ReadResource).uri
        found = find_resource(self._registry, uri, self._seen_by(peer))
        if found is None:
            raise no_resource(uri, peer.version)
        resource, arguments = found
        call = Call(resource.uri, arguments, peer, wire="mcp", caller=peer.caller)
        if peer.version.stateless:
            self._recall_answers("resource", call, peer, raw)
        is_stored = resource is self._registry.stored_reply_resource
        handle = self.runtime.read_stored_reply if is_stored else self._handlers.resources
        reply = self._reply_or_question("resource", call, peer, await handle(call))
        if isinstance(reply, bytes):
            return reply
        if reply.error is not None:
            raise resource_error(reply.error, uri, peer.version)
        from ..tools.resource import content_meta_of, contents_of

        try:
            bodies = contents_of(resource, uri, reply)
        except InvalidOutput as exc:
            raise RpcError(INTERNAL_ERROR, f"Invalid output: {exc.for_caller()}") from None
        request = peer.describe_request("mcp") if resource.is_widget else None
        meta = resource.meta_of_content(self.runtime.endpoint, request)
        blocks = [changed_block(each, content_meta=content_meta_of(meta, each)) for each in bodies]
        contents = [each["resource"] for each in write_blocks(blocks, peer.version)]
        return self.server_info.encode_result({"contents": contents}, peer.version, cacheable=True)

    async def _get_prompt(self, peer: McpPeer, raw: Params) -> bytes:
        asked = read_params(raw, GetPrompt)
        prompt = self._registry.prompts.get(asked.name)
        seen = self._seen_by(peer)
        if prompt is None or not (seen is None or seen(prompt)):
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {asked.name}")
        arguments = _encode(prompt.from_strings(list(asked.arguments.items())))
        call = Call(prompt.name, arguments, peer, wire="mcp", caller=peer.caller)
        if peer.version.stateless:
            self._recall_answers("prompt", call, peer, raw)
        reply = self._reply_or_question("prompt", call, peer, await self._handlers.prompts(call))
        if isinstance(reply, bytes):
            return reply
        if reply.error is not None:
            raise entry_error(reply.error)
        roles = reply.meta["roles"]
        blocks = write_blocks(reply.content, peer.version)
        result: JsonObject = {
            "messages": [
                {"role": role, "content": block} for role, block in zip(roles, blocks, strict=True)
            ]
        }
        if prompt.description:
            result["description"] = prompt.description
        return self.server_info.encode_result(result, peer.version)

    async def _complete(self, peer: McpPeer, raw: Params) -> bytes:
        asked = read_params(raw, Complete)
        found = await complete(self.runtime, asked, peer, self._seen_by(peer))
        return self.server_info.encode_result({"completion": found}, peer.version)


def _binding(kind: str, call: Call, peer: McpPeer) -> bytes:
    """Return the request and the user that an answer and its signed state are bound to."""
    request = b"%b\0%b\0%b" % (kind.encode(), call.name.encode(), call.arguments)
    return peer.user_key + b"\0" + request if peer.user_key else request


async def complete(
    runtime: Runtime,
    asked: Complete,
    peer: McpPeer,
    seen: Callable[[Tool], bool] | None,
) -> JsonObject:
    """Return the author's completion values, or else the values listed by the argument's type.

    *seen* says whether the client may see a prompt or resource.
    """
    registry = runtime.registry
    referenced = referenced_entry(registry, asked.ref)
    if referenced is None or not (seen is None or seen(referenced)):
        raise RpcError(INVALID_PARAMS, f"Unknown reference: {asked.ref.target}")
    argument = asked.argument.name
    if argument not in {parameter.name for parameter in referenced.signature.parameters}:
        raise RpcError(INVALID_PARAMS, f"Unknown argument: {argument}")
    key = completion_key(asked.ref.target, argument)
    tool = registry.completions.get(key)
    has_own_gates = tool is not None and bool(tool.settings.requires)
    if referenced.gates is not None:
        # Only gates that take just `ctx` run, because the argument values are not known yet.
        call = Call(referenced.name, b"{}", peer, wire="mcp", caller=peer.caller)
        call.tool = referenced
        refused = await runtime.pass_gates(call)
        if refused is not None:
            _raise(refused, runtime, call, peer)
    if referenced.gates is not None and referenced.gates.late and not has_own_gates:
        # Its other gates depend on the argument values.
        values: list[str] = []
    elif tool is not None:
        values = await _call_completion(tool, runtime, key, asked, peer)
    else:
        values = [
            each
            for each in _values_of_type(referenced, argument)
            if each.startswith(asked.argument.value)
        ]
    return {
        "values": values[:MAX_VALUES],
        "total": len(values),
        "hasMore": len(values) > MAX_VALUES,
    }


def _raise(reply: Reply[Any], runtime: Runtime, call: Call, peer: McpPeer) -> NoReturn:
    assert reply.error is not None
    if REFUSAL in reply.meta:
        from .refusals import refuse

        refuse("completion", call, peer, reply, runtime)
    raise entry_error(reply.error)


async def _call_completion(
    tool: Tool, runtime: Runtime, key: str, asked: Complete, peer: McpPeer
) -> list[str]:
    offered = {"value": asked.argument.value, "arguments": asked.context.arguments}
    wanted = {parameter.name for parameter in tool.signature.parameters}
    arguments = {name: value for name, value in offered.items() if name in wanted}
    call = Call(key, msgspec.json.encode(arguments), peer, wire="mcp", caller=peer.caller)
    reply = reply_or_refusal(await runtime.handlers.completions(call))
    if reply.error is not None:
        _raise(reply, runtime, call, peer)
    return [str(value) for value in reply.data] if isinstance(reply.data, list) else []


def _values_of_type(referenced: Tool, argument: str) -> list[str]:
    annotation = next(
        without_metadata(parameter.annotation)
        for parameter in referenced.signature.parameters
        if parameter.name == argument
    )
    # The type inside `T | None`.
    if NoneType in (given := get_args(annotation)) and len(given) == 2:
        annotation = without_metadata(given[0] if given[1] is NoneType else given[1])
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(member.value) for member in annotation]
    return ["true", "false"] if annotation is bool else []
