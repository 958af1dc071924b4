"""What the dialects share: plain JSON out and in, and the names that are ours in `_meta`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from ..content import Annotations, Block
from ..errors import (
    CODES,
    UNKNOWN_ERROR,
    AnswerbackError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Unauthenticated,
    look_up,
)
from ..reply import Error, Reply

if TYPE_CHECKING:
    from ..shape import Shape

OURS = "answerback/"
"""The prefix of our own keys in `_meta`; an author's keys with it are not sent."""

# Where codes share a status, it stands for the one that authors raise.
KINDS = {row.status: code for code, row in CODES.items()} | {
    look_up(raised.kind).status: raised.kind
    for raised in (InvalidInput, Unauthenticated, Forbidden, NotFound, Conflict)
}
del KINDS[look_up(UNKNOWN_ERROR).status]

encode = msgspec.json.Encoder().encode


class MalformedReply(AnswerbackError, ValueError):
    """What was read is not a reply in the dialect it was read as."""


def encoded_data(reply: Reply[Any]) -> bytes:
    """The JSON of the reply's data, which must be set."""
    return encode(reply.data) if reply.encoded is None else reply.encoded


def plain_data(reply: Reply[Any], shape: Shape) -> Any:
    """The reply's data as the other end will have it."""
    if reply.data is msgspec.UNSET:
        return msgspec.UNSET
    return shape.unwrap(msgspec.json.decode(shape.wrap(encoded_data(reply))))


def plain(value: Any) -> Any:
    """*value* as JSON can say it."""
    return None if value is None else msgspec.json.decode(encode(value))


def utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:
        return moment
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def moment_of(stamp: Any) -> datetime:
    """The moment a time stamp names; without one, now."""
    if stamp is None:
        return datetime.now(UTC)
    try:
        return utc(msgspec.convert(stamp, datetime))
    except msgspec.ValidationError:
        raise MalformedReply(f"timestamp must be ISO 8601, not {stamp!r}") from None


def own_meta(meta: Any) -> dict[str, Any]:
    """The author's part of a `_meta`."""
    if not isinstance(meta, dict):
        return {}
    return {key: value for key, value in meta.items() if not str(key).startswith(OURS)}


def our_meta(meta: Any, name: str) -> dict[str, Any]:
    """Our object of that name in a `_meta`; an empty one where there is none."""
    found = meta.get(OURS + name) if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else {}


def given(**members: Any) -> dict[str, Any]:
    """The members that are there: nothing is ever sent as null."""
    return {name: value for name, value in members.items() if value is not None}


def decoded(source: bytes | str, what: str) -> Any:
    """*source* as JSON; raises MalformedReply."""
    try:
        return msgspec.json.decode(source)
    except (ValueError, RecursionError) as exc:
        raise MalformedReply(f"{what} is not JSON that can be read: {exc}") from None


def decoded_object(source: bytes | str | dict[str, Any], what: str) -> dict[str, Any]:
    """*source* as a JSON object; raises MalformedReply."""
    found = source if isinstance(source, dict) else decoded(source, what)
    if not isinstance(found, dict):
        raise MalformedReply(f"{what} must be an object, not {type(found).__name__}")
    return found


def made(kind: type[Block], members: dict[str, Any], found: dict[str, Any]) -> Block:
    """A block of *members*, with the annotations and the author's meta of what was *found*."""
    try:
        block: Block = msgspec.convert(given(**members), kind)
    except ValueError as exc:
        raise MalformedReply(f"{found.get('type')} block is out of order: {exc}") from None
    return msgspec.structs.replace(
        block,
        annotations=read_annotations(found.get("annotations")),
        meta=own_meta(found.get("_meta")) or None,
    )


def read_annotations(found: Any) -> Annotations | None:
    """Annotations are hints: those of others that are out of order are left out."""
    try:
        return None if found is None else msgspec.convert(found, Annotations)
    except ValueError:
        return None


def retryable(error: Error) -> bool:
    """Whether trying again may help: the author's word, else the table's."""
    return error.row.retryable if error.retryable is None else error.retryable


def write_error(error: Error) -> dict[str, Any]:
    """The members of an error in the envelope, which says no more than is needed.

    That an error is not retryable is said only where the table says it is.
    """
    again = retryable(error) or (False if error.row.retryable else None)
    members = given(details=error.details, retryable=again, hint=error.hint, kind=error.kind)
    return {"code": error.code, "message": error.message, **members}


def read_error(found: dict[str, Any], message: str) -> Error:
    """The error that *found* tells of; *message* where it has none."""
    try:
        return msgspec.convert({"code": UNKNOWN_ERROR, "message": message} | found, Error)
    except msgspec.ValidationError as exc:
        raise MalformedReply(f"error is out of order: {exc}") from None


def project_error(error: Error) -> Error:
    """The error as mcp and the envelope carry it."""
    again = retryable(error)
    return msgspec.structs.replace(error, details=plain(error.details), retryable=again)


def kind_of(code: str, status: int) -> str | None:
    """What a code that is not in the table counts as, told by its status."""
    return None if code in CODES else KINDS.get(status)
