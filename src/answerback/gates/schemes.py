"""The effect of gates on the description of a tool: security schemes, codes, hidden tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ..tools.gate_list import ReadyGate

if TYPE_CHECKING:
    from ..core.authentication import AppAuth
    from ..core.json_value import JsonObject
    from ..tools.tool import Tool

T = TypeVar("T", bound="Tool")
_LOGIN = "LOGIN_REQUIRED"


def needs_login(tool: Tool) -> bool:
    """Whether only a caller who is logged in can use *tool*, by its gates or by the app's auth."""
    if tool.gates is not None and any(_LOGIN in codes_of(each) for each in tool.gates.declared):
        return True
    auth = _auth_of(tool)
    return auth is not None and not auth.anonymous


def security_schemes(tool: Tool) -> list[JsonObject]:
    """The `securitySchemes` of *tool* for MCP hosts; empty if nothing is known.

    A login without `auth=` is taken for OAuth, because `scope` and the hosts know nothing else.
    """
    auth = _auth_of(tool)
    # API keys have no page that says where to log in.
    if auth is not None and auth.pages is None:
        return []
    if needs_login(tool):
        return [{"type": "oauth2", "scopes": list(scopes_of(tool))}]
    return [] if auth is None else [{"type": "noauth"}]


def scopes_of(tool: Tool) -> tuple[str, ...]:
    """All the scopes that *tool* needs: those of every token, and those of its gates."""
    auth = _auth_of(tool)
    own = () if tool.gates is None else tool.gates.scopes
    return tuple(dict.fromkeys((*(() if auth is None else auth.scopes), *own)))


def _auth_of(tool: Tool) -> AppAuth | None:
    """The authenticator of the app that serves *tool*."""
    return tool.path[0].auth if tool.path else None


def codes_of(gate: Callable[..., Any]) -> tuple[str, ...]:
    """The codes of a gate's refusals, as far as they are known."""
    return gate.codes if isinstance(gate, ReadyGate) else ("FORBIDDEN", "TIMED_OUT")


def shown_to_all(tools: Iterable[T]) -> list[T]:
    """The tools without those that a gate hides from some callers."""
    return [each for each in tools if each.gates is None or not each.gates.hiding]
