"""The decoded parameters of each MCP method."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from ..core.peer import Level

PREFIX = "io.modelcontextprotocol/"
"""MCP's own prefix for names in `_meta`."""
TASKS = PREFIX + "tasks"
"""The name of MCP's tasks extension."""
Id: TypeAlias = int | str
"""The id of a request, or a progress token."""


class Meta(msgspec.Struct):
    """The `_meta` of a request."""

    token: Id | None = msgspec.field(default=None, name="progressToken")
    version: str | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name=PREFIX + "protocolVersion"
    )
    capabilities: dict[str, Any] | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name=PREFIX + "clientCapabilities"
    )
    level: Level | None = msgspec.field(default=None, name=PREFIX + "logLevel")
    idempotency_key: str | None = msgspec.field(default=None, name="answerback/idempotencyKey")
    """Chosen by the client: each key creates one task."""


class Common(msgspec.Struct, kw_only=True):
    """The parameters that every request may have."""

    meta: Meta | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")


class RetriedRequest(Common, kw_only=True):
    """In the stateless era a client repeats its request, with its user's answers."""

    responses: dict[str, dict[str, Any]] = msgspec.field(default={}, name="inputResponses")
    state: str | None = msgspec.field(default=None, name="requestState")


class ToolCall(RetriedRequest, kw_only=True):
    """`tools/call`."""

    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    task: object = None
    """In 2025-11-25 it asks for a task; later versions ignore it."""


class TaskId(msgspec.Struct):
    """`tasks/get`, `tasks/cancel` and `tasks/result`."""

    id: str = msgspec.field(name="taskId")


class TaskUpdate(TaskId):
    """`tasks/update`: answers to a task's questions."""

    responses: dict[str, dict[str, Any]] = msgspec.field(default={}, name="inputResponses")


class Initialize(msgspec.Struct):
    version: str = msgspec.field(name="protocolVersion")
    capabilities: dict[str, Any] = {}
    info: object = msgspec.field(default=None, name="clientInfo")


class PageParams(msgspec.Struct):
    cursor: str | None = None


class ReadResource(msgspec.Struct):
    uri: str


class GetPrompt(msgspec.Struct):
    name: str
    arguments: dict[str, str] = {}


class SetLevel(msgspec.Struct):
    level: Level


class Reference(msgspec.Struct):
    """The prompt or resource that an argument belongs to."""

    type: Literal["ref/prompt", "ref/resource"]
    name: str | None = None
    uri: str | None = None

    @property
    def target(self) -> str:
        """The name of the prompt, or the URI of the resource; a client may send both."""
        return (self.name if self.type == "ref/prompt" else self.uri) or ""


class Argument(msgspec.Struct):
    name: str
    value: str


class CompletionContext(msgspec.Struct):
    arguments: dict[str, str] = {}


class Complete(msgspec.Struct):
    ref: Reference
    argument: Argument
    context: CompletionContext = msgspec.field(default_factory=CompletionContext)


class CancelledParams(msgspec.Struct):
    id: Id | None = msgspec.field(default=None, name="requestId")
