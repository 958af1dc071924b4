"""How data is wrapped. Worked out from the return annotation, never from a value."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class Wrap(Enum):
    BARE = "bare"
    """An object is sent as it is."""
    RESULT = "result"
    """Anything else is `{"result": …}`."""
    EMPTY = "empty"
    """`None` is `{}`."""
    SPREAD = "spread"
    """A fixed tuple is `{"result0": …, "result1": …}`."""


_items = msgspec.json.Decoder(list[msgspec.Raw])


class Shape(msgspec.Struct, frozen=True):
    """One wrapping for structuredContent, output schema, OpenAPI and reading alike."""

    wrapping: Wrap = Wrap.RESULT

    def wrap(self, encoded: bytes) -> bytes:
        """The JSON that is sent for the JSON of the data."""
        match self.wrapping:
            case Wrap.RESULT:
                return b'{"result":%b}' % encoded
            case Wrap.BARE:
                return encoded
            case Wrap.EMPTY:
                return b"{}"
            case Wrap.SPREAD:
                items = _items.decode(encoded)
                return msgspec.json.encode({f"result{i}": item for i, item in enumerate(items)})

    def unwrap(self, sent: Any) -> Any:
        """The data that was wrapped as *sent*; what is not wrapped so is given back."""
        match self.wrapping:
            case Wrap.RESULT if isinstance(sent, dict) and sent.keys() == {"result"}:
                return sent["result"]
            case Wrap.EMPTY if sent == {}:
                return None
            case Wrap.SPREAD if isinstance(sent, dict):
                return [sent[f"result{i}"] for i in range(len(sent)) if f"result{i}" in sent]
            case _:
                return sent

    def wrap_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of what is sent for the schema of the data."""
        match self.wrapping:
            case Wrap.RESULT:
                return _object({"result": schema}, [schema])
            case Wrap.BARE:
                return schema
            case Wrap.EMPTY:
                return {"type": "object", "additionalProperties": False}
            case Wrap.SPREAD:
                parts = schema.get("prefixItems", [])
                return _object({f"result{i}": part for i, part in enumerate(parts)}, [schema])


BARE = Shape(Wrap.BARE)
RESULT = Shape(Wrap.RESULT)
EMPTY = Shape(Wrap.EMPTY)
SPREAD = Shape(Wrap.SPREAD)


def _object(properties: dict[str, Any], sources: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """An object schema of *properties*, with the `$defs` of its sources moved to its root."""
    shared = {name: part for source in sources for name, part in source.get("$defs", {}).items()}
    bare = {
        name: {key: value for key, value in part.items() if key != "$defs"}
        for name, part in properties.items()
    }
    whole: dict[str, Any] = {"type": "object", "properties": bare, "required": list(bare)}
    return whole | {"additionalProperties": False} | ({"$defs": shared} if shared else {})
