"""Types without their own JSON form: how they are written, read and described.

The table lists some standard library classes by name, so that none of them is imported here.
`register_type` adds an author's class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec


class Codec(msgspec.Struct, frozen=True, eq=False):
    """A class's JSON form."""

    cls: type
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any] | None
    """None for a class that is only used in results."""
    schema: Mapping[str, Any]
    example: str | None = None
    """An example to show in messages."""
    is_free_text: bool = False
    """Every string is valid, so in a union the order of the members decides."""


# Filled by `register_type`.
_REGISTERED: dict[type, Codec] = {}


def register_type(
    cls: type,
    *,
    encode: Callable[[Any], Any],
    decode: Callable[[Any], Any] | None = None,
    schema: Mapping[str, Any] | None = None,
) -> None:
    """Support *cls* in arguments, results and fields, in all of this process's apps.

    *encode* turns an object into JSON (dict, list, str, number, bool, None). *decode* turns JSON
    into an object, and raises ValueError for unreadable JSON; without it, the type is only for
    results. *schema* is the JSON Schema for that JSON; without it, any JSON is allowed.
    Register a type before the tools that use it. A subclass is encoded as its base class.
    """
    given: tuple[Any, ...] = (cls, encode, decode or encode)
    if not isinstance(given[0], type):
        raise TypeError(f"register_type takes a class, not {cls!r}")
    if not all(map(callable, given)):
        raise TypeError(f"encode and decode for {cls.__name__} should be functions")
    if cls in _REGISTERED:
        raise ValueError(f"{cls.__name__} is already registered")
    if is_served(cls):
        raise ValueError(f"{cls.__name__} already has a JSON form; register another class")
    _REGISTERED[cls] = Codec(cls, encode, decode, dict(schema or {}))


def is_served(cls: Any) -> bool:
    """Return whether tools can use *cls* as is."""
    from .annotation_reader import read_type
    from .problems import UnservableType

    try:
        read_type(cls)
    except UnservableType:
        return False
    return True


def codec_for(cls: Any) -> Codec | None:
    """Return the codec for an annotation's class."""
    if not isinstance(cls, type):
        return None
    if cls in _REGISTERED:
        return _REGISTERED[cls]
    # In some Python versions, a class is in a submodule, such as `pathlib._local`.
    module = cls.__module__.partition(".")[0]
    make = _STANDARD.get((module, cls.__name__))
    return None if make is None else make(cls)


def codec_of_value(value: Any) -> Codec | None:
    """Return the codec that encodes *value*: that of its class or nearest base class."""
    for cls in type(value).__mro__:
        if (codec := codec_for(cls)) is not None:
            return codec
    return None


def _path(cls: type) -> Codec:
    return Codec(cls, str, _from_text(cls), {"type": "string"}, is_free_text=True)


def _address(example: str, **keywords: str) -> Callable[[type], Codec]:
    schema = {"type": "string", **keywords}
    return lambda cls: Codec(cls, str, _from_text(cls), schema, example)


def _zone(cls: type) -> Codec:
    return Codec(cls, _zone_key, _from_text(cls), {"type": "string"}, "Europe/Oslo")


def _zone_key(zone: Any) -> str:
    if zone.key is None:
        raise ValueError("a ZoneInfo without a key")
    return str(zone.key)


def _pattern(cls: type) -> Codec:
    schema = {"type": "string", "format": "regex"}
    return Codec(cls, lambda pattern: pattern.pattern, _from_text(re.compile), schema, "^[a-z]+$")


def _from_text(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return *make*, restricted to strings, because `IPv4Address(7)` is valid too."""

    def decode(value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueError("not a string")
        return make(value)

    return decode


_PATHS = ("PurePath", "PurePosixPath", "PureWindowsPath", "Path", "PosixPath", "WindowsPath")
_STANDARD: dict[tuple[str, str], Callable[[type], Codec]] = {
    **{("pathlib", name): _path for name in _PATHS},
    ("ipaddress", "IPv4Address"): _address("192.0.2.1", format="ipv4"),
    ("ipaddress", "IPv6Address"): _address("2001:db8::1", format="ipv6"),
    ("ipaddress", "IPv4Network"): _address("192.0.2.0/24"),
    ("ipaddress", "IPv6Network"): _address("2001:db8::/32"),
    ("ipaddress", "IPv4Interface"): _address("192.0.2.1/24"),
    ("ipaddress", "IPv6Interface"): _address("2001:db8::1/32"),
    ("zoneinfo", "ZoneInfo"): _zone,
    ("re", "Pattern"): _pattern,
}
