"""A client's capabilities and version, and the session of a stateful client."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from ..core.peer import LEVELS, Level, Question
from ..core.versions import STATELESS, Version
from .jsonrpc import INVALID_PARAMS, UNSUPPORTED_VERSION, RpcError
from .params import PREFIX, TASKS, Meta

if TYPE_CHECKING:
    from ..core.json_value import Json, JsonObject
    from ..core.request_info import ClientInfo

DEFAULT_LEVEL: Level = "info"
"""The log level of a session until the client sets one."""


class ClientCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Declared by the client at `initialize`, or with each request in the stateless era."""

    form: bool = False
    """The client can show its user a question with a form."""
    url: bool = False
    """The client can send its user to a page."""
    sampling: bool = False
    roots: bool = False
    tasks: bool = False
    """The client declared the tasks extension."""

    @classmethod
    def of(cls, capabilities: JsonObject, *, elicitation: bool = True) -> ClientCapabilities:
        """Read them; bare `elicitation: {}` means forms, if the version has *elicitation*."""
        if not capabilities:
            return _NO_CAPABILITIES
        asks = capabilities.get("elicitation") if elicitation else None
        modes = asks if isinstance(asks, dict) else {}
        return cls(
            form=asks is not None and ("form" in modes or "url" not in modes),
            url="url" in modes,
            sampling="sampling" in capabilities,
            roots="roots" in capabilities,
            tasks=TASKS in (capabilities.get("extensions") or ()),
        )

    def can_answer(self, question: Question) -> bool:
        return not missing_capability(self, question)


_NO_CAPABILITIES = ClientCapabilities()


def missing_capability(client: ClientCapabilities, question: Question) -> JsonObject:
    """Return the capability that a question needs and the client lacks, in MCP's notation."""
    match question.method:
        case "elicitation/create":
            mode = question.params.get("mode", "form")
            has = client.url if mode == "url" else client.form
            return {} if has else {"elicitation": {mode: {}}}
        case "sampling/createMessage":
            return {} if client.sampling else {"sampling": {}}
        case _:
            return {} if client.roots else {"roots": {}}


def require_meta(meta: Meta | None) -> tuple[Meta, ClientCapabilities]:
    """Return the `_meta` of a stateless request, which must have a version and capabilities."""
    if meta is None:
        raise RpcError(INVALID_PARAMS, "Missing _meta")
    if meta.version is msgspec.UNSET:
        raise RpcError(INVALID_PARAMS, f"Missing _meta[{PREFIX}protocolVersion]")
    if meta.capabilities is msgspec.UNSET:
        raise RpcError(INVALID_PARAMS, f"Missing _meta[{PREFIX}clientCapabilities]")
    return meta, ClientCapabilities.of(meta.capabilities)


def stateless_version(meta: Meta) -> Version:
    """Return the version that a stateless request names; raises RpcError for an unknown one."""
    version = STATELESS.get(str(meta.version))
    if version is None:
        data = {"supported": sorted(STATELESS, reverse=True), "requested": meta.version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return version


class Session:
    """The session of one stateful client, from `initialize` until it disconnects."""

    __slots__ = ("_sent_info", "client", "level", "nonce", "subscriptions", "version")

    def __init__(
        self, version: Version, client: ClientCapabilities, sent_info: Json = None
    ) -> None:
        self.version = version
        self.client = client
        self._sent_info = sent_info
        """The `clientInfo` of `initialize`, as the client sent it."""
        self.nonce = os.urandom(8)
        """Random bytes that identify this session."""
        self.level: Level = DEFAULT_LEVEL
        self.subscriptions: set[str] = set()

    @property
    def info(self) -> ClientInfo | None:
        """The client's name and version."""
        from .mcp_request_info import client_info

        return client_info(self._sent_info)


def reaches(level: Level, threshold: Level) -> bool:
    """Return whether a log message of *level* goes to a client that set *threshold*."""
    return LEVELS.index(level) >= LEVELS.index(threshold)
