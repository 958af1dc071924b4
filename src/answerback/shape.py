"""How data is wrapped. Worked out from the return annotation, never from a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


_items = msgspec.json.Decoder(list[msgspec.Raw])


class Shape(msgspec.Struct, frozen=True):
    """One wrapping for structuredContent, output schema, OpenAPI and reading alike."""

    wrapping: Literal["bare", "result", "empty", "spread"] = "result"
    """bare: an object is sent as it is; result: anything else is `{"result": …}`;
    empty: `None` is `{}`; spread: a fixed tuple is `{"result0": …, "result1": …}`."""

    def wrap(self, encoded: bytes) -> bytes:
        """The JSON that is sent for the JSON of the data."""
        match self.wrapping:
            case "result":
                return b'{"result":%b}' % encoded
            case "bare":
                return encoded
            case "empty":
                return b"{}"
            case "spread":
                items = _items.decode(encoded)
                return msgspec.json.encode({f"result{i}": item for i, item in enumerate(items)})

    def unwrap(self, sent: Any) -> Any:
        """The data that was wrapped as *sent*; what is not wrapped so is given back."""
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
        """The schema of what is sent for the schema of the data."""
        match self.wrapping:
            case "result":
                return _object({"result": schema}, [schema])
            case "bare":
                return schema
            case "empty":
                return {"type": "object", "additionalProperties": False}
            case "spread":
                parts = schema.get("prefixItems", [])
                return _object({f"result{i}": part for i, part in enumerate(parts)}, [schema])


BARE = Shape("bare")
RESULT = Shape("result")
EMPTY = Shape("empty")
SPREAD = Shape("spread")


def _object(properties: dict[str, Any], sources: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """An object schema of *properties*, with the `$defs` of its sources moved to its root."""
    shared = {name: part for source in sources for name, part in source.get("$defs", {}).items()}
    bare = {
        name: {key: value for key, value in part.items() if key != "$defs"}
        for name, part in properties.items()
    }
    whole: dict[str, Any] = {"type": "object", "properties": bare, "required": list(bare)}
    return whole | {"additionalProperties": False} | ({"$defs": shared} if shared else {})
