"""What a check comes to, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

if TYPE_CHECKING:
    from ..contract import Dialect

Severity = Literal["error", "warning", "note"]
Part = Literal["reply", "block", "text", "leak", "tool", "rpc"]
"""What a rule looks at: the whole reply, each block, each text, each string with a secret in it;
each tool of a listing; a JSON-RPC error."""


MCP: tuple[Dialect, ...] = ("mcp",)
ENVELOPE: tuple[Dialect, ...] = ("envelope",)
REST: tuple[Dialect, ...] = ("rest",)
PROBLEM: tuple[Dialect, ...] = ("problem",)


class Finding(msgspec.Struct, frozen=True):
    """What one rule says about one place in a reply."""

    rule: str
    name: str
    severity: Severity
    pointer: str
    """A JSON pointer into the reply; an empty one is the whole."""
    message: str
    hint: str = ""


class Fault(NamedTuple):
    """What a check found; the rule's own hint is used where there is none."""

    pointer: str
    message: str
    hint: str = ""


Faults: TypeAlias = Sequence[Fault]
Fix: TypeAlias = Callable[[dict[str, Any], str], None]
"""Repairs, in place, what was found in a reply at a pointer."""


class Example(msgspec.Struct, frozen=True):
    """A reply, and what has to be known beside it."""

    reply: Any
    """The reply, or what makes one that is too large to be kept."""
    dialect: Dialect | None = None
    version: str | None = None
    schema: dict[str, Any] | None = None
    method: str | None = None
    listed: bool = False

    def made(self) -> Any:
        return self.reply() if callable(self.reply) else self.reply


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Where a rule applies. Worked out before a check, so that a check need not ask."""

    dialects: tuple[Dialect, ...]
    part: Part = "reply"
    when: Literal["always", "success", "failure"] = "always"
    needs: Literal["version", "schema"] | None = None
    """What has to be known beside the reply."""
    types: tuple[str, ...] = ()
    """The types of blocks; none means all."""


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
        hint = fault.hint or self.hint
        return Finding(self.id, self.name, self.severity, fault.pointer, fault.message, hint)


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a rule beside its function, whose name and docstring say the rest."""

    scope: Scope
    bad: Any
    good: Any
    severity: Severity = "error"
    hint: str = ""
    fix: Fix | None = None


def rule(number: str, about: About) -> Callable[[Callable[..., Faults]], Rule]:
    """Make a rule of a function: its name is the rule's, its docstring says why."""

    def made(check: Callable[..., Faults]) -> Rule:
        return Rule(
            id=number,
            name=check.__name__.replace("_", "-"),
            severity=about.severity,
            scope=about.scope,
            why=" ".join((check.__doc__ or "").split()),
            hint=about.hint,
            bad=_example(about.bad),
            good=_example(about.good),
            check=check,
            fix=about.fix,
        )

    return made


def _example(given: Any) -> Example:
    return given if isinstance(given, Example) else Example(given)
