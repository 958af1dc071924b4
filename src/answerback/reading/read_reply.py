"""`read`, which turns any server's reply into a `Reply`.

The order of the checks follows the `direct` convention: a protocol error, `isError`,
`structuredContent`, text, other blocks. `dialects.verdicts` recognises a reply's dialect.
"""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import msgspec

from ..contract import ENVELOPE, STANDARD
from ..core.content import Block, Link, Text
from ..core.limits import (
    DEFAULT_RECEIVED,
    MAX_BLOCKS,
    MAX_BYTES,
    MAX_INNER_BYTES,
    MAX_VALUES,
    ReceivedLimits,
)
from ..core.reply import RESULT_MEMBERS, Error, Received, Reply
from ..core.shape import RESULT, Shape
from ..dialects import envelope, mcp, mcp_blocks, problem
from ..dialects.common import (
    META_PREFIX,
    answerback_meta,
    author_meta,
    encode,
    is_added,
    read_error,
    read_timestamp,
)
from ..dialects.status_and_headers import PROBLEM, HttpReply
from ..errors import UNKNOWN_ERROR, UNKNOWN_TEXT, MalformedReply
from ..rules.checks.ab1_forms import not_an_object, not_json
from ..rules.checks.ab2_failures import error_hidden_in_text, failure_as_json_text
from ..rules.finding import Fault, Finding
from ..rules.reply_view import NO_CONTEXT, ReplyView, is_declared
from ..rules.validation import check, repair, validate
from ..verdicts.forms import (
    finished_dialect,
    in_mcp_names,
    is_block_list,
    is_json_rpc,
    may_be_failure_line,
    received_dialect,
    result_in_mcp_names,
)
from ..verdicts.judge import is_failure_json, json_in_text
from ..verdicts.texts import failure_line
from .foreign_errors import (
    error_in_text,
    inner_result,
    json_rpc_error,
    object_error,
    other_result,
    pending_error,
)
from .sources import (
    TooLarge,
    load_json,
    read_response,
    response_in_events,
    source_of,
)

if TYPE_CHECKING:
    from .typed_data import TypedReader

T = TypeVar("T")

INVALID_FORMAT = "INVALID_RESPONSE_FORMAT"
TOO_LARGE = "TOO_LARGE"
_MAX_FINDINGS = 20
_MAX_TEXT = 10_000
"""Longer text is not searched for an error object."""
_SPACE = 1000
"""How many whitespace characters may precede JSON in text."""
_EVENT_STARTS = ("event:", "data:", "id:", "retry:", ":")
# The rules about base64 and media types, whose fixes make a block readable.
_FIXED_RULES = frozenset({"AB401", "AB402", "AB403"})
# Values of `isError` that other servers send; 1 equals True, and 0 equals False.
_TRUE = (True, "true", "True")
_FALSE: tuple[Any, ...] = (False, "false", "False", None, "", {}, [])
_MAX_REASON = 200


class Hints(msgspec.Struct, frozen=True):
    """Facts that the caller knows about the reply."""

    wants_text: bool = False
    """The caller wants a str: the text itself is the data, even if it is JSON."""
    has_type: bool = False
    """The caller knows the data's type: it is data, even if it resembles an error."""
    schema: dict[str, Any] | None = None
    """The tool's output schema."""
    is_wrapped: bool = False
    """Whether the schema says that the data is in an object's `result` member."""
    limits: ReceivedLimits = DEFAULT_RECEIVED

    @classmethod
    def of(
        cls,
        schema: dict[str, Any] | None,
        into: Any = None,
        limits: ReceivedLimits = DEFAULT_RECEIVED,
    ) -> Hints:
        match schema:
            case {"x-fastmcp-wrap-result": True}:
                is_wrapped = True
            case {"properties": {"result": _, **others}, "required": ["result"]}:
                is_wrapped = not others
            case _:
                is_wrapped = False
        return cls(into is str, into is not None, schema, is_wrapped, limits)

    @property
    def is_data(self) -> bool:
        """Whether a type or a schema says that this is data, and not another kind of result."""
        return self.has_type or self.schema is not None

    def says_failed(self, data: Any) -> bool:
        """Return whether the data says that the call failed."""
        return not self.has_type and _says_failed(data, self.schema)


@overload
def read(
    result: Any,
    into: type[T],
    *,
    output_schema: dict[str, Any] | None = None,
    strict: bool = False,
    max_bytes: int = MAX_BYTES,
    max_values: int = MAX_VALUES,
) -> Reply[T]: ...
@overload
def read(
    result: Any,
    into: Any = None,
    *,
    output_schema: dict[str, Any] | None = None,
    strict: bool = False,
    max_bytes: int = MAX_BYTES,
    max_values: int = MAX_VALUES,
) -> Reply[Any]: ...
def read(
    result: Any,
    into: Any = None,
    *,
    output_schema: dict[str, Any] | None = None,
    strict: bool = False,
    max_bytes: int = MAX_BYTES,
    max_values: int = MAX_VALUES,
) -> Reply[Any]:
    """Read any server's reply, in any form, as a `Reply`.

    *result* is a dict, JSON as text or bytes, an SDK's model, or an HTTP response. *into* is the
    data's type. *output_schema* is the tool's schema. *max_bytes* is the maximum size of a reply.
    *max_values* is the maximum number of JSON values in a reply. An unreadable or oversized reply
    becomes a failed reply; with *strict* it raises `MalformedReply`, a `ValueError`.
    """
    limits = ReceivedLimits(max_bytes, max_values)
    reply = read_with(result, Hints.of(output_schema, into, limits))
    if into is not None:
        was_ok = reply.ok
        reply = typed_reader(into).read(reply)
        if strict and was_ok and reply.error is not None:
            raise MalformedReply(reply.error.message)
    if strict and reply.received is not None and reply.received.findings:
        found = reply.received.findings[0]
        where = f"{found.pointer}: " if found.pointer else ""
        raise MalformedReply(f"{where}{found.message}")
    return reply


def typed_reader(into: Any) -> TypedReader:
    """Return a reader that converts a reply's data to a type; raise TypeError if there is none."""
    from .typed_data import TypedReader

    return TypedReader(into)


def read_with(result: Any, hints: Hints) -> Reply[Any]:
    """Read a server's reply with these *hints*; never raise."""
    if isinstance(result, Reply):
        return result
    if type(result) is dict and (plain := _read_plain(result, hints)) is not None:
        return plain
    raw = result
    try:
        raw = source_of(result, hints.limits)
        if isinstance(raw, HttpReply):
            reply, findings = read_response(
                raw, lambda found: _read_json(found, hints), hints.limits.values
            )
        else:
            reply, findings = _read_json(raw, hints)
    except TooLarge as exc:
        return _failed(str(exc), raw, code=TOO_LARGE)
    except MalformedReply as exc:
        return _failed(str(exc), raw)
    except Exception as exc:  # noqa: BLE001 -- a caller's object may raise anything when it is read
        return _failed(f"the reply cannot be read: {type(exc).__name__}", raw)
    received = Received(raw, reply.data_from, findings, hidden_failures)
    return msgspec.structs.replace(reply, received=received)


def _read_plain(found: dict[str, Any], hints: Hints) -> Reply[Any] | None:
    """Read a successful MCP result with only plain text and data; return None for any other.

    Nearly all results are like that, and this takes a fifth of the time.
    """
    if not found.keys() <= RESULT_MEMBERS or found.get("isError", False) is not False:
        return None
    if found.get("resultType", "complete") != "complete":
        return None
    if (meta := _plain_meta(found.get("_meta"))) is None:
        return None
    if (content := _plain_texts(found.get("content"))) is None:
        return None
    data = found.get("structuredContent")
    if data is None:
        # Text that may be JSON or an exception needs the full reader, as does null.
        if "structuredContent" in found or (
            len(content) == 1
            and (
                hints.wants_text
                or _is_like_json(content[0].text)
                or may_be_failure_line(content[0].text)
            )
        ):
            return None
        return Reply(
            content=content, meta=meta, received=Received(found, None, (), hidden_failures)
        )
    if type(data) is not dict:
        return None
    value, shape = _unwrapped(data, meta, hints)
    # Only an object or a list can say that the call failed.
    if isinstance(value, dict | list) and hints.says_failed(data):
        return None
    received = Received(found, "structuredContent", (), hidden_failures)
    return Reply(content=content, data=value, meta=meta, shape=shape, received=received)


def _plain_texts(blocks: Any) -> tuple[Text, ...] | None:
    if type(blocks) is not list or not 0 < len(blocks) <= MAX_BLOCKS:
        return None
    texts = []
    for block in blocks:
        if type(block) is not dict or len(block) != 2 or block.get("type") != "text":
            return None
        text = block.get("text")
        if type(text) is not str:
            return None
        texts.append(Text(text))
    return tuple(texts)


def _plain_meta(meta: Any) -> dict[str, Any] | None:
    """Return a result's `_meta`, or None if it is malformed or has our keys."""
    if meta is None:
        return {}
    if type(meta) is not dict:
        return None
    for key in meta:
        if str(key).startswith(META_PREFIX):
            return None
    return dict(meta)


def _failed(message: str, raw: Any, code: str = INVALID_FORMAT) -> Reply[Any]:
    findings: tuple[Finding, ...] = ()
    if isinstance(raw, dict):
        # A caller's dict may contain anything.
        with suppress(Exception):
            findings = validate(raw)
    if not any(each.severity == "error" for each in findings):
        rule = not_json if isinstance(raw, bytes | str) else not_an_object
        findings = (rule.finding(Fault("", message)),)
    shown = [msgspec.to_builtins(each) for each in findings[:_MAX_FINDINGS]]
    error = Error(code, message, {"findings": shown})
    return Reply(error=error, received=Received(raw, None, findings))


def _says_failed(data: Any, schema: dict[str, Any] | None) -> bool:
    """Return whether data is an error object, unless the tool's output schema declares it."""
    if not is_failure_json(data):
        return False
    return schema is None or not is_declared(data, schema)


def _read_json(found: Any, hints: Hints) -> tuple[Reply[Any], tuple[Any, ...]]:
    """Read decoded JSON, or text that is not JSON; also return findings about the original."""
    if isinstance(found, str):
        response = None
        if found.startswith(_EVENT_STARTS):
            response = response_in_events(found, hints.limits.values)
        if response is None:
            return _from_text(Reply(content=(Text(found),)), hints), ()
        found = response
    if isinstance(found, list) and found and all(map(is_json_rpc, found)):
        if len(found) > 1:
            raise MalformedReply(f"there are {len(found)} JSON-RPC messages; read one of them")
        found = found[0]
    if not is_json_rpc(found):
        return _read_result(found, hints, "body")
    match found:
        case {"error": error} if error is not None:
            return Reply(error=json_rpc_error(error)), ()
        case {"result": result}:
            return _read_result(result, hints, "result")
        case {"code": _}:
            return Reply(error=json_rpc_error(found)), ()
    raise MalformedReply("this is a JSON-RPC request or notification, not a response")


def _read_result(found: Any, hints: Hints, place: str) -> tuple[Reply[Any], tuple[Any, ...]]:
    if is_block_list(found):
        found = {"content": found}
    if (renamed := result_in_mcp_names(found)) is not found:
        reply, findings = _read_result(renamed, hints, place)
        if {"is_error", "structured_content"} <= found.keys():
            # The SDK's dump has both names.
            return reply, findings
        misspelt = [each for each in check(found, "mcp") if each.rule == "AB118"]
        return reply, (*misspelt, *findings)
    if isinstance(found, dict) and (pending := pending_error(found)) is not None:
        return Reply(error=pending, meta=author_meta(found.get("_meta"))), ()
    match received_dialect(found):
        case "mcp":
            _refuse_many_blocks(found.get("content"))
            return _read_mcp(found, hints)
        case "envelope":
            _refuse_many_blocks(found.get("content"))
            return _read_envelope(found)
        case "problem":
            response = HttpReply(found["status"], encode(found), PROBLEM)
            return problem.read(response), ()
    if (inner := inner_result(found)) is not msgspec.UNSET:
        return _read_result(inner, hints, place)
    if not hints.is_data and (other := other_result(found)) is not None:
        _refuse_many_blocks(other.content)
        return other, ()
    if hints.says_failed(found):
        return Reply(error=object_error(found)), ()
    meta: dict[str, Any] = {}
    if not hints.is_data and isinstance(found, dict) and isinstance(found.get("_meta"), dict):
        # A list's or prompt's metadata is not part of its data.
        meta = author_meta(found["_meta"])
        found = {name: each for name, each in found.items() if name != "_meta"}
    data, shape = _unwrapped(found, {}, hints)
    return Reply(data=data, meta=meta, shape=shape, received=Received(None, place)), ()


def _refuse_many_blocks(blocks: Any) -> None:
    if isinstance(blocks, list | tuple) and len(blocks) > MAX_BLOCKS:
        raise TooLarge(f"the reply has {len(blocks)} blocks; at most {MAX_BLOCKS} are read")


def _read_mcp(found: dict[str, Any], hints: Hints) -> tuple[Reply[Any], tuple[Any, ...]]:
    contract = ENVELOPE if "success" in found else STANDARD
    findings: tuple[Any, ...] = ()
    try:
        reply = mcp.read(found, contract=contract)
    except MalformedReply:
        found, findings = _mended(found, "mcp")
        reply = mcp.read(found, contract=contract)
    if reply.error is not None:
        return _with_error_in_text(reply, found), findings
    # Since 2026-07-28, the data may be null; before that, null meant that there was no data.
    is_null = "resultType" in found and found.get("structuredContent", msgspec.UNSET) is None
    if reply.data is msgspec.UNSET and not is_null:
        # A block of an unknown type was read as text, so look at the type that was sent.
        match found.get("content"):
            case [{"type": "text"}]:
                reply = _from_text(reply, hints)
        return reply, findings
    if reply.data is msgspec.UNSET:
        reply = msgspec.structs.replace(reply, data=None)
    if hints.says_failed(reply.data):
        error = object_error(reply.data)
        return msgspec.structs.replace(reply, data=msgspec.UNSET, error=error), findings
    data, shape = _unwrapped(reply.data, found.get("_meta"), hints)
    received = Received(None, "structuredContent" if "structuredContent" in found else "data")
    reply = msgspec.structs.replace(reply, data=data, shape=shape, received=received)
    return reply, findings


def _with_error_in_text(reply: Reply[Any], found: dict[str, Any]) -> Reply[Any]:
    """Return a failure with the code and details from its text, unless it already has them."""
    error = reply.error
    if error is None or error.code != UNKNOWN_ERROR or error.kind is not None:
        return reply
    if "answerback/error" in (found.get("_meta") or {}):
        return reply
    found_json = _json_in_text(reply)
    flagged = found_json | {"isError": True} if isinstance(found_json, dict) else found_json
    if _says_failed(flagged, None):
        stated = object_error(found_json)
        if stated.message == UNKNOWN_TEXT:
            stated = msgspec.structs.replace(stated, message=error.message)
    else:
        stated = error_in_text(error.message) or error
    place = None
    if error.details is not None:
        stated = msgspec.structs.replace(stated, details=error.details)
        place = "structuredContent"
    return msgspec.structs.replace(reply, error=stated, received=Received(None, place))


def _read_envelope(found: dict[str, Any]) -> tuple[Reply[Any], tuple[Any, ...]]:
    findings: tuple[Any, ...] = ()
    try:
        reply = envelope.read(found)
    except MalformedReply:
        found, findings = _mended(found, "envelope")
        reply = envelope.read(found)
    states_failure = found.get("success") is False or found.get("isError") is True
    if not states_failure and not found.get("error"):
        message = found.get("message")
        if not reply.content and isinstance(message, str):
            reply = msgspec.structs.replace(reply, content=(Text(message),))
        place = "data" if reply.has_data else None
        return msgspec.structs.replace(reply, received=Received(None, place)), findings
    if reply.error is None or not isinstance(found.get("error"), dict):
        stated = object_error(found)
        if stated.message == UNKNOWN_TEXT and reply.error is not None:
            stated = msgspec.structs.replace(stated, message=reply.error.message)
        reply = msgspec.structs.replace(reply, data=msgspec.UNSET, error=stated)
    return reply, findings


def _from_text(reply: Reply[Any], hints: Hints) -> Reply[Any]:
    """Return the reply with the data in its text, if the text is its only block and is JSON."""
    if hints.wants_text and len(reply.content) == 1 and isinstance(reply.content[0], Text):
        return _with_text_data(reply, reply.content[0].text)
    found = _json_in_text(reply, hints.limits.values)
    if found is None:
        return _with_failure_in_text(reply, hints)
    if hints.says_failed(found):
        return msgspec.structs.replace(reply, error=object_error(found))
    data, shape = _unwrapped(found, {}, hints)
    if shape is not None or not isinstance(found, dict):
        return _with_text_data(reply, data, shape)
    match finished_dialect(found):
        case "envelope" if "data" in found:
            # An envelope as text, which the `standard` convention forbids.
            return _with_text_data(reply, found["data"])
        case "mcp":
            try:
                inner = mcp.read(found)
            except MalformedReply:
                return _with_text_data(reply, found)
            place = "text" if inner.has_data else None
            return msgspec.structs.replace(inner, meta=reply.meta, received=Received(None, place))
    return _with_text_data(reply, found)


def _with_failure_in_text(reply: Reply[Any], hints: Hints) -> Reply[Any]:
    """Return a failed reply if its only text can only be a failure, such as a traceback.

    An error object in a code fence, or encoded twice, is one too; other JSON there stays text.
    """
    match reply.content:
        case (Text(text=text),) if may_be_failure_line(text):
            if (line := failure_line(text)) is not None:
                error = error_in_text(line) or Error(UNKNOWN_ERROR, line)
                return msgspec.structs.replace(reply, error=error)
            found = json_in_text(text)
            if hints.says_failed(found):
                return msgspec.structs.replace(reply, error=object_error(found))
    return reply


def _with_text_data(reply: Reply[Any], data: Any, shape: Shape | None = None) -> Reply[Any]:
    return msgspec.structs.replace(reply, data=data, shape=shape, received=Received(None, "text"))


def _json_in_text(reply: Reply[Any], max_values: int = MAX_VALUES) -> Any:
    match reply.content:
        case (Text(text=text),) if _is_like_json(text) and len(text) <= MAX_INNER_BYTES:
            try:
                return load_json(text, max_values)
            except MalformedReply:
                return None
    return None


def _is_like_json(text: str) -> bool:
    # Only the beginning, because `lstrip` would copy a large string.
    return text[:_SPACE].lstrip()[:1] in ("{", "[")


def _unwrapped(data: Any, meta: Any, hints: Hints) -> tuple[Any, Shape | None]:
    """Return the data without `{"result": …}` if a marker or the schema says it is wrapped."""
    if not isinstance(data, dict) or len(data) != 1 or "result" not in data:
        return data, None
    if hints.is_wrapped:
        return data["result"], RESULT
    match meta:
        case {"fastmcp": {"wrap_result": True}}:
            return data["result"], RESULT
    return data, None


def hidden_failures(reply: Reply[Any]) -> tuple[Finding, ...]:
    """Return the findings from AB201 and AB202: a success whose text or JSON says it failed."""
    content = [
        {"type": "text", "text": block.text[:_MAX_TEXT]} if isinstance(block, Text) else {}
        for block in reply.content
    ]
    found: dict[str, Any] = {"content": content}
    if reply.has_data and reply.data_from != "text":
        wrapped = reply.shape is RESULT
        found["structuredContent"] = {"result": reply.data} if wrapped else reply.data
    view = ReplyView(found, "mcp", NO_CONTEXT)
    rules = [error_hidden_in_text]
    # An envelope states its own success; its data may be an error that the caller asked about.
    if reply.data_from != "data":
        rules.append(failure_as_json_text)
    return tuple(rule.finding(fault) for rule in rules for fault in rule.check(view))


def _mended(
    found: dict[str, Any], dialect: Literal["mcp", "envelope"]
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Return a readable reply, and the findings about the original.

    An unreadable block becomes a text block that says so. Raises MalformedReply if nothing can be
    read.
    """
    findings = tuple(each for each in check(found, dialect) if each.severity == "error")
    readable = {**found, "content": _readable_blocks(found.get("content"), dialect)}
    if dialect == "mcp":
        flag = found.get("isError")
        failed = flag in _TRUE
        if not failed and flag not in _FALSE:
            raise MalformedReply("isError must be true or false")
        readable["isError"] = failed
        # Remove our own error from `_meta` if it is malformed; the text has the message too.
        try:
            read_error(answerback_meta(found.get("_meta"), "error"), "")
        except MalformedReply:
            meta = found["_meta"].items()
            readable["_meta"] = {key: each for key, each in meta if key != "answerback/error"}
    else:
        error = found.get("error")
        failed = found.get("success") is False or bool(error)
        try:
            read_timestamp(found.get("timestamp"))
        except MalformedReply:
            del readable["timestamp"]
        if not isinstance(found.get("success"), bool):
            readable["success"] = not error
        if isinstance(error, dict):
            try:
                read_error(error, "")
            except MalformedReply:
                stated = object_error({"error": error})
                members = {"code": stated.code, "message": stated.message, "details": error}
                readable["error"] = members
    has_data = not {"structuredContent", "data"}.isdisjoint(found) or found.get("content") == []
    if not readable["content"] and not has_data and not failed:
        raise MalformedReply("the reply has no content that can be read")
    return readable, findings


def _readable_blocks(content: Any, dialect: Literal["mcp", "envelope"]) -> list[Any]:
    if isinstance(content, str | dict):
        content = [content]
    if not isinstance(content, list):
        return []
    blocks = [block for block in content if not is_added(block)]
    if dialect == "mcp":
        copy = {"content": deepcopy(blocks)}
        repair(copy, "mcp", NO_CONTEXT, _FIXED_RULES)
        blocks = copy["content"]
    write_block = (mcp_blocks if dialect == "mcp" else envelope).write_block
    return [msgspec.to_builtins(write_block(_read_in_any_form(block))) for block in blocks]


def _read_in_any_form(block: Any) -> Block:
    """Read a block in MCP's form, in the envelope's form, or with the SDK's Python names."""
    if not isinstance(block, dict):
        return Text(block if isinstance(block, str) else _unreadable(f"it is {block!r}"))
    reason = ""
    for read_block in (mcp_blocks.read_block, envelope.read_block, _read_renamed, _read_odd):
        try:
            return read_block(block)
        except MalformedReply as exc:
            reason = reason or str(exc)
    return Text(_unreadable(reason))


def _unreadable(reason: str) -> str:
    return f"[a block that cannot be read: {reason[:_MAX_REASON]}]"


def _read_renamed(block: dict[str, Any]) -> Block:
    return mcp_blocks.read_block(in_mcp_names(block))


def _read_odd(block: dict[str, Any]) -> Block:
    """Read block forms that some servers send although no specification defines them."""
    match block:
        case {"type": "text", "text": int() | float() as number}:
            return Text(str(number))
        case {"type": "resource", "uri": str(uri)}:
            return Link(uri, str(block.get("name", uri)))
        case {"type": "resource", "resource": {"uri": str(uri)} as resource}:
            return Link(uri, str(resource.get("name", uri)))
    raise MalformedReply("not a known form of a block")
