"""Contracts: the format of replies (text, error text, wrapping, names and HTTP)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

TextStyle = Literal["json", "json_first", "indented", "readable", "own"]
ErrorStyle = Literal["message", "prefixed", "json", "coded"]
Dialect = Literal["mcp", "rest", "envelope", "problem"]

MASKED = "The tool failed unexpectedly"
NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
"""The characters allowed in a tool's name. Not a regular expression, since those compile slowly."""
RESERVED_ROUTES = frozenset({"functions", "openapi.json", "healthz", "readyz", "mcp", "message"})
"""The first segments of the server's own paths. With the route "/", tools cannot use them."""


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """The format of an app's replies. There are five presets; `derive` makes others."""

    name: str
    """The contract's name, used in error messages."""
    text: TextStyle = "json"
    """The text added for data.

    json and indented: JSON, after the author's text; json_first: JSON, before it, with
    strings as JSON too; own and readable: readable text, only if the author provided none.
    """
    error_text: ErrorStyle = "message"
    """The text of an error.

    message: the message; prefixed: `Error: message`; json: `{"error": "message"}`; coded:
    `CODE: message (details)` for errors from your functions, and only the message for others.
    """
    tool_failure: bool = False
    """Add the proposed `_meta["io.modelcontextprotocol/toolFailure"]` to failed MCP results."""
    hint_in_text: bool = False
    """Add an error's hint to message or prefixed text, on its own line: `Hint: …`."""
    message: bool = False
    """Allow a `message` in MCP's data that repeats the text, for hosts that show only the data.

    Only tools that return a `Reply[T]`, or that have a budget, add it. For every tool, a text block
    names the links, audio and binary files, which other hosts do not show.
    """
    wrap_objects: bool = False
    """Wrap objects as `{"result": …}` too."""
    spread_tuples: bool = False
    """Send fixed tuples as `{"result0": …, "result1": …}`, and NamedTuples by field name."""
    error_decides: bool = False
    """Take an object with an `error` that is not empty for a failure, whatever else it has."""
    tool_prefix: str = ""
    """The prefix for tool names in MCP."""
    envelope_in_mcp: bool = False
    """Add the envelope's members to MCP results."""
    http: Dialect = "rest"
    """The dialect of HTTP replies, unless the client asks for another."""
    route: str = "/functions/"
    """The start of each tool's HTTP path, such as "/functions/" or "/"."""
    always_200: bool = False
    """Send status 200 for every tool call over HTTP, for clients that read only the body.

    `http` must be "mcp" or "envelope", whose bodies say whether the call failed.
    """
    masked: str = MASKED
    """The message that callers see for an exception that is not a ToolError."""

    def __post_init__(self) -> None:
        given = msgspec.structs.asdict(self)
        for name, style in _STYLES.items():
            if given[name] not in (values := get_args(style)):
                raise ValueError(_message(self, name, f"one of {', '.join(values)}"))
        for name, kind in _PLAIN.items():
            if not isinstance(given[name], kind):
                raise ValueError(_message(self, name, f"of type {kind.__name__}"))
        if not self.name:
            raise ValueError(_message(self, "name", "a non-empty string"))
        if not _is_route(self.route):
            raise ValueError(_message(self, "route", "a path such as '/functions/' or '/'"))
        if not NAME_CHARACTERS.issuperset(self.tool_prefix):
            raise ValueError(_message(self, "tool_prefix", "made of A-Z a-z 0-9 _ . -"))
        if self.always_200 and self.http not in ("mcp", "envelope"):
            raise ValueError(
                f"contract {self.name!r}: always_200 needs http='mcp' or http='envelope', "
                "whose bodies say that a call failed"
            )

    def derive(self, **changes: object) -> Contract:
        """Return a copy of this contract with *changes*."""
        return msgspec.structs.replace(self, **changes)


_STYLES: dict[str, Any] = {"text": TextStyle, "error_text": ErrorStyle, "http": Dialect}
_PLAIN: dict[str, type] = {
    **dict.fromkeys(("name", "tool_prefix", "route", "masked"), str),
    **dict.fromkeys(("wrap_objects", "spread_tuples", "envelope_in_mcp"), bool),
    **dict.fromkeys(("hint_in_text", "message", "always_200", "tool_failure"), bool),
    "error_decides": bool,
}


def _is_route(text: str) -> bool:
    """Return whether the text is "/", or starts and ends with a slash and has no empty part."""
    parts = text.split("/")
    inner = parts[1:-1]
    known = NAME_CHARACTERS | {"~"}
    return parts[0] == parts[-1] == "" != text and all(
        part and known.issuperset(part) for part in inner
    )


def _message(contract: Contract, name: str, expected: str) -> str:
    value = msgspec.structs.asdict(contract)[name]
    return f"contract {contract.name!r}: {name}={value!r} should be {expected}"


STANDARD = Contract(name="standard", hint_in_text=True, message=True)
"""The replies that MCP hosts and REST clients expect; the default."""
ALIGNED = Contract(
    name="aligned",
    text="json_first",
    error_text="json",
    wrap_objects=True,
    spread_tuples=True,
    tool_prefix="functions.",
)
"""The same JSON over MCP and over HTTP or CGI."""
ENVELOPE = Contract(
    name="envelope",
    text="readable",
    error_text="prefixed",
    envelope_in_mcp=True,
    http="envelope",
)
"""Every reply is an object with `success`, `timestamp` and `content`."""
APPS = Contract(name="apps", text="own", http="mcp")
"""For OpenAI Apps SDK hosts: the model reads your text, and a widget reads the data."""
DIRECT = Contract(
    name="direct",
    text="indented",
    error_text="prefixed",
    error_decides=True,
    http="mcp",
    route="/",
)
"""Tools directly under the root path, and MCP results in plain HTTP bodies."""

PRESETS = {preset.name: preset for preset in (STANDARD, ALIGNED, ENVELOPE, APPS, DIRECT)}
"""The presets by name."""


def contract_named(contract: str | Contract) -> Contract:
    """Return the preset with that name; a Contract is returned unchanged."""
    if isinstance(contract, Contract):
        return contract
    if contract not in PRESETS:
        raise ValueError(f"no contract is named {contract!r}; use one of {', '.join(PRESETS)}")
    return PRESETS[contract]
