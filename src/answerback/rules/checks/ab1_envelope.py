"""AB1xx, the envelope: every check of the convention's validator, auditor and JSON Schema.

Where the convention has texts for a violation, the auditor's text is the message and the
validator's the hint.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..examples import ENVELOPE_FAILURE, ENVELOPE_SUCCESS
from ..finding import ENVELOPE, Example, Fault, Faults, Scope, rule
from ..json_values import kind_name, quoted
from ..reply_view import ReplyView
from .ab1_content import text_for

_DATE_TIME = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[Tt ]"
    r"(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)"
)
# Names that others use instead of `success`: the convention's fifth pitfall.
_OTHER_FLAGS = ("ok", "status", "isError", "succeeded", "result")


def _without(name: str, whole: dict[str, Any] = ENVELOPE_SUCCESS) -> Example:
    return Example({key: value for key, value in whole.items() if key != name}, "envelope")


def _with(whole: dict[str, Any] = ENVELOPE_SUCCESS, **changes: Any) -> Example:
    return Example({**whole, **changes}, "envelope")


@rule(
    "AB101",
    scope=Scope(dialects=ENVELOPE),
    hint="Response must include a boolean success field",
    bad=Example({"ok": True, "data": {"instanceId": "instance-1"}}, "envelope"),
    good=ENVELOPE_SUCCESS,
)
def missing_success(reply: ReplyView) -> Faults:
    """A client looks at `success` first; without it, it has to guess whether the call worked."""
    members = reply.json
    if isinstance(members.get("success"), bool):
        return ()
    other = next((name for name in _OTHER_FLAGS if name in members), None)
    hint = f"say it with success, not with {other}" if other and "success" not in members else ""
    return [Fault("/success" if "success" in members else "", "Missing success field", hint)]


@rule(
    "AB103",
    scope=Scope(dialects=ENVELOPE),
    hint="say what was done in a text item, if only 'Operation completed successfully'",
    bad=_with(content=[]),
    good=ENVELOPE_SUCCESS,
    fix=lambda reply, _: reply.update(content=[text_for(reply)]),
)
def empty_content(reply: ReplyView) -> Faults:
    """Content is what a person is shown; an empty list shows nothing."""
    return [Fault("/content", "Empty content array")] if reply.json.get("content") == [] else ()


def _set_timestamp(reply: dict[str, Any], _: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    reply["timestamp"] = now.replace("+00:00", "Z")


@rule(
    "AB105",
    scope=Scope(dialects=ENVELOPE),
    hint="write when the reply was made, such as 2026-01-31T12:00:00Z",
    bad=_without("timestamp"),
    good=ENVELOPE_SUCCESS,
    fix=_set_timestamp,
)
def missing_timestamp(reply: ReplyView) -> Faults:
    """Without a timestamp nobody can tell a fresh reply from a cached one, or order two replies."""
    return () if reply.json.get("timestamp") else [Fault("", "Missing timestamp")]


@rule(
    "AB106",
    scope=Scope(dialects=ENVELOPE, when="failure"),
    hint="add error with a code and a message",
    bad=Example({"success": False, "message": "Instance not found"}, "envelope"),
    good=ENVELOPE_FAILURE,
)
def missing_error_object(reply: ReplyView) -> Faults:
    """A program that has to handle the failure finds its code in `error` and nowhere else."""
    return () if reply.json.get("error") else [Fault("", "Error response missing error object")]


def _drop_null_error(reply: dict[str, Any], _: str) -> None:
    if reply.get("error") is None:
        reply.pop("error", None)


@rule(
    "AB107",
    scope=Scope(dialects=ENVELOPE),
    hint="leave error out of a success, or say success: false",
    bad=_with(error={"code": "STALE", "message": "The cache is old"}),
    good=ENVELOPE_SUCCESS,
    fix=_drop_null_error,
)
def error_on_success(reply: ReplyView) -> Faults:
    """A reply is a success or a failure; clients read a success with an `error` as either."""
    if reply.json.get("success") is True and "error" in reply.json:
        return [Fault("/error", "Success response has an error")]
    return ()


@rule(
    "AB108",
    scope=Scope(dialects=ENVELOPE),
    hint="write it as RFC 3339 does, with a time zone: 2026-01-31T12:00:00Z",
    bad=_with(timestamp="31/01/2026 12:00"),
    good=ENVELOPE_SUCCESS,
)
def bad_timestamp(reply: ReplyView) -> Faults:
    """Clients parse the timestamp, and misread another format or one without a time zone."""
    stamp = reply.json.get("timestamp")
    if not stamp or isinstance(stamp, datetime):
        return ()
    if isinstance(stamp, str) and _DATE_TIME.fullmatch(stamp):
        return ()
    return [Fault("/timestamp", f"timestamp is not a date-time: {quoted(stamp)}")]


def _make_error_object(reply: dict[str, Any], _: str) -> None:
    if isinstance(reply.get("error"), str):
        reply["error"] = {"code": "UNKNOWN_ERROR", "message": reply["error"]}


@rule(
    "AB109",
    scope=Scope(dialects=ENVELOPE),
    hint="error is an object with a code and a message, both text",
    bad=_with(ENVELOPE_FAILURE, error="Instance 'instance-1' not found"),
    good=ENVELOPE_FAILURE,
    fix=_make_error_object,
)
def bad_error_object(reply: ReplyView) -> Faults:
    """Code handles an error by its `code` and shows its `message`; both have to be text."""
    error = reply.json.get("error")
    if not error or reply.json.get("success") is True:
        return ()
    if not isinstance(error, dict):
        return [Fault("/error", f"error is {kind_name(error)}, not an object")]
    return [
        Fault("/error", f"error has no {name}")
        if name not in error
        else Fault(f"/error/{name}", f"error {name} is {kind_name(error[name])}, not text")
        for name in ("code", "message")
        if not isinstance(error.get(name), str)
    ]


@rule(
    "AB110",
    scope=Scope(dialects=ENVELOPE),
    severity="warning",
    hint='put it in an object, such as {"result": …}',
    bad=_with(data=[1, 2, 3]),
    good=_with(data={"result": [1, 2, 3]}),
)
def data_not_an_object(reply: ReplyView) -> Faults:
    """Members can be added to an object without breaking clients, but not to a list or a number."""
    faults = []
    data = reply.json.get("data", msgspec.UNSET)
    if data is not msgspec.UNSET and not isinstance(data, dict):
        faults.append(Fault("/data", f"data is {kind_name(data)}, not an object"))
    error = reply.json.get("error")
    if isinstance(error, dict) and not isinstance(error.get("details", {}), dict):
        details = kind_name(error["details"])
        faults.append(Fault("/error/details", f"error details is {details}, not an object"))
    return faults
