"""Markers and types that other frameworks fill in are refused, and never shown to a caller."""

# ruff: noqa: B008 - calls and wrong values as defaults are the subject

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import fastapi
import fastmcp
import pytest
from fastmcp.dependencies import CurrentAccessToken, CurrentContext, CurrentHeaders
from fastmcp.dependencies import Depends as FastMcpDepends
from mcp.server import mcpserver
from starlette.requests import Request

from answerback import App


def _get_db() -> str:
    return "db"


def depends(db: Annotated[str, fastapi.Depends(_get_db)]) -> None: ...
def depends_as_default(db=fastapi.Depends(_get_db)) -> None: ...  # type: ignore[no-untyped-def] # as many endpoints have it
def depends_or_none(db: Annotated[str, fastapi.Depends(_get_db)] | None = None) -> None: ...
def security(user: Annotated[str, fastapi.Security(_get_db)]) -> None: ...
def header(agent: Annotated[str, fastapi.Header()]) -> None: ...
def header_as_default(agent: str = fastapi.Header(default="")) -> None: ...
def cookie(session: Annotated[str | None, fastapi.Cookie()] = None) -> None: ...
def file(data: Annotated[bytes, fastapi.File()]) -> None: ...
def request(call: Request) -> None: ...
def fastmcp_context(ctx: fastmcp.Context) -> None: ...
def fastmcp_optional(ctx: fastmcp.Context | None = None) -> None: ...
def current_context(ctx: Any = CurrentContext()) -> None: ...
def current_headers(headers: dict[str, str] = CurrentHeaders()) -> None: ...
def access_token(token: Any = CurrentAccessToken()) -> None: ...
def fastmcp_depends(db: str = FastMcpDepends(_get_db)) -> None: ...
def sdk_context(ctx: mcpserver.Context) -> None: ...
def sdk_resolve(db: Annotated[str, mcpserver.Resolve(_get_db)]) -> None: ...


@pytest.mark.parametrize(
    ("fn", "marker", "advice"),
    [
        (depends, "FastAPI's Depends", "db: Annotated[T, Depends(fn)] with Depends from"),
        (depends_as_default, "FastAPI's Depends", "db: Annotated[T, Depends(fn)]"),
        (depends_or_none, "FastAPI's Depends", "db: Annotated[T, Depends(fn)]"),
        (security, "FastAPI's Security", "ctx.user"),
        (header, "FastAPI's Header", "ctx.request.headers"),
        (header_as_default, "FastAPI's Header", "ctx.request.headers"),
        (cookie, "FastAPI's Cookie", "ctx.request.headers['cookie']"),
        (file, "FastAPI's File", "data: bytes"),
        (request, "Starlette's Request", "ctx.request"),
        (fastmcp_context, "FastMCP's Context", "ctx: Context with Context from answerback"),
        (fastmcp_optional, "FastMCP's Context", "ctx: Context with Context from answerback"),
        (current_context, "FastMCP's CurrentContext", "ctx: Context"),
        (current_headers, "FastMCP's CurrentHeaders", "ctx.request.headers"),
        (access_token, "FastMCP's CurrentAccessToken", "ctx.user"),
        (fastmcp_depends, "FastMCP's Depends", "db: Annotated[T, Depends(fn)]"),
        (sdk_context, "the MCP SDK's Context", "ctx: Context with Context from answerback"),
        (sdk_resolve, "the MCP SDK's Resolve", "db: Annotated[T, Depends(fn)]"),
    ],
)
def test_a_parameter_that_another_framework_fills_in_is_refused_with_what_to_write(
    fn: Callable[..., Any], marker: str, advice: str
) -> None:
    app = App("foreign")

    with pytest.raises(TypeError) as caught:
        app.add_tool(fn)

    assert f"of tool {fn.__name__!r} is filled in by {marker}" in str(caught.value)
    assert advice in str(caught.value)
    assert app.tools == {}
