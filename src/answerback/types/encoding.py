"""Python values to JSON text."""

from typing import Any

import msgspec


class UnknownToJson(TypeError):
    """A value of a class that nothing here can write."""


def _encode_hook(value: Any) -> Any:
    # The unbound methods, because the class's own may say something else.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if hasattr(value, "__pydantic_serializer__"):
        from .pydantic_types import dump

        return dump(value)
    raise UnknownToJson(f"{type(value).__name__} is not known to JSON")


ENCODER = msgspec.json.Encoder(enc_hook=_encode_hook)
