"""Data about an MCP request, read when a tool asks for it."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from ..core.json_value import Json
from ..core.request_info import ClientInfo, RequestHeaders, RequestInfo
from .jsonrpc import PREFIX, Id
from .mcp_peer import McpPeer

NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The parameter that the `Mcp-Name` header repeats, by method."""
_OPEN, _CLOSE = "=?base64?", "?="
is_plain = re.compile(r"(?!=\?base64\?.*\?=$)(?! )[\x20-\x7e]*(?<! )").fullmatch
"""Matches a value that a header can carry as is, such as nearly every tool name."""


def encode_header(value: str) -> str:
    """Return the header's value, in base64 if a header cannot carry it as is."""
    if is_plain(value):
        return value
    return f"{_OPEN}{b64encode(value.encode()).decode()}{_CLOSE}"


def decode_header(value: str) -> str:
    """Return the text passed to `encode_header`; raises ValueError for malformed base64."""
    if not (value.startswith(_OPEN) and value.endswith(_CLOSE)):
        return value
    return b64decode(value[len(_OPEN) : -len(_CLOSE)], validate=True).decode()


class _Params(msgspec.Struct):
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class _Message(msgspec.Struct):
    """The `_meta` of a message; the other members are skipped."""

    id: object = None
    params: _Params | None = None


class McpRequestInfo(RequestInfo):
    """Data about an MCP request."""

    _source: McpPeer

    @cached_property
    def _http(self) -> RequestInfo | None:
        http = self._source.http
        return None if http is None else http.describe_request(self.wire)

    @cached_property
    def headers(self) -> RequestHeaders | None:
        return None if self._http is None else self._http.headers

    @property
    def address(self) -> str | None:
        return self._source.caller or None

    @property
    def id(self) -> Id:
        return self._source.id

    @property
    def protocol(self) -> str:
        return self._source.version.name

    @cached_property
    def client(self) -> ClientInfo | None:
        if not self._source.version.stateless:
            session = self._source.session
            return None if session is None else session.info
        found = (self.meta or {}).get(PREFIX + "clientInfo")
        return client_info(found)

    @cached_property
    def session(self) -> str | None:
        session = self._source.session
        if session is None:
            return None
        from hashlib import blake2b

        # This name does not reveal the session id.
        return blake2b(session.nonce, digest_size=12, person=b"session name").hexdigest()

    @cached_property
    def meta(self) -> Mapping[str, Any] | None:
        http = self._source.http
        text = self._source.text if http is None else http.text
        # A batch over HTTP is one body.
        if not text.lstrip().startswith(b"["):
            text = b"[%b]" % text
        try:
            messages = msgspec.json.decode(text, type=list[_Message])
        except msgspec.MsgspecError:
            return None
        for message in messages:
            if message.id == self.id and message.params is not None:
                return message.params.meta
        return None

    @property
    def user(self) -> Any:
        return None if self._http is None else self._http.user


def client_info(found: Json) -> ClientInfo | None:
    """Return the client's name and version in `clientInfo`; None if it has no name."""
    if not isinstance(found, dict) or not isinstance(name := found.get("name"), str) or not name:
        return None
    version = found.get("version")
    return ClientInfo(name, version if isinstance(version, str) else "")
