"""Markers for `Annotated` parameters: `Ask` for a question to the user, `Header` for a header.

`Depends` marks a parameter that an author's function fills.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec


class Ask(msgspec.Struct, frozen=True):
    """A mark for a parameter that the user answers: `sure: Annotated[bool, Ask("Delete all?")]`.

    The parameter is not one of the tool's arguments, so a model cannot answer it.
    """

    message: str


def ask_of(annotation: object) -> Ask | None:
    """Return the `Ask` in a parameter's annotation."""
    for marker in getattr(annotation, "__metadata__", ()):
        if isinstance(marker, Ask):
            return marker
    return None


class Depends:
    """A mark for a parameter that a function fills: `pool: Annotated[Pool, Depends(get_pool)]`.

    The parameter is not one of the tool's arguments, so no schema contains it.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(
                f"Depends takes a function, such as Depends(get_pool), not {function!r}"
            )
        self.function = function


def depends_of(annotation: object) -> Depends | None:
    """Return the `Depends` in a parameter's annotation."""
    for marker in getattr(annotation, "__metadata__", ()):
        if isinstance(marker, Depends):
            return marker
    return None


class Header(msgspec.Struct, frozen=True):
    """A mark for an argument that MCP clients also send in a header, `Mcp-Param-NAME`.

    Proxies and gateways can read the header: never mark a secret.
    """

    name: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", self.name):
            raise ValueError(f"{self.name!r} cannot be part of a header's name")


def header_of(annotation: object) -> Header | None:
    """Return the `Header` in a parameter's annotation."""
    for marker in getattr(annotation, "__metadata__", ()):
        if isinstance(marker, Header):
            return marker
    return None
