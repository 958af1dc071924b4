"""The forms a reply takes on a wire: mcp, rest, envelope, problem. Each writes and reads.

    write(read(write(r))) == write(r)
    read(write(r)) == project(r)        what the dialect can carry of it

A dialect is loaded when it is first spoken. Of wires they know nothing.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..contract import STANDARD, Contract, Dialect
from ..reply import Reply
from ..shape import BARE, Shape
from ..versions import LATEST_LEGACY, Version
from .common import MalformedReply
from .http_reply import JSON, HttpReply, in_json

__all__ = ["HttpReply", "MalformedReply", "project", "read", "write"]


def write(
    reply: Reply[Any],
    dialect: Dialect,
    shape: Shape,
    contract: Contract,
    version: Version = LATEST_LEGACY,
) -> HttpReply:
    """The reply in *dialect*; its status is the same in all of them."""
    written = _load(dialect).write(reply, shape, contract, version)
    if isinstance(written, HttpReply):
        return written
    own = dialect == contract.http
    return in_json(reply, written, JSON if own else f"application/vnd.answerback.{dialect}+json")


def read(
    written: HttpReply, dialect: Dialect, shape: Shape = BARE, contract: Contract = STANDARD
) -> Reply[Any]:
    """The reply that was written, by us or by others; raises MalformedReply."""
    source = written.body if dialect in ("mcp", "envelope") else written
    reply: Reply[Any] = _load(dialect).read(source, shape, contract)
    return reply


def project(
    reply: Reply[Any],
    dialect: Dialect,
    shape: Shape,
    contract: Contract,
    version: Version = LATEST_LEGACY,
) -> Reply[Any]:
    """What *dialect* can carry of the reply: that is what `read` gives for it."""
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
