"""Functions shared by several dialects: JSON, timestamps, `_meta`, blocks and errors."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from ..core.content import Annotations, Block, changed_block
from ..core.reply import Error, Reply
from ..errors import CODES, UNKNOWN_ERROR, MalformedReply, code_for_status

META_PREFIX = "answerback/"
"""The prefix of Answerback's own keys in `_meta`; an author's keys that use it are not sent."""
ADDED = META_PREFIX + "added"
"""The key that names the member of structuredContent that is not part of the data.

In a block's `_meta` it is true: the block only repeats other blocks, for models.
"""
REFUSAL = META_PREFIX + "refusal"
"""The key for the reason a gate refused a call; a widget shows it."""

NOT_JSON = "[data that cannot be written as JSON]"
encode = msgspec.json.Encoder().encode


def encoded_data(reply: Reply[Any]) -> bytes:
    """Return the JSON of the reply's data, which must be set."""
    return encode(reply.data) if reply.encoded is None else reply.encoded


def as_received(value: Any) -> Any:
    """Return *value* as a client would decode its JSON: a tuple as a list, a date as a string."""
    return None if value is None else msgspec.json.decode(encode(value))


def to_utc(moment: datetime) -> datetime:
    """Convert to UTC; a datetime without a time zone is assumed to be UTC."""
    if moment.tzinfo is UTC:
        return moment
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_timestamp(timestamp: Any) -> datetime:
    """Read an ISO 8601 timestamp as UTC; None means now. Raises MalformedReply."""
    if timestamp is None:
        return datetime.now(UTC)
    try:
        return to_utc(msgspec.convert(timestamp, datetime))
    except msgspec.ValidationError:
        raise MalformedReply(f"timestamp must be ISO 8601, not {timestamp!r}") from None


def author_meta(meta: Any) -> dict[str, Any]:
    """Return the author's keys in a `_meta`, i.e. the keys without our prefix."""
    if not isinstance(meta, dict):
        return {}
    return {key: value for key, value in meta.items() if not str(key).startswith(META_PREFIX)}


def refusal_meta(error: Error, url: str | None, feature: str | None) -> dict[str, Any]:
    """Return a refusal's `_meta`: its reason, and the page where the user can resolve it."""
    reason = without_none(
        code=error.code, message=error.message, hint=error.hint, url=url, feature=feature
    )
    return {REFUSAL: reason}


def answerback_meta(meta: Any, name: str) -> dict[str, Any]:
    """Return the object under our key *name* in a `_meta`, or an empty one."""
    found = meta.get(META_PREFIX + name) if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else {}


def without_added(sent: Any, meta: Any) -> Any:
    """Return structuredContent without the member that the result's `_meta` marks as added."""
    name = meta.get(ADDED) if isinstance(meta, dict) else None
    if not isinstance(name, str) or not isinstance(sent, dict):
        return sent
    return {key: value for key, value in sent.items() if key != name}


def is_added(block: Any) -> bool:
    """Return whether Answerback added this block, which only repeats other blocks for models."""
    meta = block.get("_meta") if isinstance(block, dict) else None
    return isinstance(meta, dict) and meta.get(ADDED) is True


def without_none(**members: Any) -> dict[str, Any]:
    """Return the members that are not None: a missing value is left out, never sent as null."""
    return {name: value for name, value in members.items() if value is not None}


def decode_json(source: bytes | str, what: str) -> Any:
    """Decode JSON; raise MalformedReply, whose message calls the source *what*."""
    try:
        return msgspec.json.decode(source)
    except (ValueError, RecursionError) as exc:
        raise MalformedReply(f"{what} cannot be read as JSON: {exc}") from None


def decode_object(source: bytes | str | dict[str, Any], what: str) -> dict[str, Any]:
    """Decode a JSON object, unless it is already a dict; raise MalformedReply."""
    found = source if isinstance(source, dict) else decode_json(source, what)
    if not isinstance(found, dict):
        raise MalformedReply(f"{what} must be an object, not {type(found).__name__}")
    return found


def build_block(kind: type[Block], members: dict[str, Any], found: dict[str, Any]) -> Block:
    """Build a block of class *kind* with *members*.

    Its annotations and the author's meta come from *found*, the block's JSON.
    """
    try:
        block: Block = msgspec.convert(without_none(**members), kind)
    except ValueError as exc:
        raise MalformedReply(f"{found.get('type')} block is malformed: {exc}") from None
    annotations = read_annotations(found.get("annotations"))
    meta = author_meta(found.get("_meta")) or None
    is_plain = annotations is None and meta is None
    return block if is_plain else changed_block(block, annotations=annotations, meta=meta)


def read_annotations(found: Any) -> Annotations | None:
    """Read a block's annotations; malformed ones are dropped, because they are only hints.

    The audience is kept: it decides whether a model may see the block.
    """
    try:
        return None if found is None else msgspec.convert(found, Annotations)
    except ValueError:
        if isinstance(found, dict) and len(found) > 1 and "audience" in found:
            return read_annotations({"audience": found["audience"]})
        return None


def is_retryable(error: Error) -> bool:
    """Return the error's own `retryable` if it is set, or its code's value in the table."""
    return error.row.retryable if error.retryable is None else error.retryable


def write_error(error: Error) -> dict[str, Any]:
    """Return an error's members in the envelope.

    `retryable: false` is written only for codes that are retryable in the table.
    """
    again = is_retryable(error) or (False if error.row.retryable else None)
    details = details_object(error.details)
    members = without_none(details=details, retryable=again, hint=error.hint, kind=error.kind)
    return {"code": error.code, "message": error.message, **members}


def details_object(details: Any) -> Any:
    """Return an error's details as an object, which the envelope requires.

    Details that are not an object become an object whose only member is `details`. So do details
    that already have that form, so that `details_from_object` restores them.
    """
    found = details if isinstance(details, dict) else as_received(details)
    is_object = isinstance(found, dict) and found.keys() != {"details"}
    return details if found is None or is_object else {"details": details}


def details_from_object(details: Any) -> Any:
    """Return the details that `details_object` turned into an object."""
    is_made = isinstance(details, dict) and details.keys() == {"details"}
    return details["details"] if is_made else details


def read_error(found: dict[str, Any], message: str) -> Error:
    """Read an error from its JSON; *message* is used if it has none. Raises MalformedReply."""
    try:
        return msgspec.convert({"code": UNKNOWN_ERROR, "message": message} | found, Error)
    except msgspec.ValidationError as exc:
        raise MalformedReply(f"error is malformed: {exc}") from None


def project_error(error: Error) -> Error:
    """Return the error as a client would read it in the mcp or envelope dialect."""
    again = is_retryable(error)
    return msgspec.structs.replace(error, details=as_received(error.details), retryable=again)


def kind_for_status(code: str, status: int) -> str | None:
    """Return the kind for an error whose *code* does not imply its *status*."""
    if code == UNKNOWN_ERROR:
        return code_for_status(status)
    if code in CODES:
        return None
    return "KEY_REUSED" if status == CODES["KEY_REUSED"].status else code_for_status(status)
