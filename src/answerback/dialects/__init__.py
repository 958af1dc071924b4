"""Dialects: the forms of a reply on a wire (mcp, rest, envelope, problem).

Each dialect writes replies, reads them back, and returns what it can carry of one (`project`):

    write(read(write(r))) == write(r)
    read(write(r)) == project(r)

A dialect's module is imported at its first use. Dialects know nothing of wires.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ..contract import STANDARD, Contract, Dialect
from ..errors import MalformedReply
from ..reply import Reply
from ..shape import BARE, Shape
from .http_reply import JSON, HttpReply, json_reply

if TYPE_CHECKING:
    from ..versions import Version

__all__ = ["HttpReply", "MalformedReply", "project", "read", "write"]


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
    own = dialect == contract.http
    return json_reply(reply, written, JSON if own else f"application/vnd.answerback.{dialect}+json")


def read(
    http_reply: HttpReply, dialect: Dialect, shape: Shape = BARE, contract: Contract = STANDARD
) -> Reply[Any]:
    """Read a reply that Answerback or another server wrote; raises MalformedReply."""
    source = http_reply.body if dialect in ("mcp", "envelope") else http_reply
    reply: Reply[Any] = _load(dialect).read(source, shape, contract)
    return reply


def project(
    reply: Reply[Any],
    dialect: Dialect,
    shape: Shape,
    contract: Contract,
    version: Version | None = None,
) -> Reply[Any]:
    """Return the part of the reply that *dialect* carries: `read` returns this for it."""
    carried: Reply[Any] = _load(dialect).project(reply, shape, contract, version)
    return carried


@cache
def _load(dialect: Dialect) -> Any:
    match dialect:
        case "mcp":
            from . import mcp

            return mcp
        case "rest":
            from . import rest

            return rest
        case "envelope":
            from . import envelope

            return envelope
        case "problem":
            from . import problem

            return problem
