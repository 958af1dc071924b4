"""One reply, seen from everywhere: each dialect's form, what models are shown, broken rules.

All of it is worked out from the MCP result that the page received; no tool runs again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import msgspec

from ...contract import STANDARD, Contract, Dialect
from ...core.content import Text
from ...core.reply import Reply
from ...core.versions import VERSIONS, Version
from ...dialects import shape_of, write
from ...dialects.accept import MEDIA_TYPES
from ...dialects.hosts import FRAMEWORKS, HOSTS
from ...dialects.seen_reply import seen_by
from ...errors import InvalidInput, MissingExtraError
from ...reading import read
from ...rules.catalogue import RULES
from ...rules.finding import Finding
from ...rules.reply_view import CheckContext
from ...rules.rule_pages import terminal_page
from ...rules.validation import check

_MAX_SHOWN = 50_000
"""How many characters of one text are sent to the page."""
_MAX_FINDINGS = 100
_ACCEPT = {dialect: media for media, dialect in MEDIA_TYPES.items()}
_MAX_CHARS = "anthropic/maxResultSizeChars"


class ListedTool(msgspec.Struct, rename="camel"):
    """The parts of a tool's entry in `tools/list` that the views need."""

    name: str
    output_schema: dict[str, Any] | None = None
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")

    @property
    def max_chars(self) -> int | None:
        found = (self.meta or {}).get(_MAX_CHARS)
        return found if isinstance(found, int) else None


class ViewsRequest(msgspec.Struct):
    """The body of a request: a result, and where it comes from."""

    result: dict[str, Any]
    tool: ListedTool
    version: str = ""
    """The version of MCP that the result is written in."""


_requests = msgspec.json.Decoder(ViewsRequest)


class WrittenReply(msgspec.Struct):
    """A reply as a dialect writes it."""

    dialect: Dialect
    accept: str
    """The media type with which a client asks for it; empty for the app's own dialect."""
    status: int
    media_type: str
    headers: dict[str, str]
    body: str
    """JSON; empty if the body is not text."""
    size: int


class SeenBy(msgspec.Struct):
    """A reply as a host or a framework shows it to a model."""

    id: str
    title: str
    is_host: bool
    part: str
    text: str
    size: int
    """How many characters the text has; *text* may have fewer."""
    tokens: int
    media: list[str]
    failed: bool
    lost: list[str]
    cut: str
    large: str
    """Says how it cuts large replies."""
    date: str
    source: str


class ShownFinding(msgspec.Struct):
    """A finding, with its rule's page."""

    rule: str
    name: str
    severity: str
    pointer: str
    message: str
    hint: str
    page: str


class ReplyViews(msgspec.Struct):
    dialects: list[WrittenReply]
    models: list[SeenBy]
    findings: list[ShownFinding]
    rules: int
    """How many rules there are."""
    unchecked: str
    """Why the output schema was not checked; empty if it was."""


def encoded_views(body: bytes, contract: Contract = STANDARD) -> bytes:
    """Return the JSON of all views; *body* is a `ViewsRequest`. Raises InvalidInput."""
    try:
        request = _requests.decode(body)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise InvalidInput(f"the views of a reply need its result and its tool: {exc}") from exc
    return msgspec.json.encode(reply_views(request, contract))


def reply_views(request: ViewsRequest, contract: Contract = STANDARD) -> ReplyViews:
    """Return all views of a result; *contract* is that of the app which sent it."""
    result, tool = request.result, request.tool
    reply = read(result, output_schema=tool.output_schema)
    version = VERSIONS.get(request.version)
    findings, unchecked = _findings(result, tool, version)
    return ReplyViews(
        dialects=[_written(reply, dialect, contract, version) for dialect in get_args(Dialect)],
        models=list(_models(result, tool.max_chars)),
        findings=[
            ShownFinding(
                rule=finding.rule,
                name=finding.name,
                severity=finding.severity,
                pointer=finding.pointer,
                message=finding.message,
                hint=finding.hint,
                page=terminal_page(RULES[finding.rule]),
            )
            for finding in findings[:_MAX_FINDINGS]
        ],
        rules=len(RULES),
        unchecked=unchecked,
    )


def _written(
    reply: Reply[Any], dialect: Dialect, contract: Contract, version: Version | None
) -> WrittenReply:
    shape = reply.shape or shape_of(reply, contract)
    written = write(reply, dialect, shape, contract, version)
    is_text = written.media_type.endswith("json") or written.media_type.startswith("text/")
    return WrittenReply(
        dialect=dialect,
        accept="" if dialect == contract.http else _ACCEPT.get(dialect, ""),
        status=written.status,
        media_type=written.media_type,
        headers=dict(written.headers),
        body=written.body.decode("utf-8", "replace")[:_MAX_SHOWN] if is_text else "",
        size=len(written.body),
    )


def _models(result: dict[str, Any], max_chars: int | None) -> Iterator[SeenBy]:
    for is_host, known in ((True, HOSTS), (False, FRAMEWORKS)):
        for name, model in known.items():
            seen = seen_by(result, name, max_chars)
            yield SeenBy(
                id=name,
                title=model.title,
                is_host=is_host,
                part=seen.half,
                text=seen.text[:_MAX_SHOWN],
                size=len(seen.text),
                tokens=seen.tokens,
                # The images and the audio that the model gets beside the text.
                media=[
                    type(part).__name__.lower() for part in seen.parts if not isinstance(part, Text)
                ],
                failed=seen.failed,
                lost=[each.part for each in seen.lost],
                cut=seen.cut,
                large=model.size,
                date=model.date,
                source=model.source,
            )


def _findings(
    result: dict[str, Any], tool: ListedTool, version: Version | None
) -> tuple[tuple[Finding, ...], str]:
    """Return the findings in a result, and why its schema was not checked."""
    context = CheckContext(
        version, tool.output_schema, "tools/call", listed=True, max_chars=tool.max_chars
    )
    try:
        return check(result, "mcp", context), ""
    except MissingExtraError as exc:
        without = msgspec.structs.replace(context, schema=None, listed=False)
        return check(result, "mcp", without), str(exc)
