"""Shape: how data is wrapped in a JSON object.

The shape follows from the return annotation, or from the value if none is declared.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .json_value import Json, JsonObject

_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Shape(msgspec.Struct, frozen=True):
    """How data is wrapped in structuredContent, output schemas and OpenAPI, and unwrapped."""

    wrapping: Literal["bare", "result", "empty", "spread"] = "result"
    """bare: an object is sent unchanged; result: anything else is `{"result": …}`;
    empty: `None` is `{}`; spread: a fixed-length tuple is `{"result0": …, "result1": …}`."""
    names: tuple[str, ...] = ()
    """A spread tuple's member names, unless they are `result0`, `result1` and so on."""
    optional: bool = False
    """Whether a spread tuple may be `None`, which is sent as `{}`."""
    structured: bool = True
    """False: MCP sends only the text, without structuredContent."""
    message: bool = False
    """Whether MCP's object may also have a `message` with what the blocks say beyond the data."""
    lines: bool = False
    """Whether MCP content may include text with a line per link, audio block or binary file."""

    def wrap(self, encoded: bytes) -> bytes:
        """Return the wrapped JSON of *encoded* data."""
        return b"".join(self.wrap_in_pieces(encoded))

    def wrap_in_pieces(self, encoded: bytes) -> tuple[bytes, bytes, bytes]:
        """Return the wrapped JSON in three pieces: the second is the data, which is not copied."""
        match self.wrapping:
            case "result":
                return (b'{"result":', encoded, b"}")
            case "bare":
                return (b"", encoded, b"")
            case "empty":
                return (b"", b"{}", b"")
            case "spread":
                items = [] if encoded == b"null" else _decode_items(encoded)
                spread = dict(zip(self._names(len(items)), items, strict=False))
                return (b"", msgspec.json.encode(spread), b"")

    def unwrap(self, sent: Json) -> Json:
        """Return the data in *sent*; a value not wrapped in this shape is returned unchanged."""
        match self.wrapping:
            case "result" if isinstance(sent, dict) and sent.keys() == {"result"}:
                return sent["result"]
            case "empty" if sent == {}:
                return None
            case "spread" if self.optional and sent == {}:
                return None
            case "spread" if isinstance(sent, dict):
                return [sent[name] for name in self._names(len(sent)) if name in sent]
            case _:
                return sent

    def wrap_schema(self, schema: JsonObject) -> JsonObject:
        """Return the schema of the wrapped data, given the data's own *schema*."""
        match self.wrapping:
            case "result":
                return _object_schema({"result": schema}, schema)
            case "bare":
                return schema
            case "empty":
                return {"type": "object", "properties": {}, "additionalProperties": False}
            case "spread":
                # The tuple may be one branch of an `anyOf`.
                types = [schema, *schema.get("anyOf", ())]
                parts: list[Any] = next(
                    (each["prefixItems"] for each in types if "prefixItems" in each), []
                )
                named = dict(zip(self._names(len(parts)), parts, strict=False))
                wrapped = _object_schema(named, schema)
                if self.optional:
                    del wrapped["required"]
                return wrapped

    def with_lines(self) -> Shape:
        """Return the shape for a reply with blocks that is sent over MCP."""
        return msgspec.structs.replace(self, lines=True)

    def without_additions(self) -> Shape:
        """Return the shape for wires other than MCP: without `message` or `lines`."""
        if not self.message and not self.lines:
            return self
        return msgspec.structs.replace(self, message=False, lines=False)

    def _names(self, count: int) -> tuple[str, ...]:
        return self.names or tuple(f"result{index}" for index in range(count))


BARE = Shape("bare")
RESULT = Shape("result")
EMPTY = Shape("empty")
SPREAD = Shape("spread")


def spread_shape(names: tuple[str, ...], count: int) -> Shape:
    """Return the shape of a tuple of *count* items, each of which becomes a member."""
    if count == 0:
        return EMPTY
    if not names and count == 1:
        names = ("result",)
    return Shape("spread", names) if names else SPREAD


# `definitions` is the older name, which an author's own schema may use.
_DEFINITIONS = ("$defs", "definitions")


def _object_schema(properties: JsonObject, source: JsonObject) -> JsonObject:
    """Return an object schema with *properties*; the `$defs` of *source* move to its root."""
    definitions = {name: source[name] for name in _DEFINITIONS if name in source}
    bare = {
        name: {key: value for key, value in part.items() if key not in _DEFINITIONS}
        for name, part in properties.items()
    }
    members = {"type": "object", "properties": bare, "required": list(bare)}
    return {**members, "additionalProperties": False, **definitions}
