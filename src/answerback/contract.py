"""Contracts: the form of replies, which covers text, error text, wrapping, names and HTTP."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

TextStyle = Literal["json", "json_first", "indented", "readable", "own"]
ErrorStyle = Literal["message", "prefixed", "json", "coded"]
Dialect = Literal["mcp", "rest", "envelope", "problem"]


RESERVED_ROUTES = frozenset({"functions", "openapi.json", "healthz", "readyz", "mcp", "message"})
"""The first parts of the server's own paths. With the route "/" no tool may have such a name."""


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """The form of an app's replies. There are five presets; `derive` makes others."""

    name: str
    text: TextStyle = "json"
    """The text that is added for data.

    json and indented: JSON, after a text of the author; json_first: JSON, before it, and
    strings as JSON too; own and readable: readable text, only if the author gave none.
    """
    error_text: ErrorStyle = "message"
    wrap_objects: bool = False
    """Objects are wrapped as `{"result": …}` too."""
    spread_tuples: bool = False
    """A tuple of fixed length is wrapped as `{"result0": …, "result1": …}`."""
    tool_prefix: str = ""
    """The prefix of tool names in MCP."""
    envelope_in_mcp: bool = False
    """MCP results have the envelope's members too."""
    http: Dialect = "rest"
    """The dialect of HTTP replies, unless the client asks for another."""
    route: str = "/functions/"
    """The start of each tool's path in HTTP."""
    masked: str = "The tool failed unexpectedly"
    """The message to the caller for an exception that is not a ToolError."""

    def derive(self, **changes: Any) -> Contract:
        """Return a copy of this contract with *changes*."""
        return msgspec.structs.replace(self, **changes)


STANDARD = Contract(name="standard")
ALIGNED = Contract(
    name="aligned",
    text="json_first",
    error_text="json",
    wrap_objects=True,
    spread_tuples=True,
    tool_prefix="functions.",
)
ENVELOPE = Contract(
    name="envelope",
    text="readable",
    error_text="prefixed",
    envelope_in_mcp=True,
    http="envelope",
)
APPS = Contract(name="apps", text="own", http="mcp")
DIRECT = Contract(name="direct", text="indented", error_text="prefixed", http="mcp", route="/")

PRESETS = {preset.name: preset for preset in (STANDARD, ALIGNED, ENVELOPE, APPS, DIRECT)}


def contract_named(contract: str | Contract) -> Contract:
    """Return the preset of that name; a Contract is returned unchanged."""
    if isinstance(contract, Contract):
        return contract
    if contract not in PRESETS:
        raise ValueError(f"no contract is named {contract!r}; there are {', '.join(PRESETS)}")
    return PRESETS[contract]
