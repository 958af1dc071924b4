"""The problem dialect: RFC 9457 problem details for errors; a success is written as in rest.

It carries no more of a success than rest does, and does not carry an error's content, meta
or timestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..contract import STANDARD, Contract
from ..core.reply import Reply
from ..core.shape import BARE, Shape
from ..errors import UNKNOWN_ERROR, code_for_status
from . import rest
from .common import (
    decode_object,
    encode,
    is_retryable,
    kind_for_status,
    read_error,
    without_none,
)
from .status_and_headers import ERROR_CODE, PROBLEM, HttpReply, json_reply

if TYPE_CHECKING:
    from ..core.versions import Version

_MEMBERS = ("type", "title", "status", "detail", "code", "details", "retryable", "hint")


def write(
    reply: Reply[Any], shape: Shape, contract: Contract, version: Version | None = None
) -> HttpReply:
    """Return an error as problem details, and a success as in rest."""
    error = reply.error
    if error is None:
        return rest.write(reply, shape, contract, version)
    from http import HTTPStatus

    status = error.row.status
    # RFC 9457: with the type about:blank, the title should be the status phrase.
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    body |= {"detail": error.message, "code": error.code, "retryable": is_retryable(error)}
    body |= without_none(details=error.details, hint=error.hint)
    return json_reply(reply, encode(body), PROBLEM)


def read(http_reply: HttpReply, shape: Shape = BARE, contract: Contract = STANDARD) -> Reply[Any]:
    """Read a reply written by Answerback or another server; raise MalformedReply."""
    if not http_reply.media_type.lower().startswith(PROBLEM):
        return rest.read(http_reply, shape, contract)
    found = decode_object(http_reply.body, "a problem")
    default = http_reply.header(ERROR_CODE) or code_for_status(http_reply.status) or UNKNOWN_ERROR
    code = found.get("code", default)
    message = found.get("detail") or found.get("title") or f"HTTP status {http_reply.status}"
    others = {name: value for name, value in found.items() if name not in _MEMBERS}
    members = without_none(
        code=code,
        message=found.get("detail", message),
        details=found.get("details", others or None),
        retryable=found.get("retryable"),
        hint=found.get("hint"),
        kind=kind_for_status(str(code), http_reply.status),
    )
    return Reply(error=read_error(members, str(message)))
