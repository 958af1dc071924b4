"""Finds the replies in what was recorded: bare, in JSON-RPC frames, or wrapped by a log.

A conversation remembers what was asked, so that an answer is known for what it is: the version
from `initialize`, the output schemas from `tools/list`, the tool from `tools/call`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ...versions import VERSIONS, Version
from ..reply_view import Circumstances

if TYPE_CHECKING:
    from ...contract import Dialect

_CALL, _LIST, _OPEN = "tools/call", "tools/list", "initialize"
_REPLY_MEMBERS = frozenset({"content", "structuredContent", "isError", "success", "tools"})
_LOG_MEMBERS = frozenset({"level", "severity", "lvl", "logger", "loglevel"})
# Under what names logs and proxies keep a message.
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
_MOST_WAITING = 10_000
_MOST_TOOLS = 10_000


class Answer(NamedTuple):
    """A reply, where it stands in what was recorded, and what is known beside it."""

    reply: Any
    pointer: str
    dialect: Dialect | None
    given: Circumstances


class _Asked(NamedTuple):
    method: str
    tool: str


class Conversation:
    """What is known so far. Of a log that never ends it keeps a bounded part."""

    def __init__(self, dialect: Dialect | None = None, version: Version | None = None) -> None:
        self._dialect = dialect
        self._version = version
        self._fixed_version = version is not None
        self._waiting: dict[Any, _Asked] = {}
        self._schemas: dict[str, dict[str, Any] | None] = {}
        self._plain = Circumstances(version)
        self._framed = False

    def answers(self, value: Any, *, loose: bool = False) -> Iterable[Answer]:
        """The replies in one recorded value; one that is *loose* in a log may well be none."""
        if isinstance(value, dict) and "jsonrpc" not in value and "content" in value:
            return (Answer(value, "", self._dialect, self._plain),)
        if loose and self._dialect is None and not _is_message(value):
            return ()
        return self._answers(value, "")

    def _answers(self, value: Any, pointer: str) -> Iterator[Answer]:
        if isinstance(value, list) and self._dialect != "rest":
            for index, each in enumerate(value):
                yield from self._answers(each, f"{pointer}/{index}")
        elif not isinstance(value, dict):
            yield Answer(value, pointer, self._dialect, self._plain)
        elif "jsonrpc" in value:
            self._framed = True
            yield from self._framed_answer(value, pointer)
        elif self._dialect is None and _REPLY_MEMBERS.isdisjoint(value):
            yield from self._wrapped(value, pointer)
        else:
            yield Answer(value, pointer, self._dialect, self._plain)

    def _framed_answer(self, frame: dict[str, Any], pointer: str) -> Iterator[Answer]:
        if "method" in frame:
            self._remember(frame)
            return
        asked = self._waiting.pop(_key(frame.get("id")), None)
        if "error" in frame:
            method = "" if asked is None else asked.method
            yield Answer(frame, pointer, "mcp", Circumstances(self._version, method=method))
        elif "result" in frame:
            yield from self._result(frame["result"], f"{pointer}/result", asked)

    def _remember(self, request: dict[str, Any]) -> None:
        if request.get("id") is None:
            return
        params = request.get("params")
        params = params if isinstance(params, dict) else {}
        asked = _Asked(str(request["method"]), str(params.get("name", "")))
        self._waiting[_key(request["id"])] = asked
        if len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def _result(self, result: Any, pointer: str, asked: _Asked | None) -> Iterator[Answer]:
        method = _method_of(result) if asked is None else asked.method
        if method == _OPEN:
            self._learn_version(result)
        elif method == _LIST:
            self._learn_tools(result)
            yield Answer(result, pointer, "mcp", self._plain)
        elif method == _CALL:
            yield Answer(result, pointer, self._dialect or "mcp", self._about(asked))

    def _about(self, asked: _Asked | None) -> Circumstances:
        if asked is None or asked.tool not in self._schemas:
            return self._plain
        schema = self._schemas[asked.tool]
        return Circumstances(self._version, schema, _CALL, listed=True)

    def _learn_version(self, result: Any) -> None:
        said = result.get("protocolVersion") if isinstance(result, dict) else None
        if not self._fixed_version and isinstance(said, str):
            self._version = VERSIONS.get(said)
            self._plain = Circumstances(self._version)

    def _learn_tools(self, result: Any) -> None:
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and len(self._schemas) < _MOST_TOOLS:
                schema = tool.get("outputSchema")
                self._schemas[str(tool.get("name"))] = schema if isinstance(schema, dict) else None

    def _wrapped(self, value: dict[str, Any], pointer: str) -> Iterator[Answer]:
        """What a log or a proxy put around a message; else an object that is a reply itself."""
        match value:
            case {"request": _, "response": _}:
                yield from self._exchange(value, pointer)
                return
            case {"log": {"entries": list(entries)}}:
                for index, entry in enumerate(entries):
                    if isinstance(entry, dict) and "request" in entry and "response" in entry:
                        yield from self._exchange(entry, f"{pointer}/log/entries/{index}")
                return
        wrapped = False
        # An entry of the Inspector has the question as its message, and the answer beside it.
        for name in _WRAPPERS:
            inner = _opened(value.get(name))
            if isinstance(inner, dict) and ("jsonrpc" in inner or _is_reply(inner)):
                wrapped = True
                yield from self._answers(inner, f"{pointer}/{name}")
        if not wrapped and not self._framed and _LOG_MEMBERS.isdisjoint(value):
            yield Answer(value, pointer, None, self._plain)

    def _exchange(self, value: dict[str, Any], pointer: str) -> Iterator[Answer]:
        """A request and its response, as the history of the MCP Inspector has them."""
        request, response = _unpacked(value["request"]), _unpacked(value["response"])
        at = f"{pointer}/response"
        if not isinstance(request, dict) or not isinstance(response, dict):
            return
        if "jsonrpc" in response:
            self._remember({"id": response.get("id"), "method": "", **request})
            yield from self._framed_answer(response, at)
            return
        params = request.get("params")
        name = params.get("name", "") if isinstance(params, dict) else ""
        yield from self._result(response, at, _Asked(str(request.get("method")), str(name)))


def _key(number: Any) -> Any:
    # 1 and "1" are two ids, and a list is none.
    return number if isinstance(number, int | str) else None


def _method_of(result: Any) -> str | None:
    """What an answer answers, told by its members when the question was not recorded."""
    if not isinstance(result, dict):
        return None
    if "tools" in result:
        return _LIST
    if "protocolVersion" in result:
        return _OPEN
    return _CALL if _is_reply(result) else None


def _is_message(value: Any) -> bool:
    """Whether an object among words is a reply, or has a message in it."""
    if not isinstance(value, dict):
        return False
    if "jsonrpc" in value or not _REPLY_MEMBERS.isdisjoint(value):
        return True
    inner = [_opened(value[name]) for name in (*_WRAPPERS, "request") if name in value]
    return any(isinstance(each, dict) and ("jsonrpc" in each or _is_reply(each)) for each in inner)


def _is_reply(value: dict[str, Any]) -> bool:
    content = value.get("content")
    return isinstance(content, list) or "structuredContent" in value or "isError" in value


def _opened(value: Any) -> Any:
    """A message that is kept as text."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value


def _unpacked(value: Any) -> Any:
    """A message, taken out of the HTTP exchange that a proxy recorded it with."""
    value = _opened(value)
    if not isinstance(value, dict) or "jsonrpc" in value:
        return value
    match value:
        case {"body": body}:
            return _opened(_last_event(body))
        # A HAR file, which browsers and proxies export.
        case {"postData": {"text": text}} | {"status": int(), "content": {"text": text}}:
            return _opened(_last_event(text))
    return value


def _last_event(body: Any) -> Any:
    """What a stream of events ended with, which is the answer; any other body as it is."""
    if not isinstance(body, str) or not body.startswith(("event:", "data:", "id:", ":")):
        return body
    lines = [line[5:].strip() for line in body.splitlines() if line.startswith("data:")]
    return next((line for line in reversed(lines) if line), body)
