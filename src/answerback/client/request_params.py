"""A client's request in each era: its parameters, `_meta` and headers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from ..core.json_value import Json, JsonObject
from ..core.versions import V2026_07_28, Version
from ..dialects.mcp import SERVER_INFO
from ..protocol.jsonrpc import PREFIX, TASKS
from ..protocol.mcp_request_info import NAMED_BY, encode_header, is_plain

CLIENT_INFO = {"name": "answerback", "version": sys.modules["answerback"].__version__}


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a server gave about itself when the connection was opened."""

    version: Version
    """The MCP version that both sides speak."""
    capabilities: dict[str, Any] = {}
    """What the server says that it can do."""
    info: dict[str, Any] = {}
    """The server's `name` and `version`."""
    instructions: str = ""
    """The server's text for models."""

    @property
    def name(self) -> str:
        """The server's name; empty if it gave none."""
        return str(self.info.get("name") or "")

    @classmethod
    def of(cls, result: Mapping[str, Any], version: Version) -> ServerFacts:
        """Read the result of `initialize` or `server/discover`."""
        meta, capabilities = result.get("_meta"), result.get("capabilities")
        info = meta.get(SERVER_INFO) if isinstance(meta, dict) else None
        info = info or result.get("serverInfo")
        return cls(
            version=version,
            capabilities=capabilities if isinstance(capabilities, dict) else {},
            info=info if isinstance(info, dict) else {},
            instructions=str(result.get("instructions") or ""),
        )

    def offers(self, *path: str) -> bool:
        """Return whether the server declared a capability, such as `tools`, `listChanged`."""
        found: Json = self.capabilities
        for name in path:
            if not isinstance(found, dict) or name not in found:
                return False
            found = found[name]
        return found is not False


def _with_meta(params: Mapping[str, Any], more: JsonObject) -> JsonObject:
    given = params.get("_meta") or {}
    return {**params, "_meta": {**given, **more}}


class StatefulEra:
    """2024-11-05 to 2025-11-25: `initialize` agreed on the version."""

    stateless = False

    def __init__(self, version: Version | None = None) -> None:
        self._headers = {} if version is None else {"MCP-Protocol-Version": version.name}

    def params(self, params: Mapping[str, Any], token: int | None) -> JsonObject:
        """Return the parameters to send; *token* asks for progress."""
        return dict(params) if token is None else _with_meta(params, {"progressToken": token})

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """Return the HTTP headers of a request."""
        return self._headers


class StatelessEra:
    """2026-07-28: each request names its version and the client's capabilities."""

    stateless = True

    def __init__(
        self, capabilities: JsonObject, client: Mapping[str, Any], log_level: str | None = None
    ) -> None:
        self._meta: JsonObject = {
            PREFIX + "protocolVersion": V2026_07_28.name,
            PREFIX + "clientCapabilities": capabilities,
            PREFIX + "clientInfo": client,
        }
        if log_level is not None:
            self._meta[PREFIX + "logLevel"] = log_level
        self._encoded = msgspec.Raw(msgspec.json.encode(self._meta))

    def params(self, params: Mapping[str, Any], token: int | None) -> JsonObject:
        is_of_task = "task" in params or "taskId" in params
        if token is None and "_meta" not in params and not is_of_task:
            return {**params, "_meta": self._encoded}
        more = self._meta if token is None else {**self._meta, "progressToken": token}
        if is_of_task:
            # Earlier versions ask for a task by a parameter, this one by a capability.
            params = {name: value for name, value in params.items() if name != "task"}
            more = {**more, PREFIX + "clientCapabilities": self._with_tasks()}
        return _with_meta(params, more)

    def _with_tasks(self) -> JsonObject:
        capabilities: JsonObject = self._meta[PREFIX + "clientCapabilities"]
        extensions = {**(capabilities.get("extensions") or {}), TASKS: {}}
        return {**capabilities, "extensions": extensions}

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        found = {"MCP-Protocol-Version": V2026_07_28.name, "Mcp-Method": method}
        name = params.get(NAMED_BY.get(method, ""))
        if isinstance(name, str):
            found["Mcp-Name"] = name if is_plain(name) else encode_header(name)
        return found
