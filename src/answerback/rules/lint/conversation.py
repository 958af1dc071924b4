"""Finds the replies in recorded values: bare, in JSON-RPC messages, or wrapped by a log.

A conversation remembers the requests of a recording, so that it knows more about a reply than the
reply states: the version from `initialize`, the output schemas from `tools/list`, the tool from
`tools/call`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from ...contract import Dialect
from ...core.json_value import is_integer
from ...core.versions import VERSIONS, Version
from ..reply_view import CheckContext

_CALL, _LIST, _INITIALIZE = "tools/call", "tools/list", "initialize"
_REPLY_MEMBERS = frozenset({"content", "structuredContent", "isError", "success", "tools"})
_LOG_MEMBERS = frozenset({"level", "severity", "lvl", "logger", "loglevel"})
# The members in which logs and proxies keep a message.
_WRAPPERS = (
    "message",
    "payload",
    "frame",
    "msg",
    "body",
    "raw",
    "rpc",
    "data",
    "response",
    "result",
)
_MAX_CHARS = "anthropic/maxResultSizeChars"
_MAX_PENDING = 10_000
_MAX_TOOLS = 10_000


class LoggedReply(NamedTuple):
    """A reply, its pointer in the recorded value, and the context to check it in."""

    reply: Any
    pointer: str
    dialect: Dialect | None
    context: CheckContext
    tool: str = ""
    """The tool that was called, if the request is in the recording."""


class _Request(NamedTuple):
    method: str
    tool: str


class _ListedTool(NamedTuple):
    schema: dict[str, Any] | None
    max_chars: int | None


class Conversation:
    """The requests, version and schemas of one recording so far; bounded for an endless log."""

    def __init__(self, dialect: Dialect | None = None, version: Version | None = None) -> None:
        self._dialect = dialect
        self._version = version
        self._has_fixed_version = version is not None
        self._pending: dict[Any, _Request] = {}
        self._tools: dict[str, _ListedTool] = {}
        self._context = CheckContext(version)
        self._has_jsonrpc = False

    def replies(self, value: Any, *, in_log_text: bool = False) -> Iterable[LoggedReply]:
        """Return the replies in one recorded value.

        A value that stands *in_log_text* counts only if it is like a message.
        """
        if isinstance(value, dict) and "jsonrpc" not in value and "content" in value:
            return (LoggedReply(value, "", self._dialect, self._context),)
        if in_log_text and self._dialect is None and not _has_message(value):
            return ()
        return self._replies_in(value, "")

    def _replies_in(self, value: Any, pointer: str) -> Iterator[LoggedReply]:
        if isinstance(value, list) and self._dialect != "rest":
            for index, each in enumerate(value):
                yield from self._replies_in(each, f"{pointer}/{index}")
        elif not isinstance(value, dict):
            yield LoggedReply(value, pointer, self._dialect, self._context)
        elif "jsonrpc" in value:
            self._has_jsonrpc = True
            yield from self._read_jsonrpc(value, pointer)
        elif self._dialect is None and _REPLY_MEMBERS.isdisjoint(value):
            yield from self._unwrap(value, pointer)
        else:
            yield LoggedReply(value, pointer, self._dialect, self._context)

    def _read_jsonrpc(self, message: dict[str, Any], pointer: str) -> Iterator[LoggedReply]:
        if "method" in message:
            self._remember_request(message)
            return
        request = self._pending.pop(_request_key(message.get("id")), None)
        if "error" in message:
            method = "" if request is None else request.method
            context = CheckContext(self._version, method=method)
            yield LoggedReply(message, pointer, "mcp", context)
        elif "result" in message:
            yield from self._read_result(message["result"], f"{pointer}/result", request)

    def _remember_request(self, message: dict[str, Any]) -> None:
        if message.get("id") is None:
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        request = _Request(str(message["method"]), str(params.get("name", "")))
        self._pending[_request_key(message["id"])] = request
        if len(self._pending) > _MAX_PENDING:
            del self._pending[next(iter(self._pending))]

    def _read_result(
        self, result: Any, pointer: str, request: _Request | None
    ) -> Iterator[LoggedReply]:
        method = _guess_method(result) if request is None else request.method
        if method == _INITIALIZE:
            self._learn_version(result)
        elif method == _LIST:
            self._learn_tools(result)
            yield LoggedReply(result, pointer, "mcp", self._context)
        elif method == _CALL:
            context = self._call_context(request)
            tool = "" if request is None else request.tool
            yield LoggedReply(result, pointer, self._dialect or "mcp", context, tool)

    def _call_context(self, request: _Request | None) -> CheckContext:
        if request is None or request.tool not in self._tools:
            return self._context
        schema, max_chars = self._tools[request.tool]
        return CheckContext(self._version, schema, _CALL, listed=True, max_chars=max_chars)

    def _learn_version(self, result: Any) -> None:
        name = result.get("protocolVersion") if isinstance(result, dict) else None
        if not self._has_fixed_version and isinstance(name, str):
            self._version = VERSIONS.get(name)
            self._context = CheckContext(self._version)

    def _learn_tools(self, result: Any) -> None:
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and len(self._tools) < _MAX_TOOLS:
                schema, meta = tool.get("outputSchema"), tool.get("_meta")
                max_chars = meta.get(_MAX_CHARS) if isinstance(meta, dict) else None
                self._tools[str(tool.get("name"))] = _ListedTool(
                    schema if isinstance(schema, dict) else None,
                    max_chars if is_integer(max_chars) else None,
                )

    def _unwrap(self, value: dict[str, Any], pointer: str) -> Iterator[LoggedReply]:
        """Yield the replies in a log entry or a HAR file; any other object is itself a reply."""
        match value:
            case {"request": _, "response": _}:
                yield from self._read_exchange(value, pointer)
                return
            case {"log": {"entries": list(entries)}}:
                for index, entry in enumerate(entries):
                    if isinstance(entry, dict) and "request" in entry and "response" in entry:
                        yield from self._read_exchange(entry, f"{pointer}/log/entries/{index}")
                return
        is_wrapper = False
        # An entry of the MCP Inspector has the request as `message` and the response beside it.
        for name in _WRAPPERS:
            inner = _decode_text(value.get(name))
            if isinstance(inner, dict) and ("jsonrpc" in inner or _is_result(inner)):
                is_wrapper = True
                yield from self._replies_in(inner, f"{pointer}/{name}")
        if not is_wrapper and not self._has_jsonrpc and _LOG_MEMBERS.isdisjoint(value):
            yield LoggedReply(value, pointer, None, self._context)

    def _read_exchange(self, value: dict[str, Any], pointer: str) -> Iterator[LoggedReply]:
        """Yield the replies of a request and its response, as in the MCP Inspector's history."""
        request, response = _http_body(value["request"]), _http_body(value["response"])
        at = f"{pointer}/response"
        if not isinstance(request, dict) or not isinstance(response, dict):
            return
        if "jsonrpc" in response:
            self._remember_request({"id": response.get("id"), "method": "", **request})
            yield from self._read_jsonrpc(response, at)
            return
        params = request.get("params")
        tool = params.get("name", "") if isinstance(params, dict) else ""
        yield from self._read_result(response, at, _Request(str(request.get("method")), str(tool)))


def _request_key(request_id: Any) -> Any:
    # The ids 1 and "1" differ, and a list cannot be an id.
    return request_id if isinstance(request_id, int | str) else None


def _guess_method(result: Any) -> str | None:
    """Guess the method of an unrecorded request by the members of its result."""
    if not isinstance(result, dict):
        return None
    if "tools" in result:
        return _LIST
    if "protocolVersion" in result:
        return _INITIALIZE
    return _CALL if _is_result(result) else None


def _has_message(value: Any) -> bool:
    """Return whether an object in a log line is a reply or a JSON-RPC message, or wraps one."""
    if not isinstance(value, dict):
        return False
    if "jsonrpc" in value or not _REPLY_MEMBERS.isdisjoint(value):
        return True
    inner = [_decode_text(value[name]) for name in (*_WRAPPERS, "request") if name in value]
    return any(isinstance(each, dict) and ("jsonrpc" in each or _is_result(each)) for each in inner)


def _is_result(value: dict[str, Any]) -> bool:
    """Return whether an object has the members of a `tools/call` result."""
    content = value.get("content")
    return isinstance(content, list) or "structuredContent" in value or "isError" in value


def _decode_text(value: Any) -> Any:
    """Return the object decoded from a message kept as text; any other value unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value


def _http_body(value: Any) -> Any:
    """Return the message in the body of a recorded HTTP request or response."""
    value = _decode_text(value)
    if not isinstance(value, dict) or "jsonrpc" in value:
        return value
    match value:
        case {"body": body}:
            return _decode_text(_last_event(body))
        # HAR files, which browsers and proxies export.
        case {"postData": {"text": text}} | {"status": int(), "content": {"text": text}}:
            return _decode_text(_last_event(text))
    return value


def _last_event(body: Any) -> Any:
    """Return the data of an SSE stream's last event, which is the response; else the body."""
    if not isinstance(body, str) or not body.startswith(("event:", "data:", "id:", ":")):
        return body
    lines = [line[5:].strip() for line in body.splitlines() if line.startswith("data:")]
    return next((line for line in reversed(lines) if line), body)
