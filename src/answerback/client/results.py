"""Reads a server's results and checks them against the tool's output schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..core.content import Block
from ..core.json_value import Json, JsonObject
from ..core.limits import MAX_BLOCKS, ReceivedLimits
from ..core.log import logger
from ..core.reply import Error, Received, Reply
from ..dialects.mcp_blocks import read_block
from ..errors import INVALID_OUTPUT, MalformedReply, MissingExtraError
from ..protocol.jsonrpc import RpcError
from ..reading.read_reply import Hints, read_with
from ..rules.checks.ab3_text_and_data import data_missing, output_schema_violated
from ..rules.finding import Fault, Finding
from .faults import INVALID_RESPONSE, TOO_LARGE, NoAnswer, failed_reply
from .frames import BadAnnotation, header_paths

if TYPE_CHECKING:
    from ..types.schema_check import SchemaCheck


T = TypeVar("T", bound=msgspec.Struct)


class ListedEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The members shared by all entries in a server's lists."""

    title: str | None = None
    """The name shown to people."""
    description: str | None = None
    """A description for models."""
    icons: Any = None
    """Icons for hosts."""
    meta: Any = msgspec.field(default=None, name="_meta")
    """The entry's `_meta`."""


class RemoteTool(ListedEntry, frozen=True, kw_only=True):
    """A server's tool."""

    name: str
    """The tool's name."""
    input_schema: Any = {}
    """The JSON Schema of the arguments."""
    output_schema: Any = None
    """The JSON Schema of the data; None if the server sends none."""
    annotations: Any = None
    """Hints for hosts, such as `readOnlyHint`."""
    execution: Any = None
    """Whether the tool runs as a task (MCP 2025-11-25)."""

    @property
    def needs_task(self) -> bool:
        """Whether the server says that the tool only runs as a task (MCP 2025-11-25)."""
        execution = self.execution if isinstance(self.execution, dict) else {}
        return execution.get("taskSupport") == "required"

    @property
    def is_safe_to_repeat(self) -> bool:
        """Whether the server says that the tool is safe to call again."""
        hints = self.annotations if isinstance(self.annotations, dict) else {}
        return hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True


class RemoteResource(ListedEntry, frozen=True, kw_only=True):
    """A server's resource."""

    uri: str
    """The resource's URI."""
    name: str = ""
    """The resource's name."""
    mime_type: str | None = None
    """The media type of the contents."""
    size: Any = None
    """The contents' size in bytes."""
    annotations: Any = None
    """The audience, the priority and the time of the last change."""


class RemoteTemplate(ListedEntry, frozen=True, kw_only=True):
    """A template for resource URIs."""

    uri_template: str
    """The URI template, such as users://{id}/profile (RFC 6570)."""
    name: str = ""
    """The template's name."""
    mime_type: str | None = None
    """The media type of the contents."""
    annotations: Any = None
    """The audience, the priority and the time of the last change."""


class RemotePrompt(ListedEntry, frozen=True, kw_only=True):
    """A server's prompt, and its arguments."""

    name: str
    """The prompt's name."""
    arguments: Any = ()
    """The arguments: objects with `name`, `description` and `required`."""


class PromptMessage(msgspec.Struct, frozen=True):
    role: str
    content: Block


class FilledPrompt(msgspec.Struct, frozen=True):
    """A prompt's messages, with its arguments filled in."""

    messages: tuple[PromptMessage, ...]
    """The messages, each with a `role` and a `content` block."""
    description: str = ""
    """What the prompt is for."""

    @classmethod
    def read(cls, result: JsonObject) -> FilledPrompt:
        """Read the result of `prompts/get`; raises MalformedReply."""
        found = result.get("messages")
        given = found if isinstance(found, list) else []
        if len(given) > MAX_BLOCKS:
            raise MalformedReply(f"it has {len(given)} messages; at most {MAX_BLOCKS} are read")
        messages = [each for each in given if isinstance(each, dict)]
        return cls(
            tuple(
                PromptMessage(str(each.get("role")), read_block(each.get("content")))
                for each in messages
            ),
            str(result.get("description") or ""),
        )


def read_entries(found: Iterable[Any], kind: type[T]) -> list[T]:
    """Return a list's entries without the malformed ones."""
    entries, malformed, reason = [], 0, ""
    for each in found:
        try:
            entries.append(msgspec.convert(each, kind))
        except msgspec.ValidationError as exc:
            malformed, reason = malformed + 1, reason or str(exc)
    if malformed:
        text = "%d entries in a list from the server are malformed; the first: %s"
        logger("answerback.client").warning(text, malformed, reason)
    return entries


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


def failed_call(error: NoAnswer | RpcError, known: KnownTool | None) -> Reply[Any]:
    """Return the reply for a tool call that got no result; its hint is also shown to models."""
    reply = failed_reply(error)
    is_safe = known is not None and known.tool.is_safe_to_repeat
    if reply.error is None or is_safe or not isinstance(error, NoAnswer) or not error.may_have_run:
        return reply
    hint = "it may have taken effect; check before you repeat it"
    hinted = msgspec.structs.replace(reply.error, hint=hint)
    return msgspec.structs.replace(reply, error=hinted)


class KnownTool:
    """A tool from the server's list, with everything needed to call it."""

    def __init__(self, tool: RemoteTool, limits: ReceivedLimits) -> None:
        self.tool = tool
        self.needs_task = tool.needs_task
        self.paths = header_paths(tool.input_schema)
        schema = tool.output_schema
        self.output_schema = schema if isinstance(schema, dict) else None
        self._hints = Hints.of(self.output_schema, limits=limits)
        self._check: SchemaCheck | None = None

    def reply(self, result: Json, *, strict: bool) -> Reply[Any]:
        """Read this tool's result: a dict, or a plain REST response.

        Data that violates the output schema is a finding on the reply, or an error if *strict*.
        """
        reply = read_with(result, self._hints)
        if self.output_schema is None or reply.error is not None:
            return reply
        place = None if reply.received is None else reply.received.data_from
        if reply.data is msgspec.UNSET or place == "text":
            if not isinstance(reply.raw, dict):
                # A plain REST response may be text or an image.
                return reply
            text = "the tool has an output schema, but the reply has no structuredContent"
            found: tuple[Finding, ...] = (data_missing.finding(Fault("", text)),)
        else:
            data = reply.data if reply.shape is None else {"result": reply.data}
            violations = (self._check or self._make_check())(data)
            if not violations:
                return reply
            above = "/structuredContent" if place == "structuredContent" else ""
            found = tuple(
                output_schema_violated.finding(Fault(above + pointer, text))
                for pointer, text in violations
            )
        known = reply.received or Received()
        received = msgspec.structs.replace(known, findings=known.findings + found)
        if not strict:
            return msgspec.structs.replace(reply, received=received)
        where = f"{found[0].pointer}: " if found[0].pointer else ""
        text = f"the data breaks the tool's output schema: {where}{found[0].message}"
        details = {"findings": [msgspec.to_builtins(each) for each in found]}
        error = Error(INVALID_OUTPUT, text, details)
        return msgspec.structs.replace(reply, data=msgspec.UNSET, error=error, received=received)

    def _make_check(self) -> SchemaCheck:
        """Make the schema check; without jsonschema-rs, it always passes."""
        try:
            from ..types.schema_check import schema_check

            self._check = schema_check(self.output_schema or {})
        except MissingExtraError:
            self._check = lambda _: []
        return self._check


def known_tools(tools: list[RemoteTool], limits: ReceivedLimits) -> dict[str, KnownTool]:
    """Return the tools by name, except those that a client must not call."""
    found = {}
    for tool in tools:
        try:
            found[tool.name] = KnownTool(tool, limits)
        except BadAnnotation as exc:
            logger("answerback.client").warning("the tool %r is left out: %s", tool.name, exc)
    return found
