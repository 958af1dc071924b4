"""The verdict on an object that a function returned: a failure, a finished reply, or data.

`wrap`, tools, and the breakers and retries around tools all ask `judge`, so they agree.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from ..core.content import Text, is_block, is_result
from ..core.reply import ENVELOPE_MEMBERS
from ..types.annotation_reader import object_members
from ..types.output import Output
from .common import without_added
from .failure_json import failure_in_text, is_failure_json, json_in_text, strip_code_fence
from .foreign_blocks import own_block, result_object
from .reply_or_data import finished_dialect

Verdict: TypeAlias = Literal["failure", "reply", "data"]

# An object that says nothing but that it failed.
_STATUS_ALONE: tuple[dict[str, Any], ...] = tuple(
    {"status": word} for word in ("error", "failed", "failure")
)
_YES = (True, 1, "true", "True")


def judge(value: object) -> tuple[Verdict, dict[str, Any]]:
    """Return the verdict on a function's return value, and the object that it is about.

    The object is empty for data. For a failure it is the error object, wherever *value* has it: in
    a text, in the data of a result, in `{"result": …}`.
    """
    found = _object_in(value)
    verdict = verdict_on(found)
    return verdict, (_error_object(found) if verdict == "failure" else found)


def verdict_on(found: dict[str, Any]) -> Verdict:
    """Return what an object is; a failure needs less evidence than a finished reply.

    A failure must not be sent as a success, so an object that may be either is a failure.
    """
    if found.get("success") is False or found.get("isError") in _YES:
        return "failure"
    if is_failure_json(found) or found in _STATUS_ALONE:
        return "failure"
    if finished_dialect(found) is None:
        return "data"
    has_error = bool(found.get("error")) and found.keys() <= ENVELOPE_MEMBERS
    return "failure" if has_error or _stated_failure(found) is not None else "reply"


def _object_in(value: object) -> dict[str, Any]:
    """Return the object to judge; empty for a value that can only be data."""
    match value:
        case str():
            found = json_in_text(strip_code_fence(value))
            is_reply = is_failure_json(found) or _is_result(found)
            return _object_in(found) if is_reply else {}
        case [*issues]:
            return {"errors": issues} if is_failure_json(value) else {}
    found = result_object(value) if is_result(value) else object_members(value)
    blocks = found.get("content")
    if not isinstance(blocks, list | tuple):
        return found
    if found is value and not any(map(is_block, blocks)):
        return found
    return {
        **found,
        "content": [own_block(each) if is_block(each) else _plain(each) for each in blocks],
    }


def _is_result(found: Any) -> bool:
    return (
        isinstance(found, dict) and bool(found.get("content")) and finished_dialect(found) == "mcp"
    )


def _plain(value: object) -> Any:
    return value if isinstance(value, dict) else Output(Any).encode(value)[1]


def _error_object(found: dict[str, Any]) -> dict[str, Any]:
    if found.keys() == {"result"} and isinstance(found["result"], dict):
        return _error_object(found["result"])
    stated = _stated_failure(found)
    if stated is None:
        return found
    error = {"errors": stated} if isinstance(stated, list) else _error_object(stated)
    return error | {"meta": found["_meta"]} if found.get("_meta") else error


def _stated_failure(found: dict[str, Any]) -> Any:
    """Return the error object in a result's data or in one of its texts, or None."""
    data = without_added(found.get("structuredContent"), found.get("_meta"))
    if is_failure_json(data):
        return data
    content = found.get("content")
    for block in content if isinstance(content, list | tuple) else ():
        text = block.text if isinstance(block, Text) else _text_of(block)
        if isinstance(text, str) and (failure := failure_in_text(text)) is not None:
            return failure
    return None


def _text_of(block: Any) -> Any:
    return block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
