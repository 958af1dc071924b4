"""The data of an HTTP request over ASGI or CGI, read when a tool asks for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ...core.authentication import User
from ...core.request_info import RequestHeaders, RequestInfo

_CREDENTIALS = (b"authorization", b"x-api-key")
"""A tool that passes its headers on must not pass these on."""


class AsgiRequestInfo(RequestInfo):
    """The data in an ASGI scope."""

    _source: Mapping[str, Any]

    @cached_property
    def headers(self) -> RequestHeaders:
        """The headers, without the credentials checked by the app's `auth=`."""
        hidden = _CREDENTIALS if isinstance(self._source.get("user"), User) else ()
        return RequestHeaders(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in self._source["headers"]
            if name not in hidden
        )

    @property
    def address(self) -> str | None:
        client = self._source.get("client")
        return None if client is None else str(client[0])

    @property
    def user(self) -> Any:
        """The `user` that a middleware put into the scope, unless it says that it is anonymous.

        An empty name and False are not users.
        """
        user = self._source.get("user")
        return user if user and getattr(user, "is_authenticated", True) else None


class CgiRequestInfo(RequestInfo):
    """The data in the environment of a CGI program."""

    _source: Mapping[str, str]
    authenticated: User | None = None
    """The user authenticated by the app's `auth=`."""
    has_auth = False

    @cached_property
    def headers(self) -> RequestHeaders:
        names = {
            name: name.removeprefix("HTTP_").replace("_", "-")
            for name in self._source
            if name.startswith("HTTP_") or name in ("CONTENT_TYPE", "CONTENT_LENGTH")
        }
        if self.authenticated is not None:
            names.pop("HTTP_AUTHORIZATION", None)
            names.pop("HTTP_X_API_KEY", None)
        return RequestHeaders(
            (header, os.fsencode(self._source[name]).decode("latin-1"))
            for name, header in names.items()
        )

    @property
    def address(self) -> str | None:
        return self._source.get("REMOTE_ADDR") or None

    @property
    def user(self) -> User | str | None:
        """The user authenticated by the app, or else by the web server.

        Bytes that are not UTF-8 are escaped.
        """
        if self.has_auth:
            return self.authenticated
        user = os.fsencode(self._source.get("REMOTE_USER", ""))
        return user.decode("utf-8", "backslashreplace") or None
