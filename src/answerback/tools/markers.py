"""Markers for `Annotated` parameters: `Ask` for a question to the user, `Header` for a header.

`Depends` marks a parameter that an author's function fills, and `AllArguments` the parameter that
receives all arguments as one object.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

MarkerT = TypeVar("MarkerT")


class AllArguments:
    """A mark for the parameter that receives all arguments: `params: Annotated[T, AllArguments]`.

    The type is the schema of the arguments: a TypedDict, a dataclass, a Struct or a model.
    `dict[str, Any]` takes any arguments, or those of the tool's `input_schema`.
    """


def is_all_arguments(annotation: object) -> bool:
    """Return whether the parameter is marked with `AllArguments`, or with an object of it."""
    markers = getattr(annotation, "__metadata__", ())
    return any(each is AllArguments or isinstance(each, AllArguments) for each in markers)


class Ask(msgspec.Struct, frozen=True):
    """A mark for a parameter that the user answers: `sure: Annotated[bool, Ask("Delete all?")]`.

    The parameter is not one of the tool's arguments, so a model cannot answer it.
    """

    message: str
    """The question that the user reads."""


class Depends:
    """A mark for a parameter that a function fills: `pool: Annotated[Pool, Depends(get_pool)]`.

    *function* may take the context and dependencies of its own. The parameter is not one of the
    tool's arguments, so no schema contains it.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(
                f"Depends takes a function, such as Depends(get_pool), not {function!r}"
            )
        self.function = function


class Header(msgspec.Struct, frozen=True):
    """A mark for an argument that MCP clients also send in a header, `Mcp-Param-NAME`.

    Proxies and gateways can read the header: never mark a secret.
    """

    name: str
    """The last part of the header's name: `Mcp-Param-NAME`."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", self.name):
            raise ValueError(f"{self.name!r} cannot be part of a header's name")


def marker_of(kind: type[MarkerT], annotation: object) -> MarkerT | None:
    """Return the marker of class *kind* in a parameter's annotation."""
    markers = getattr(annotation, "__metadata__", ())
    return next((each for each in markers if isinstance(each, kind)), None)
