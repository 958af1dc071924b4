"""A CGI request's data, read when a tool asks for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ..core.request_info import RequestHeaders, RequestInfo

if TYPE_CHECKING:
    from ..core.authentication import User


class CgiRequestInfo(RequestInfo):
    """The request data in a CGI program's environment."""

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
