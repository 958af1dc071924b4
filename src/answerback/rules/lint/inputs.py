"""Input for `lint`: JSON in log files, and messages in recorded conversations."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

import msgspec

from ...contract import Dialect
from ...core.json_value import is_integer
from ...core.versions import VERSIONS, Version
from ..reply_view import CheckContext
from ..validation import decode_json

NO_VALUE: Any = msgspec.UNSET
"""The value of a piece without JSON: whitespace, punctuation, log lines."""
INVALID: Any = msgspec.NODEFAULT
"""The value of a piece that looks like JSON but cannot be decoded."""

MAX_READ = 8 * 1024 * 1024
_OPENING, _QUOTE = b"{[", b'"'
# A string, or a bracket. Possessive quantifiers: an unterminated string causes no backtracking.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]', re.DOTALL)
# The start of an object with a member found in JSON-RPC messages and replies.
_MESSAGE = re.compile(
    rb'\{[^{]*?"(?:jsonrpc|content|structuredContent|isError|success)"\s*:', re.DOTALL
)
_OBJECT_START = re.compile(rb'\{\s*(?:"|\Z)')
_UNFINISHED = re.compile(rb"[{\[,]\s*\Z")
_MAX_WASTED = 200_000
"""How many bytes of a line may be spent on failed decoding attempts. Without a limit, a line with
many braces would be read again for each of them."""
_decode = msgspec.json.decode


class Piece(msgspec.Struct):
    """A run of bytes in a file, the JSON value in it, and the line where the value begins."""

    line: int
    raw: bytes
    value: Any = NO_VALUE
    start: int = 0
    """The offset in *raw* at which the value's JSON begins."""
    end: int = -1
    """The offset in *raw* at which the value's JSON ends; -1 means before trailing whitespace."""
    pointer: str = ""
    """The JSON pointer to the value if it is an item in a long array."""
    in_log_text: bool = False
    """Whether the line has other text too, in which case the value may not be a message."""

    @property
    def body(self) -> bytes:
        """The value's JSON."""
        return self.raw[self.start : self._end]

    def with_body(self, body: bytes) -> bytes:
        """Return the piece's bytes, with *body* in place of the value's JSON."""
        return self.raw[: self.start] + body + self.raw[self._end :]

    @property
    def _end(self) -> int:
        return len(self.raw.rstrip()) if self.end < 0 else self.end


def read_pieces(file: IO[bytes]) -> Iterator[Piece]:
    """Yield all pieces of the file, in order."""
    line, rest = 1, file.readline(MAX_READ)
    if rest.startswith(BOM_UTF8):
        yield Piece(line, BOM_UTF8)
        rest = rest[len(BOM_UTF8) :] or file.readline(MAX_READ)
    while chunk := rest or file.readline(MAX_READ):
        rest, tail = b"", b""
        try:
            value = _decode(chunk)
        except (ValueError, RecursionError) as exc:
            first = chunk.lstrip()[:1]
            in_log_text = first != b"{"
            if first and first in _OPENING and "truncated" in str(exc):
                tail, in_log_text = chunk, False
            else:
                found, tail = _pieces_of_line(chunk, line, in_log_text=in_log_text)
                yield from found
        else:
            yield Piece(line, chunk, value)
        if tail:
            splitter = ValueSplitter(line, in_log_text=in_log_text)
            yield from splitter.split(tail, file)
            line, rest = splitter.line, splitter.rest
        else:
            line += chunk.count(b"\n")


class ValueSplitter:
    """Reads a value that may span several lines; an array is split into its items."""

    def __init__(self, line: int, *, in_log_text: bool = False) -> None:
        self.line = line
        self._in_log_text = in_log_text
        self.rest = b""
        """The bytes read past the end of the value."""
        self._buffer = bytearray()
        self._scanned = 0
        self._depth = 0
        self._item_depth = 0
        self._value_start = 0
        self._is_done = False
        self._item_count = 0

    def split(self, chunk: bytes, file: IO[bytes]) -> Iterator[Piece]:
        """Yield the pieces of *chunk*, reading as much of the file as its first value needs."""
        if self._in_log_text:
            self.rest = file.readline(MAX_READ)
            # The next line continues an object only if it starts with a member, item or bracket.
            begins = self.rest.lstrip()[:1]
            if chunk.endswith(b"\n") and begins not in (b'"', b"{", b"[", b"}", b"]"):
                yield Piece(self.line, chunk, _undecodable(chunk))
                self.line += 1
                return
            chunk += self.rest
        while chunk:
            self._buffer += chunk
            yield from self._cut(self._find_values())
            if self._is_done:
                self.rest = bytes(self._buffer)
                return
            chunk = file.readline(MAX_READ)
        self.rest = b""
        if self._buffer:
            left = bytes(self._buffer)
            yield Piece(self.line, left, _undecodable(left) if self._in_log_text else INVALID)

    def _find_values(self) -> list[tuple[int, int]]:
        """Return the start and end of each complete value in the buffer."""
        spans: list[tuple[int, int]] = []
        for token in _TOKEN.finditer(self._buffer, self._scanned):
            char = token[0][:1]
            if char == _QUOTE:
                if token.end() - token.start() == 1:
                    # The end of the string has not been read yet.
                    self._scanned = token.start()
                    return spans
            elif char in _OPENING:
                if self._depth == 0 and char == b"[":
                    self._item_depth = 1
                elif self._depth == self._item_depth:
                    self._value_start = token.start()
                self._depth += 1
            else:
                self._depth -= 1
                self._is_done = self._depth == 0
                # The end of the outer array does not close a value.
                if self._depth == self._item_depth:
                    spans.append((self._value_start, token.end()))
            self._scanned = token.end()
            if self._is_done:
                break
        return spans

    def _cut(self, spans: list[tuple[int, int]]) -> Iterator[Piece]:
        """Remove the values from the buffer, and yield each with the bytes before it."""
        taken = 0
        for start, end in spans:
            raw = bytes(self._buffer[taken:end])
            self.line += raw.count(b"\n", 0, start - taken)
            value = decode_or_no_value(raw[start - taken :])
            pointer = f"/{self._item_count}" if self._item_depth else ""
            if value is NO_VALUE:
                value = _undecodable(raw) if self._in_log_text else INVALID
            yield Piece(
                self.line, raw, value, start - taken, end - taken, pointer, self._in_log_text
            )
            self._item_count += 1
            self.line += raw.count(b"\n", start - taken)
            taken = end
        if self._is_done and self._scanned > taken:
            raw = bytes(self._buffer[taken : self._scanned])
            yield Piece(self.line, raw)
            self.line += raw.count(b"\n")
            taken = self._scanned
        del self._buffer[:taken]
        self._scanned -= taken
        self._value_start -= taken


def _pieces_of_line(chunk: bytes, line: int, *, in_log_text: bool) -> tuple[list[Piece], bytes]:
    """Return a line's pieces, one per object, and an object that may continue on the next line."""
    found, tail = _find_objects(chunk, in_log_text=in_log_text)
    stop = len(chunk) if tail < 0 else tail
    pieces, taken = list[Piece](), 0
    for index, (start, end, value) in enumerate(found):
        # The last piece includes the rest of the line.
        to = end if index + 1 < len(found) else stop
        span = start - taken, end - taken
        pieces.append(Piece(line, chunk[taken:to], value, *span, in_log_text=in_log_text))
        taken = to
    if taken < stop:
        pieces.append(Piece(line, chunk[taken:stop]))
    return pieces, chunk[stop:]


def _find_objects(chunk: bytes, *, in_log_text: bool) -> tuple[list[tuple[int, int, Any]], int]:
    """Return the start, end and value of each object in a line, and the start of an unclosed
    object, or -1."""
    found = list[tuple[int, int, Any]]()
    is_cut = not chunk.endswith(b"\n")
    start, wasted = chunk.find(b"{"), 0
    while start >= 0:
        end = _closing_offset(chunk, start)
        value = decode_or_no_value(chunk[start:end]) if end else NO_VALUE
        if isinstance(value, dict) and value:
            found.append((start, end, value))
        elif not end and (
            not in_log_text
            or (_OBJECT_START.match(chunk, start) and (is_cut or _UNFINISHED.search(chunk, start)))
        ):
            # The line may end in the middle of an object, like lines of indented JSON.
            return found, start
        elif value is NO_VALUE and (
            not (in_log_text or found) or _MESSAGE.match(chunk, start) is not None
        ):
            # The brace looks like the start of JSON.
            end = end or len(chunk)
            found.append((start, end, INVALID))
        elif wasted > _MAX_WASTED:
            found.append((start, len(chunk), _undecodable(chunk[start:])))
            break
        else:
            # Braces in prose; there may be an object inside them.
            wasted += (end or len(chunk)) - start
            end = start + 1
        start = chunk.find(b"{", end)
    return found, -1


def _undecodable(text: bytes) -> Any:
    """Return the value for undecodable text with braces: INVALID if it looks like a message."""
    return INVALID if _MESSAGE.search(text) else NO_VALUE


def decode_or_no_value(text: bytes) -> Any:
    """Decode JSON, accepting NaN, which a rule reports; return NO_VALUE if it is not JSON."""
    try:
        return decode_json(text)
    except (ValueError, RecursionError):
        return NO_VALUE


def _closing_offset(text: bytes, start: int) -> int:
    """Return the offset after the bracket that closes the one at *start*; 0 if there is none."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        char = token[0][:1]
        if char in b"{[":
            depth += 1
        elif char in b"}]":
            depth -= 1
            if depth == 0:
                return token.end()
    return 0


_CALL, _LIST, _INITIALIZE = "tools/call", "tools/list", "initialize"
_REPLY_MEMBERS = frozenset({"content", "structuredContent", "isError", "success", "tools"})
_LOG_MEMBERS = frozenset({"level", "severity", "lvl", "logger", "loglevel"})
# The members in which logs and proxies store a message.
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
_MAX_PENDING = _MAX_TOOLS = 10_000


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


class Conversation:
    """The requests, version and schemas seen so far in a recording; bounded for endless logs."""

    def __init__(self, dialect: Dialect | None = None, version: Version | None = None) -> None:
        self._dialect = dialect
        self._version = version
        self._has_fixed_version = version is not None
        self._pending: dict[Any, _Request] = {}
        # Each tool's output schema and its `anthropic/maxResultSizeChars`.
        self._tools: dict[str, tuple[dict[str, Any] | None, int | None]] = {}
        self._context = CheckContext(version)
        self._has_jsonrpc = False

    def replies(self, value: Any, *, in_log_text: bool = False) -> Iterable[LoggedReply]:
        """Return the replies in one recorded value.

        A value *in_log_text* counts only if it looks like a message.
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
            name = result.get("protocolVersion") if isinstance(result, dict) else None
            if not self._has_fixed_version and isinstance(name, str):
                self._version = VERSIONS.get(name)
                self._context = CheckContext(self._version)
        elif method == _LIST:
            self._learn_tools(result)
            yield LoggedReply(result, pointer, "mcp", self._context)
        elif method == _CALL:
            context, tool = self._context, "" if request is None else request.tool
            if request is not None and tool in self._tools:
                schema, max_chars = self._tools[tool]
                context = CheckContext(
                    self._version, schema, _CALL, listed=True, max_chars=max_chars
                )
            yield LoggedReply(result, pointer, self._dialect or "mcp", context, tool)

    def _learn_tools(self, result: Any) -> None:
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and len(self._tools) < _MAX_TOOLS:
                schema, meta = tool.get("outputSchema"), tool.get("_meta")
                max_chars = meta.get(_MAX_CHARS) if isinstance(meta, dict) else None
                self._tools[str(tool.get("name"))] = (
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
        # An MCP Inspector entry has the request as `message`, along with the response.
        for name in _WRAPPERS:
            inner = _decode_text(value.get(name))
            if isinstance(inner, dict) and ("jsonrpc" in inner or _is_result(inner)):
                is_wrapper = True
                yield from self._replies_in(inner, f"{pointer}/{name}")
        if not is_wrapper and not self._has_jsonrpc and _LOG_MEMBERS.isdisjoint(value):
            yield LoggedReply(value, pointer, None, self._context)

    def _read_exchange(self, value: dict[str, Any], pointer: str) -> Iterator[LoggedReply]:
        """Yield the replies in a request-response pair, as in the MCP Inspector's history."""
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
    """Guess the method of an unrecorded request from the members of its result."""
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
    content = value.get("content")
    return isinstance(content, list) or "structuredContent" in value or "isError" in value


def _decode_text(value: Any) -> Any:
    """Decode a message that is stored as text; return any other value unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value


def _http_body(value: Any) -> Any:
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
    """Return the data of the last event, the response, if *body* is an SSE stream; else *body*."""
    if not isinstance(body, str) or not body.startswith(("event:", "data:", "id:", ":")):
        return body
    lines = [line[5:].strip() for line in body.splitlines() if line.startswith("data:")]
    return next((line for line in reversed(lines) if line), body)
