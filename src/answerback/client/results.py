"""A server's replies: `read` reads the results, and the tool's output schema checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..core.json_value import Json, JsonObject
from ..core.limits import DEFAULT_RECEIVED, MAX_BLOCKS, ReceivedLimits
from ..core.log import logger
from ..core.reply import Error, Received, Reply
from ..dialects.mcp_blocks import read_block
from ..error_codes import INVALID_OUTPUT
from ..errors import MalformedReply, MissingExtraError
from ..protocol.jsonrpc import RpcError
from ..reading.read_reply import Hints, read_with
from .faults import INVALID_RESPONSE, TOO_LARGE, NoAnswer, failed_reply
from .listed import RemoteTool
from .mirrored_headers import BadAnnotation, header_paths

if TYPE_CHECKING:
    from ..rules.finding import Finding
    from ..types.schema_check import SchemaCheck

_STRUCTURED = "structuredContent"


def resource_reply(result: JsonObject) -> Reply[Any]:
    """Return a resource's contents, each as an embedded block."""
    found = result.get("contents")
    received = Received(result)
    try:
        if not isinstance(found, list):
            raise MalformedReply("the result of resources/read must have a list of contents")
        if len(found) > MAX_BLOCKS:
            text = f"the resource has {len(found)} contents; at most {MAX_BLOCKS} are read"
            return Reply(error=Error(TOO_LARGE, text), received=received)
        blocks = [read_block({"type": "resource", "resource": each}) for each in found]
    except MalformedReply as exc:
        error = Error(INVALID_RESPONSE, f"the resource cannot be read: {exc}")
        return Reply(error=error, received=received)
    return Reply(content=tuple(blocks), meta=result.get("_meta") or {}, received=received)


MAY_HAVE_RUN = "it may have taken effect; check before you repeat it"


def failed_call(error: NoAnswer | RpcError, known: KnownTool | None) -> Reply[Any]:
    """Return the reply for a tool's call that got no result; its hint reaches a model too."""
    reply = failed_reply(error)
    is_safe = known is not None and known.tool.is_safe_to_repeat
    if reply.error is None or is_safe or not isinstance(error, NoAnswer) or not error.may_have_run:
        return reply
    told = msgspec.structs.replace(reply.error, hint=MAY_HAVE_RUN)
    return msgspec.structs.replace(reply, error=told)


class KnownTool:
    """A tool from the server's list, with what its calls need."""

    def __init__(self, tool: RemoteTool, limits: ReceivedLimits = DEFAULT_RECEIVED) -> None:
        self.tool = tool
        self.needs_task = tool.needs_task
        self.paths = header_paths(tool.input_schema)
        schema = tool.output_schema
        self.output_schema = schema if isinstance(schema, dict) else None
        self._hints = Hints.of(self.output_schema, limits=limits)
        self._check: SchemaCheck | None = None

    def reply(self, result: Json, *, strict: bool) -> Reply[Any]:
        """Read this tool's result: a dict, or a plain REST response.

        Data that breaks the output schema is a finding of the reply, or an error if *strict*.
        """
        reply = read_with(result, self._hints)
        if self.output_schema is None or reply.error is not None:
            return reply
        place = None if reply.received is None else reply.received.data_from
        if reply.data is msgspec.UNSET or place == "text":
            found = _data_missing(reply)
        else:
            data = reply.data if reply.shape is None else {"result": reply.data}
            violations = (self._check or self._make_check())(data)
            if not violations:
                return reply
            found = _violated(violations, "/structuredContent" if place == _STRUCTURED else "")
        return _with_findings(reply, found, strict=strict) if found else reply

    def _make_check(self) -> SchemaCheck:
        """Make the check against the schema; it finds nothing without jsonschema-rs."""
        try:
            from ..types.schema_check import schema_check

            self._check = schema_check(self.output_schema or {})
        except MissingExtraError:
            self._check = lambda _: []
        return self._check


def known_tools(
    tools: list[RemoteTool], limits: ReceivedLimits = DEFAULT_RECEIVED
) -> dict[str, KnownTool]:
    """Return the tools by name, without those that a client must not call."""
    found = {}
    for tool in tools:
        try:
            found[tool.name] = KnownTool(tool, limits)
        except BadAnnotation as exc:
            logger("answerback.client").warning("the tool %r is left out: %s", tool.name, exc)
    return found


def _data_missing(reply: Reply[Any]) -> tuple[Finding, ...]:
    if not isinstance(reply.raw, dict):
        # A plain REST response may be a text or an image.
        return ()
    text = "the tool has an output schema, and the reply no structuredContent"
    return _findings([("", text)], is_missing=True)


def _violated(violations: list[tuple[str, str]], place: str) -> tuple[Finding, ...]:
    return _findings([(place + pointer, text) for pointer, text in violations], is_missing=False)


def _findings(faults: list[tuple[str, str]], *, is_missing: bool) -> tuple[Finding, ...]:
    from ..rules.checks.ab32_output_schema import data_missing, output_schema_violated
    from ..rules.finding import Fault

    rule = data_missing if is_missing else output_schema_violated
    return tuple(rule.finding(Fault(*fault)) for fault in faults)


def _with_findings(reply: Reply[Any], found: tuple[Finding, ...], *, strict: bool) -> Reply[Any]:
    known = reply.received or Received()
    received = msgspec.structs.replace(known, findings=known.findings + found)
    if not strict:
        return msgspec.structs.replace(reply, received=received)
    where = f"{found[0].pointer}: " if found[0].pointer else ""
    text = f"the data breaks the tool's output schema: {where}{found[0].message}"
    details = {"findings": [msgspec.to_builtins(each) for each in found]}
    error = Error(INVALID_OUTPUT, text, details)
    return msgspec.structs.replace(reply, data=msgspec.UNSET, error=error, received=received)
