"""The entries of a server's lists: tools, resources, templates and prompts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from ..core.content import Block
from ..core.json_value import JsonObject
from ..core.limits import MAX_BLOCKS
from ..core.log import logger
from ..dialects.mcp_blocks import read_block
from ..errors import MalformedReply

T = TypeVar("T", bound=msgspec.Struct)


class ListedEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The members of every entry, as the server describes it."""

    title: str | None = None
    """The name that people see."""
    description: str | None = None
    """What it is, for models."""
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
    """The JSON Schema of the data; None if the server gives none."""
    annotations: Any = None
    """The hints for hosts, such as `readOnlyHint`."""
    execution: Any = None
    """Whether the tool runs as a task (MCP 2025-11-25)."""

    @property
    def needs_task(self) -> bool:
        """Whether the server says that the tool only runs as a task (MCP 2025-11-25)."""
        said = self.execution if isinstance(self.execution, dict) else {}
        return said.get("taskSupport") == "required"

    @property
    def is_safe_to_repeat(self) -> bool:
        """Whether the server says that a second call does no harm."""
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
    """Audience, priority and last change."""


class RemoteTemplate(ListedEntry, frozen=True, kw_only=True):
    """A template for the URIs of resources."""

    uri_template: str
    """The URIs, such as users://{id}/profile (RFC 6570)."""
    name: str = ""
    """The template's name."""
    mime_type: str | None = None
    """The media type of the contents."""
    annotations: Any = None
    """Audience, priority and last change."""


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
        text = "%d entries of a list of the server are malformed; the first: %s"
        logger("answerback.client").warning(text, malformed, reason)
    return entries
