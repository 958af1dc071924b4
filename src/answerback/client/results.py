"""Turns the results of a server into replies; the only place that reads a tool's result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..dialects.common import META_PREFIX
from ..dialects.mcp import read
from ..dialects.mcp_blocks import read_block
from ..errors import INVALID_OUTPUT, MalformedReply, MissingExtraError
from ..reply import Reply, failure
from .listed import RemoteTool
from .mirrored_headers import header_paths

if TYPE_CHECKING:
    from ..rules.checks.ab32_output_schema import SchemaCheck

FINDINGS = META_PREFIX + "findings"
"""The key in `reply.meta` of what is wrong with the data of a reply."""
INVALID_RESPONSE = "INVALID_RESPONSE_FORMAT"


def tool_reply(result: Any) -> Reply[Any]:
    """The reply in the result of `tools/call`; a result that cannot be read is a failure."""
    kind = result.get("resultType", "complete") if isinstance(result, dict) else "complete"
    if kind != "complete":
        text = f"the server answered with a result of type {kind!r}, which is not supported"
        return failure(text, INVALID_RESPONSE, {"result": result})
    try:
        return read(result)
    except MalformedReply as exc:
        return failure(f"the reply cannot be read: {exc}", INVALID_RESPONSE, {"result": result})


def resource_reply(result: dict[str, Any]) -> Reply[Any]:
    """The contents of a resource, each as an embedded block."""
    found = result.get("contents")
    try:
        if not isinstance(found, list):
            raise MalformedReply("the result of resources/read must have a list of contents")
        blocks = [read_block({"type": "resource", "resource": each}) for each in found]
    except MalformedReply as exc:
        return failure(f"the resource cannot be read: {exc}", INVALID_RESPONSE, {"result": result})
    return Reply(content=tuple(blocks), meta=result.get("_meta") or {})


class KnownTool:
    """A tool from the server's list, with what its calls need."""

    def __init__(self, tool: RemoteTool) -> None:
        self.tool = tool
        self.paths = header_paths(tool.input_schema)
        self._check: SchemaCheck | None = None

    def checked(self, reply: Reply[Any], result: dict[str, Any], *, strict: bool) -> Reply[Any]:
        """The reply, with findings if its data breaks the output schema; a failure if *strict*."""
        if self.tool.output_schema is None or reply.error is not None:
            return reply
        if "structuredContent" not in result:
            findings = ["structuredContent is missing, although the tool has an output schema"]
        else:
            findings = self._violations(result["structuredContent"])
        if not findings:
            return reply
        if strict:
            text = f"the data breaks the tool's output schema: {findings[0]}"
            return failure(text, INVALID_OUTPUT, {"findings": findings, "result": result})
        return msgspec.structs.replace(reply, meta={**reply.meta, FINDINGS: findings})

    def _violations(self, data: Any) -> list[str]:
        """The violations of the schema; none can be found without jsonschema-rs."""
        if self._check is None:
            from ..rules.checks.ab32_output_schema import schema_check

            try:
                self._check = schema_check(self.tool.output_schema)
            except MissingExtraError:
                self._check = lambda _: []
        return [f"{place or '/'}: {text}" for place, text in self._check(data)]
