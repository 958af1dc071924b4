"""The effect of gates on a tool's description: security schemes, codes, hidden tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.json_value import JsonObject
from ..core.request_info import RequestInfo
from ..registry.declarations import is_filtered
from ..tools.requires import ReadyGate

if TYPE_CHECKING:
    from ..core.authentication import AppAuth
    from ..tools.tool import Tool

T = TypeVar("T", bound="Tool")
_LOGIN = "LOGIN_REQUIRED"


def needs_login(tool: Tool) -> bool:
    """Return whether *tool* needs a login, because of its gates or the app's auth."""
    if tool.gates is not None and any(_LOGIN in codes_of(each) for each in tool.gates.declared):
        return True
    auth = _auth_of(tool)
    return auth is not None and not auth.anonymous


def security_schemes(tool: Tool) -> list[JsonObject]:
    """Return the `securitySchemes` of *tool* for MCP hosts; empty if nothing is known.

    A login without `auth=` counts as OAuth, because `scope` and the hosts know nothing else.
    """
    auth = _auth_of(tool)
    # API keys have no page that says where to log in.
    if auth is not None and auth.pages is None:
        return []
    if needs_login(tool):
        needed = scopes_of(tool)
        asked = needed if auth is None else auth.asked_scopes(needed)
        return [{"type": "oauth2", "scopes": list(asked)}]
    return [] if auth is None else [{"type": "noauth"}]


def scopes_of(tool: Tool) -> tuple[str, ...]:
    """Return all scopes that *tool* needs: every token's, and its gates'."""
    auth = _auth_of(tool)
    own = () if tool.gates is None else tool.gates.scopes
    return tuple(dict.fromkeys((*(() if auth is None else auth.scopes), *own)))


def _auth_of(tool: Tool) -> AppAuth | None:
    """Return the authenticator of the app that serves *tool*."""
    return tool.path[0].auth if tool.path else None


def codes_of(gate: Callable[..., Any]) -> tuple[str, ...]:
    """Return the known codes of a gate's refusals."""
    return gate.codes if isinstance(gate, ReadyGate) else ("FORBIDDEN", "TIMED_OUT")


def shown_to_all(tools: Iterable[T]) -> list[T]:
    """Return the tools for documents that are the same for every caller.

    It leaves out those that a gate hides from some callers, and those that `@app.visible` hides
    from a request without a user and headers.
    """
    anyone = RequestInfo("rest")
    return [
        each
        for each in tools
        if (each.gates is None or not each.gates.hiding) and not is_filtered(each, anyone)
    ]
