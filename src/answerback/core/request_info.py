"""RequestInfo: a call's request, for a tool's author.

A wire has a subclass that reads a member when it is asked for, so other calls pay nothing.
A member is None on a wire that does not have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

from .metadata.client_hints import ClientHints, read_hints


class ClientInfo(msgspec.Struct, frozen=True):
    """The client program, as it names itself; not verified."""

    name: str
    version: str = ""


class RequestHeaders(Mapping[str, str]):
    """An HTTP request's headers; case does not matter in names.

    The values of a repeated header are joined with a comma. `repr` shows only the names, because
    a value may be a secret.
    """

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        values: dict[str, str] = {}
        for name, value in pairs:
            name = name.lower()
            values[name] = f"{values[name]}, {value}" if name in values else value
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<RequestHeaders {', '.join(self._values)}>"


class RequestInfo:
    """A call's request."""

    def __init__(self, wire: str, source: object = None) -> None:
        self.wire = wire
        """"mcp", "rest", "cgi", "call" or "memory"."""
        self._source = source

    @cached_property
    def headers(self) -> RequestHeaders | None:
        """The headers, on a wire over HTTP."""
        return None

    @property
    def address(self) -> str | None:
        """The client's address; behind a trusted proxy, the address that the proxy saw."""
        return None

    @property
    def id(self) -> int | str | None:
        """The MCP request's id."""
        return None

    @property
    def protocol(self) -> str | None:
        """The MCP version, such as "2025-11-25"."""
        return None

    @cached_property
    def client(self) -> ClientInfo | None:
        """The MCP client's name and version."""
        return None

    @cached_property
    def session(self) -> str | None:
        """A name for the MCP session, the same in all its requests. It is not the session's id."""
        return None

    @cached_property
    def meta(self) -> Mapping[str, Any] | None:
        """The MCP request's `_meta`."""
        return None

    @cached_property
    def hints(self) -> ClientHints:
        """The locale, user agent and location that ChatGPT sends in `_meta`; not verified."""
        return read_hints(self.meta)

    @property
    def user(self) -> Any:
        """The user that the server or its middleware authenticated."""
        return None
