"""What the server says about itself, and beside every result."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from ..versions import LATEST_LEGACY, LEGACY, MODERN, Version
from . import params
from .messages import Params
from .session import Client, Session

if TYPE_CHECKING:
    from ..app import App

SERVER_INFO = params.PREFIX + "serverInfo"
_encode = msgspec.json.Encoder().encode


class About:
    def __init__(self, app: App) -> None:
        self._app = app

    def initialize(self, raw: Params) -> tuple[Session, bytes]:
        """Open a legacy session; a version we do not speak is answered with our newest."""
        asked = params.read(raw, params.Initialize)
        version = LEGACY.get(asked.version, LATEST_LEGACY)
        result: dict[str, Any] = {
            "protocolVersion": version.name,
            "capabilities": self.capabilities(version),
            "serverInfo": self.server_info(version),
        }
        client = Client.of(asked.capabilities, elicitation=version.elicitation)
        return Session(version, client), _encode(result | self._instructions())

    def discover(self, version: Version) -> bytes:
        result: dict[str, Any] = {
            "supportedVersions": sorted(MODERN, reverse=True),
            "capabilities": self.capabilities(version),
        }
        return self.finish(result | self._instructions(), version, cacheable=True)

    def capabilities(self, version: Version) -> dict[str, Any]:
        """Exactly what is served: what is not said here answers that there is no such method."""
        found: dict[str, Any] = {"tools": {"listChanged": True}}
        if self._app.resources:
            found["resources"] = {"listChanged": True, "subscribe": True}
        if self._app.prompts:
            found["prompts"] = {"listChanged": True}
        if version.completions and (self._app.resources or self._app.prompts):
            found["completions"] = {}
        found["logging"] = {}
        return found

    def offers(self, method: str, version: Version) -> bool:
        family = method.partition("/")[0]
        if family == "tools":
            return True
        if family == "server":
            return version.modern
        capability = "completions" if family == "completion" else family
        return capability in self.capabilities(version) or (
            # Older versions complete without saying so.
            family == "completion" and not version.completions
        )

    def server_info(self, version: Version) -> dict[str, Any]:
        info: dict[str, Any] = {"name": self._app.name, "version": self._app.version}
        if version.titles and self._app.title:
            info["title"] = self._app.title
        return info

    def finish(self, result: dict[str, Any], version: Version, *, cacheable: bool = False) -> bytes:
        """The result with what every modern result carries."""
        if not version.modern:
            return _encode(result)
        result.setdefault("resultType", "complete")
        if cacheable:
            result |= {"ttlMs": 0, "cacheScope": "private"}
        result["_meta"] = {SERVER_INFO: self.server_info(version)}
        return _encode(result)

    def signed(self, result: bytes) -> bytes:
        """A tool's modern result: it ends in its `_meta`, and that never is empty."""
        return result[:-2] + self._signature

    @cached_property
    def _signature(self) -> bytes:
        info = _encode(self.server_info(LATEST_LEGACY))
        return b',"%b":%b}}' % (SERVER_INFO.encode(), info)

    def _instructions(self) -> dict[str, str]:
        return {"instructions": self._app.description} if self._app.description else {}
