"""Refuses the markers and types with which other frameworks fill in a parameter.

A parameter that the author expects the server to fill in must never become an argument.
The frameworks are not imported: their objects are recognised by their classes' modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

_DEPENDS = "{name}: Annotated[T, Depends(fn)] with Depends from answerback"
_CONTEXT = "{name}: Context with Context from answerback"
_REQUEST = "ctx: Context and read ctx.request"
_HEADERS = "ctx: Context and read ctx.request.headers"
_USER = "ctx: Context and read ctx.user"

# By the first part of a class's module, and the class's name: what to write instead.
_MARKERS: dict[tuple[str, str], str] = {
    ("fastapi", "Depends"): _DEPENDS,
    ("fastapi", "Security"): f"{_DEPENDS}, or {_USER}",
    ("fastapi", "Header"): _HEADERS,
    ("fastapi", "Cookie"): f"{_HEADERS}['cookie']",
    ("fastapi", "File"): "{name}: bytes",
    ("fastmcp", "CurrentContext"): _CONTEXT,
    ("fastmcp", "CurrentRequest"): _REQUEST,
    ("fastmcp", "CurrentHeaders"): _HEADERS,
    ("fastmcp", "CurrentAccessToken"): _USER,
    ("fastmcp", "TokenClaim"): _USER,
    # The package that FastMCP takes its dependencies from.
    ("uncalled_for", "Dependency"): _DEPENDS,
    ("docket", "Dependency"): _DEPENDS,
    ("mcp", "Resolve"): _DEPENDS,
}
_TYPES: dict[tuple[str, str], str] = {
    ("fastmcp", "Context"): _CONTEXT,
    ("mcp", "Context"): _CONTEXT,
    ("starlette", "Request"): _REQUEST,
    ("starlette", "HTTPConnection"): _REQUEST,
    ("starlette", "Response"): "no such parameter; return the data, or failure(...)",
    ("starlette", "BackgroundTasks"): "no such parameter; start the work in the function",
}
_FRAMEWORKS = {"fastapi": "FastAPI", "starlette": "Starlette", "mcp": "the MCP SDK"}


def refuse_foreign_marker(parameter: str, annotation: object, default: object, where: str) -> None:
    """Raise TypeError, which names *where*, for what another framework would fill in."""
    for marker in (default, *_metadata(annotation)):
        _refuse(type(marker), _MARKERS, parameter, where)
    for each in _types(annotation):
        _refuse(get_origin(each) or each, _TYPES, parameter, where)


def _refuse(cls: Any, table: dict[tuple[str, str], str], parameter: str, where: str) -> None:
    for base in getattr(cls, "__mro__", ()):
        library = base.__module__.partition(".")[0]
        advice = table.get((library, base.__name__.lstrip("_")))
        if advice is not None:
            own = cls.__module__.partition(".")[0]
            owner = _FRAMEWORKS.get(own, "FastMCP")
            raise TypeError(
                f"{where} is filled in by {owner}'s {cls.__name__.lstrip('_')}, which Answerback "
                f"does not know; write {advice.format(name=parameter)}"
            )


def _metadata(annotation: object) -> Iterator[Any]:
    yield from getattr(annotation, "__metadata__", ())
    if get_origin(annotation) in (Annotated, Union, UnionType):
        for each in get_args(annotation):
            yield from _metadata(each)


def _types(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        yield from _types(annotation.__origin__)
    elif get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from _types(each)
    else:
        yield annotation
