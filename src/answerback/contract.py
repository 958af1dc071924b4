"""How replies look: their text, their error text, their wrapping, names and HTTP form."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

TextStyle = Literal["json", "json_first", "indented", "readable", "own"]
ErrorStyle = Literal["message", "prefixed", "json", "coded"]
Dialect = Literal["mcp", "rest", "envelope", "problem"]


RESERVED_ROUTES = frozenset({"functions", "openapi.json", "healthz", "mcp", "message"})
"""The first parts of the server's own paths. With the route "/" no tool may have such a name."""


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """One way for replies to look. The five presets are values of this; derive your own."""

    name: str
    text: TextStyle = "json"
    """json, indented: after a text of the author's own; json_first: before it, and a string
    too as JSON; own, readable: only where there is none."""
    error_text: ErrorStyle = "message"
    wrap_objects: bool = False
    """Objects too are `{"result": …}`."""
    spread_tuples: bool = False
    """A fixed tuple is `{"result0": …, "result1": …}`."""
    tool_prefix: str = ""
    """Before a tool's name on MCP."""
    envelope_in_mcp: bool = False
    """The envelope's members stand in the MCP result too."""
    http: Dialect = "rest"
    route: str = "/functions/"
    masked: str = "The tool failed unexpectedly"
    """What a caller reads instead of an exception that is not a ToolError."""

    def derive(self, **changes: Any) -> Contract:
        """This contract with *changes*."""
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
    """The preset of that name, or the contract itself."""
    if isinstance(contract, Contract):
        return contract
    if contract not in PRESETS:
        raise ValueError(f"no contract is named {contract!r}; there are {', '.join(PRESETS)}")
    return PRESETS[contract]
