"""Shape: how data is wrapped in a JSON object.

The shape follows from the return annotation, never from a value.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Shape(msgspec.Struct, frozen=True):
    """The wrapping of structuredContent, output schemas and OpenAPI, also used for reading."""

    wrapping: Literal["bare", "result", "empty", "spread"] = "result"
    """bare: an object is sent unchanged; result: anything else is `{"result": …}`;
    empty: `None` is `{}`; spread: a tuple of fixed length is `{"result0": …, "result1": …}`."""

    def wrap(self, encoded: bytes) -> bytes:
        """Return the wrapped JSON of *encoded* data."""
        return b"".join(self.wrap_in_pieces(encoded))

    def wrap_in_pieces(self, encoded: bytes) -> tuple[bytes, bytes, bytes]:
        """Return the wrapped JSON in three pieces: large data is the second, not copied."""
        match self.wrapping:
            case "result":
                return (b'{"result":', encoded, b"}")
            case "bare":
                return (b"", encoded, b"")
            case "empty":
                return (b"", b"{}", b"")
            case "spread":
                items = _decode_items(encoded)
                spread = {f"result{i}": item for i, item in enumerate(items)}
                return (b"", msgspec.json.encode(spread), b"")

    def unwrap(self, sent: Any) -> Any:
        """Return the data in *sent*; a value that is not wrapped in this shape is returned."""
        match self.wrapping:
            case "result" if isinstance(sent, dict) and sent.keys() == {"result"}:
                return sent["result"]
            case "empty" if sent == {}:
                return None
            case "spread" if isinstance(sent, dict):
                return [sent[f"result{i}"] for i in range(len(sent)) if f"result{i}" in sent]
            case _:
                return sent

    def wrap_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the wrapped data for the *schema* of the data."""
        match self.wrapping:
            case "result":
                return _object_schema({"result": schema}, schema)
            case "bare":
                return schema
            case "empty":
                return {"type": "object", "properties": {}, "additionalProperties": False}
            case "spread":
                parts = schema.get("prefixItems", [])
                return _object_schema({f"result{i}": part for i, part in enumerate(parts)}, schema)


BARE = Shape("bare")
RESULT = Shape("result")
EMPTY = Shape("empty")
SPREAD = Shape("spread")


def _object_schema(properties: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    """Return an object schema of *properties*; the `$defs` of *source* move to its root."""
    definitions = source.get("$defs", {})
    bare = {
        name: {key: value for key, value in part.items() if key != "$defs"}
        for name, part in properties.items()
    }
    whole: dict[str, Any] = {"type": "object", "properties": bare, "required": list(bare)}
    return whole | {"additionalProperties": False} | ({"$defs": definitions} if definitions else {})
