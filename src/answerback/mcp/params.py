"""The parameters of each method, as they are read."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeVar

import msgspec

from ..peer import Level
from .messages import INVALID_PARAMS, Id, Params, RpcError

T = TypeVar("T")

PREFIX = "io.modelcontextprotocol/"


class Meta(msgspec.Struct):
    """What a request says beside its parameters."""

    token: Id | None = msgspec.field(default=None, name="progressToken")
    version: str | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name=PREFIX + "protocolVersion"
    )
    capabilities: dict[str, Any] | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name=PREFIX + "clientCapabilities"
    )
    level: Level | None = msgspec.field(default=None, name=PREFIX + "logLevel")


class Common(msgspec.Struct):
    """What every request may carry."""

    meta: Meta | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")


class Retry(msgspec.Struct):
    """What a modern client sends along when it asks again, with the answers."""

    responses: dict[str, dict[str, Any]] = msgspec.field(default={}, name="inputResponses")
    state: str | None = msgspec.field(default=None, name="requestState")


class Initialize(msgspec.Struct):
    version: str = msgspec.field(name="protocolVersion")
    capabilities: dict[str, Any] = {}


class Page(msgspec.Struct):
    cursor: str | None = None


class CallTool(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class ToolCall(CallTool):
    """A tool's call with all that may come with it."""

    meta: Meta | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")
    responses: dict[str, dict[str, Any]] = msgspec.field(default={}, name="inputResponses")
    state: str | None = msgspec.field(default=None, name="requestState")


class ReadResource(msgspec.Struct):
    uri: str


class GetPrompt(msgspec.Struct):
    name: str
    arguments: dict[str, str] = {}


class SetLevel(msgspec.Struct):
    level: Level


class Reference(msgspec.Struct):
    """What an argument belongs to."""

    type: Literal["ref/prompt", "ref/resource"]
    name: str | None = None
    uri: str | None = None


class Argument(msgspec.Struct):
    name: str
    value: str


class CompletionContext(msgspec.Struct):
    arguments: dict[str, str] = {}


class Complete(msgspec.Struct):
    ref: Reference
    argument: Argument
    context: CompletionContext = msgspec.field(default_factory=CompletionContext)


class Cancelled(msgspec.Struct):
    id: Id | None = msgspec.field(default=None, name="requestId")


@cache
def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    """One for each type of parameters, kept: making one costs more than using it."""
    return msgspec.json.Decoder(type)


def read(params: Params, type: type[T]) -> T:
    """The parameters; raises RpcError where they are not what the method takes."""
    if isinstance(params, type):
        return params
    try:
        found: T = _decoder(type).decode(params)  # type: ignore[arg-type]  # a type is hashable
        return found
    except msgspec.ValidationError as exc:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {exc}") from None
