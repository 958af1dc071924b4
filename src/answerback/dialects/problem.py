"""RFC 9457 problem details, for errors; a success is written as in rest.

Not carried: what rest does not carry of a success; the content and meta of an error, its time.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..contract import STANDARD, Contract
from ..errors import UNKNOWN_ERROR
from ..reply import Reply
from ..shape import BARE, Shape
from ..versions import LATEST_LEGACY, Version
from . import rest
from .common import KINDS, decoded_object, encode, given, kind_of, plain, read_error, retryable
from .http_reply import ERROR_CODE, HttpReply, in_json

PROBLEM = "application/problem+json"
OWN = ("type", "title", "status", "detail", "code", "details", "retryable", "hint")


def write(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version = LATEST_LEGACY
) -> HttpReply:
    """The error as a problem, or the success as in rest."""
    error = reply.error
    if error is None:
        return rest.write(reply, shape, contract, version)
    status = error.row.status
    # about:blank says that the problem is what its status says, so the title is its phrase.
    body = {"type": "about:blank", "title": _phrase(status), "status": status}
    body |= {"detail": error.message, "code": error.code, "retryable": retryable(error)}
    return in_json(reply, encode(body | given(details=error.details, hint=error.hint)), PROBLEM)


def read(written: HttpReply, shape: Shape = BARE, contract: Contract = STANDARD) -> Reply[Any]:
    """The reply that an HTTP answer is, whoever wrote it; raises MalformedReply."""
    if not written.media_type.lower().startswith(PROBLEM):
        return rest.read(written, shape, contract)
    found = decoded_object(written.body, "a problem")
    told = written.header(ERROR_CODE) or KINDS.get(written.status, UNKNOWN_ERROR)
    code = found.get("code", told)
    message = found.get("detail") or found.get("title") or f"HTTP status {written.status}"
    others = {name: value for name, value in found.items() if name not in OWN}
    members = given(
        code=code,
        message=found.get("detail", message),
        details=found.get("details", others or None),
        retryable=found.get("retryable"),
        hint=found.get("hint"),
        kind=kind_of(str(code), written.status),
    )
    return Reply(error=read_error(members, str(message)))


def project(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version = LATEST_LEGACY
) -> Reply[Any]:
    """What is carried of the reply; one that is read bears the time of reading."""
    if reply.error is None:
        return rest.project(reply, shape, contract, version)
    error = msgspec.structs.replace(
        reply.error,
        details=plain(reply.error.details),
        retryable=retryable(reply.error),
        kind=kind_of(reply.error.code, reply.error.row.status),
    )
    return Reply(error=error, timestamp=reply.timestamp)


def _phrase(status: int) -> str:
    from http import HTTPStatus

    return HTTPStatus(status).phrase
