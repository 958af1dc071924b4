"""The types that rules use: `Rule` and its parts, `Fault` and `Finding`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from ..contract import Dialect
from ..core.secrets import mask

Severity = Literal["error", "warning", "note"]
Part = Literal["document", "reply", "block", "text", "leak", "tool", "rpc"]
"""The part of a reply that a rule checks.

`document`: the bytes or the decoded value, before it is known to be a JSON object. `reply`: the
whole reply. `block`: each content block. `text`: each text block. `leak`: each string that holds a
secret. `tool`: each tool in a `tools/list` result. `rpc`: JSON-RPC errors.
"""


MCP: tuple[Dialect, ...] = ("mcp",)
ENVELOPE: tuple[Dialect, ...] = ("envelope",)
REST: tuple[Dialect, ...] = ("rest",)
PROBLEM: tuple[Dialect, ...] = ("problem",)


class Finding(msgspec.Struct, frozen=True):
    """One violation of a rule, at one location in a reply."""

    rule: str
    """The rule's id, such as "AB101"."""
    name: str
    """The rule's name."""
    severity: Severity
    """How severe it is."""
    pointer: str
    """A JSON pointer into the reply; the empty pointer means the whole reply."""
    message: str
    """What is wrong."""
    hint: str = ""
    """What to do about it; may be empty."""


class Fault(NamedTuple):
    """A violation, as returned by a check; if the hint is empty, the rule's hint is used."""

    pointer: str
    message: str
    hint: str = ""


Faults: TypeAlias = Sequence[Fault]
Fix: TypeAlias = Callable[[dict[str, Any], str], None]
"""Repairs the violation at a pointer into a decoded reply, in place."""


class Example(msgspec.Struct, frozen=True):
    """An example reply for a rule's documentation and tests, with the context to check it in."""

    reply: Any
    """The reply, or a function that builds a large one."""
    dialect: Dialect | None = None
    version: str | None = None
    schema: dict[str, Any] | None = None
    method: str | None = None
    listed: bool = False
    max_chars: int | None = None

    def build_reply(self) -> Any:
        return self.reply() if callable(self.reply) else self.reply


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The replies that a rule applies to.

    `catalogue.plan_for` selects rules by scope, so a check need not test its own scope.
    """

    dialects: tuple[Dialect, ...]
    part: Part = "reply"
    when: Literal["always", "success", "failure"] = "always"
    needs: Literal["version", "schema"] | None = None
    """The rule applies only if this is known: the MCP version, or the tool's output schema."""
    types: tuple[str, ...] = ()
    """The block types the rule applies to; an empty tuple means all of them."""
    plain_replies: Literal["any", "json", "none"] = "any"
    """Which of an app's plain replies can break the rule: any, only those whose text is JSON, or
    none. `validation.findings_in` skips the rule for plain replies that cannot break it."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One checkable statement about a reply."""

    id: str
    name: str
    severity: Severity
    scope: Scope
    why: str
    hint: str
    bad: Example
    good: Example
    check: Callable[..., Faults]
    fix: Fix | None = None

    def finding(self, fault: Fault) -> Finding:
        """Return a fault's finding; secrets are masked, because it goes to logs and reports."""
        hint = fault.hint or self.hint
        message = mask(fault.message)
        return Finding(self.id, self.name, self.severity, fault.pointer, message, hint)


def rule(
    rule_id: str,
    *,
    scope: Scope,
    bad: Any,
    good: Any,
    severity: Severity = "error",
    hint: str = "",
    fix: Fix | None = None,
) -> Callable[[Callable[..., Faults]], Rule]:
    """Make a rule from a check function, whose name and docstring become its name and reason."""

    def make_rule(check: Callable[..., Faults]) -> Rule:
        return Rule(
            id=rule_id,
            name=check.__name__.replace("_", "-"),
            severity=severity,
            scope=scope,
            why=" ".join((check.__doc__ or "").split()),
            hint=hint,
            bad=_example(bad),
            good=_example(good),
            check=check,
            fix=fix,
        )

    return make_rule


def _example(reply: Any) -> Example:
    return reply if isinstance(reply, Example) else Example(reply)


ENVELOPE_SUCCESS: dict[str, Any] = {
    "success": True,
    "timestamp": "2026-01-31T12:00:00Z",
    "content": [{"type": "text", "text": "Instance 'vscode-instance-1' started successfully"}],
    "data": {"instanceId": "instance-1", "status": "running"},
}
ENVELOPE_FAILURE: dict[str, Any] = {
    "success": False,
    "timestamp": "2026-01-31T12:00:00Z",
    "content": [{"type": "text", "text": "Error: Instance 'instance-1' not found"}],
    "error": {
        "code": "INSTANCE_NOT_FOUND",
        "message": "Instance 'instance-1' not found",
        "details": {"instanceId": "instance-1"},
    },
}
MCP_TEXT: dict[str, Any] = {"content": [{"type": "text", "text": "5 °C and cloudy in Oslo"}]}
MCP_DATA: dict[str, Any] = {
    "content": [{"type": "text", "text": '{"temperature":22.5,"humidity":65}'}],
    "structuredContent": {"temperature": 22.5, "humidity": 65},
}
MCP_FAILURE: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "Location 'xyz' not found. Please provide a valid city name."}
    ],
    "isError": True,
}
WEATHER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"temperature": {"type": "number"}, "humidity": {"type": "number"}},
    "required": ["temperature", "humidity"],
}
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAF"
    "BQIAX8jx0gAAAABJRU5ErkJggg=="
)
MCP_IMAGE: dict[str, Any] = {
    "content": [{"type": "image", "data": PNG, "mimeType": "image/png"}],
}


def text_result(text: str, **members: Any) -> dict[str, Any]:
    """Return an MCP result with one text block."""
    return {"content": [{"type": "text", "text": text}], **members}


def blocks_result(*blocks: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return an MCP result with these blocks."""
    return {"content": [*blocks], **members}
