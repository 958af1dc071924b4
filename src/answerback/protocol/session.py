"""A client's capabilities and version, a stateful client's session, and the server info."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from ..core.json_value import JsonObject
from ..core.peer import LEVELS, Level, Question
from ..core.versions import LATEST_STATEFUL, STATEFUL, STATELESS, V2026_07_28, Version
from ..dialects.mcp import SERVER_INFO
from ..registry.declarations import Registry
from .jsonrpc import (
    INVALID_PARAMS,
    PREFIX,
    TASKS,
    UNSUPPORTED_VERSION,
    Initialize,
    Meta,
    Params,
    RpcError,
    read_params,
)
from .listing import icons_of

if TYPE_CHECKING:
    from ..core.json_value import Json
    from ..core.request_info import ClientInfo


DEFAULT_LEVEL: Level = "info"
"""A session's log level until the client sets one."""


class ClientCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Declared by the client at `initialize`, or with each request in the stateless era."""

    form: bool = False
    """The client can ask its user a question in a form."""
    url: bool = False
    """The client can send its user to a page."""
    sampling: bool = False
    roots: bool = False
    tasks: bool = False
    """The client declared the tasks extension."""

    @classmethod
    def of(cls, capabilities: JsonObject, *, elicitation: bool = True) -> ClientCapabilities:
        """Read the capabilities; with *elicitation*, a bare `elicitation: {}` means forms."""
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
    """One stateful client's session, from `initialize` until it disconnects."""

    __slots__ = ("_sent_info", "client", "level", "nonce", "subscriptions", "version")

    def __init__(
        self, version: Version, client: ClientCapabilities, sent_info: Json = None
    ) -> None:
        self.version = version
        self.client = client
        self._sent_info = sent_info
        """The `clientInfo` from `initialize`, as sent by the client."""
        self.nonce = os.urandom(8)
        """Random bytes that identify this session."""
        self.level: Level = DEFAULT_LEVEL
        self.subscriptions: set[str] = set()

    @property
    def info(self) -> ClientInfo | None:
        from .mcp_request_info import client_info

        return client_info(self._sent_info)


def reaches(level: Level, threshold: Level) -> bool:
    """Return whether a log message of *level* is sent to a client that set *threshold*."""
    return LEVELS.index(level) >= LEVELS.index(threshold)


WIDGETS = "io.modelcontextprotocol/ui"
"""The name of MCP's Apps extension."""
_encode = msgspec.json.Encoder().encode


class ServerInfo:
    """Describes the server for one registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def initialize(
        self, raw: Params, *, has_user: bool = False, has_session: bool = True
    ) -> tuple[Session, bytes]:
        """Open a session; a client asking for an unknown version is offered 2025-11-25.

        *has_user* says whether the client is logged in and so has its own tasks. Without
        *has_session*, only capabilities that need no session are included.
        """
        asked = read_params(raw, Initialize)
        version = STATEFUL.get(asked.version, LATEST_STATEFUL)
        result: JsonObject = {
            "protocolVersion": version.name,
            "capabilities": self.capabilities(version, has_user=has_user, has_session=has_session),
            "serverInfo": self._full_info(version),
        }
        client = ClientCapabilities.of(asked.capabilities, elicitation=version.elicitation)
        session = Session(version, client, asked.info)
        return session, _encode(result | self._instructions())

    def discover(self, version: Version) -> bytes:
        """Return the result of `server/discover`."""
        result: JsonObject = {
            "supportedVersions": sorted(STATELESS, reverse=True),
            "capabilities": self.capabilities(version),
        }
        result |= self._instructions() | {"_meta": {SERVER_INFO: self._full_info(version)}}
        return self.encode_result(result, version, cacheable=True)

    def capabilities(
        self, version: Version, *, has_user: bool = False, has_session: bool = True
    ) -> JsonObject:
        """Return the offered capabilities; methods of other capabilities do not exist."""
        changes = {"listChanged": True} if has_session else {}
        found: JsonObject = {"tools": changes}
        if self._has_resources:
            found["resources"] = changes | {"subscribe": True} if has_session else changes
        if self._registry.prompts:
            found["prompts"] = changes
        if version.completions and (self._registry.resources or self._registry.prompts):
            found["completions"] = {}
        if has_session:
            found["logging"] = {}
        if version.tasks and self._registry.has_tasks:
            found["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
            # Without a user, anyone who knows a task's id can access it, so ids are not listed.
            if has_user and self._registry.auth is not None:
                found["tasks"]["list"] = {}
        # Earlier versions have no `extensions` capability.
        if version.stateless and (extensions := self._extensions()):
            found["extensions"] = extensions
        return found

    @property
    def _has_resources(self) -> bool:
        """Whether there are any resources; replies from tools with a budget link to stored ones."""
        return bool(self._registry.resources) or self._registry.has_budgets

    def _extensions(self) -> JsonObject:
        found: JsonObject = {}
        if any(uri.startswith("ui://") for uri in self._registry.resources):
            found[WIDGETS] = {}
        if self._registry.has_tasks:
            found[TASKS] = {}
        return found

    def offers(self, family: str, version: Version) -> bool:
        """Return whether the methods of *family*, a name in the engine's table, are served."""
        registry = self._registry
        match family:
            case "resources":
                return self._has_resources
            case "prompts":
                return bool(registry.prompts)
            case "completion":
                # Versions without the capability still have the method.
                return not version.completions or bool(registry.resources or registry.prompts)
            case "server":
                return version.stateless
            case "tasks":
                return registry.has_tasks and (version.stateless or version.tasks)
            case "tasks extension":
                return registry.has_tasks and version.stateless
            case "core tasks":
                return registry.has_tasks and version.tasks
            case _:  # "task list"
                return registry.has_tasks and version.tasks and registry.auth is not None

    def server_info(self, version: Version) -> JsonObject:
        info: JsonObject = {"name": self._registry.name, "version": self._registry.version}
        if version.titles and self._registry.title:
            info["title"] = self._registry.title
        return info

    def _full_info(self, version: Version) -> JsonObject:
        """Return the server info with icons, which can be large and are sent only once."""
        info, registry = self.server_info(version), self._registry
        if version.icons and registry.icons:
            info["icons"] = icons_of(registry.icons)
        if version.icons and registry.website_url:
            info["websiteUrl"] = registry.website_url
        return info

    def encode_result(
        self, result: JsonObject, version: Version, *, cacheable: bool = False
    ) -> bytes:
        """Return the JSON of a result, with the members that every stateless result has."""
        if not version.stateless:
            return _encode(result)
        result.setdefault("resultType", "complete")
        if cacheable:
            result |= {"ttlMs": 0, "cacheScope": "private"}
        result.setdefault("_meta", {SERVER_INFO: self.server_info(version)})
        return _encode(result)

    @cached_property
    def json(self) -> bytes:
        """The JSON of the server info, which is in each stateless result's `_meta`."""
        return _encode(self.server_info(V2026_07_28))

    def _instructions(self) -> dict[str, str]:
        description = self._registry.description
        return {"instructions": description} if description else {}
