"""RequestInfo: the request that a call came by, for the author of a tool.

A wire has a subclass that reads a member when it is asked for; a call that does not ask pays
nothing. A member is None where a wire has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from .metadata.client_hints import read_hints

if TYPE_CHECKING:
    from .metadata.client_hints import ClientHints


class ClientInfo(msgspec.Struct, frozen=True):
    """The client program, as it names itself; nothing verifies it."""

    name: str
    version: str = ""


class RequestHeaders(Mapping[str, str]):
    """The headers of an HTTP request; case does not matter in names.

    The values of a repeated header are joined with a comma. `repr` shows the names alone, because
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
    """The request of a call."""

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
        """The id of an MCP request."""
        return None

    @property
    def protocol(self) -> str | None:
        """The version of MCP, such as "2025-11-25"."""
        return None

    @cached_property
    def client(self) -> ClientInfo | None:
        """The name and the version of an MCP client."""
        return None

    @cached_property
    def session(self) -> str | None:
        """A name of the MCP session, the same for all its requests. It is not the session's id."""
        return None

    @cached_property
    def meta(self) -> Mapping[str, Any] | None:
        """The `_meta` of an MCP request."""
        return None

    @cached_property
    def hints(self) -> ClientHints:
        """The locale, user agent and location that ChatGPT sends in `_meta`; not verified."""
        return read_hints(self.meta)

    @property
    def user(self) -> Any:
        """The user that the server or its middleware authenticated."""
        return None
