"""Dialects: the forms a reply can take on a wire (mcp, rest, envelope, problem).

Each dialect writes replies and reads them back. Only what it can carry survives the round trip:

    write(read(write(r))) == write(r)
    read(write(r)) == carried(r)

`tests/dialects/carried.py` says what each dialect carries.

A dialect's module is imported on first use. Dialects know nothing about wires.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from ..contract import ENVELOPE, STANDARD, Contract, Dialect
from ..core.reply import Reply
from ..core.shape import BARE, RESULT, Shape, spread_shape
from ..errors import MalformedReply
from .status_and_headers import HttpReply, json_reply

if TYPE_CHECKING:
    from ..core.versions import Version

__all__ = [
    "HttpReply",
    "MalformedReply",
    "as_sent",
    "read",
    "shape_of",
    "write",
]

_DIALECTS = get_args(Dialect)


def write(
    reply: Reply[Any],
    dialect: Dialect,
    shape: Shape,
    contract: Contract,
    version: Version | None = None,
) -> HttpReply:
    """Write the reply in *dialect*; the status does not depend on the dialect."""
    written = _load(dialect).write(reply, shape, contract, version)
    if isinstance(written, HttpReply):
        return written
    if dialect == contract.http:
        return json_reply(reply, written)
    return json_reply(reply, written, f"application/vnd.answerback.{dialect}+json")


def read(
    http_reply: HttpReply, dialect: Dialect, shape: Shape = BARE, contract: Contract = STANDARD
) -> Reply[Any]:
    """Read a reply written by Answerback or another server; raise MalformedReply."""
    source = http_reply.body if dialect in ("mcp", "envelope") else http_reply
    reply: Reply[Any] = _load(dialect).read(source, shape, contract)
    return reply


def as_sent(
    reply: Reply[Any], dialect: Dialect, contract: Contract | None = None
) -> dict[str, Any]:
    """Return the JSON object sent for the reply; an image's bytes become a block."""
    contract = contract or reply.contract or (ENVELOPE if dialect == "envelope" else STANDARD)
    written = write(reply, dialect, reply.shape or shape_of(reply, contract), contract)
    if not written.media_type.endswith("json"):
        from .rest import write_content

        written = write_content(reply)
    sent: dict[str, Any] = msgspec.json.decode(written.body)
    return sent


def shape_of(reply: Reply[Any], contract: Contract = STANDARD) -> Shape:
    """Return the data's shape: an object is sent bare, any other value as `{"result": …}`."""
    if reply.data is msgspec.UNSET:
        return BARE
    if contract.spread_tuples and isinstance(reply.data, tuple):
        return spread_shape(getattr(reply.data, "_fields", ()), len(reply.data))
    if contract.wrap_objects:
        return RESULT
    from .common import encoded_data

    return BARE if encoded_data(reply).startswith(b"{") else RESULT


@cache
def _load(dialect: Dialect) -> Any:
    if dialect not in _DIALECTS:
        raise ValueError(f"dialect={dialect!r} should be one of {', '.join(_DIALECTS)}")
    return import_module(f".{dialect}", __name__)
