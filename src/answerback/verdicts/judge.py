"""Judges a value or a text: does it say that the call failed, and how sure is that?

Structure can be certain, prose hardly ever. A record of something that failed, such as a build or a
payment, is a right answer: an id, a name, a URL or a time beside the failure makes it one. Words
never choose a retry, a status or a breaker's step; only a stated code does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from ..core.json_value import is_integer
from ..core.limits import MAX_INNER_BYTES, MAX_VALUES
from ..types.json_text import has_more_marks
from .forms import finished_dialect, is_json_rpc, is_no, is_yes
from .texts import STATUSES, is_failure_text

Certainty: TypeAlias = Literal["certain", "suspected", "no"]


class Judgement(NamedTuple):
    """Whether a value says that the call failed, and why the judge thinks so."""

    certainty: Certainty
    why: str = ""


DATA = Judgement("no")
Arguments: TypeAlias = Mapping[str, Any]
_NO_ARGUMENTS: Arguments = {}

# The members of error objects; a member with any other name makes the object a record, unless it is
# empty or repeats an argument.
FAILURE_MEMBERS = frozenset(
    {
        *("success", "ok", "isError", "is_error", "error", "errors", "error_type", "errorType"),
        *("message", "msg", "errorMessage", "error_message", "error_description", "reason", "type"),
        *("code", "errorCode", "error_code", "status", "statusCode", "status_code", "state"),
        *("detail", "details", "hint", "retryable", "stack", "trace", "path", "timestamp"),
        *("request_id", "requestId", "data", "result", "jsonrpc"),
        # The first three are from problem details, the others from GitHub, Jira and AWS errors.
        *("title", "instance", "traceId", "documentation_url", "errorMessages", "__type"),
    }
)
_MARKS = frozenset(
    {"success", "ok", "isError", "is_error", "error", "errors", "errorMessages", "message"}
    | {"title", "detail", "status", "state", "exit_code", "exitCode", "returncode"}
)
"""An object without any of these members, and without `result`, is data."""
# Slack and Telegram send these members along with `ok: false`.
_MEMBERS_BESIDE_NOT_OK = frozenset(
    {"needed", "provided", "response_metadata", "warning", "description", "parameters"}
)
# An object with only these members is an error if its message reads like one.
_MEMBERS_BESIDE_MESSAGE = frozenset(
    {"message", "code", "errorCode", "error_code", "errorType", "error_type", "type", "__type"}
    | {"detail", "details", "hint", "retryable", "stack", "trace", "request_id", "requestId"}
    | {"documentation_url"}
)
# The members of an item in `errors`, as in GraphQL and JSON:API. `line` is not included: an item
# with a line is a linter's finding.
_ITEM_MEMBERS = FAILURE_MEMBERS | {
    *("locations", "extensions", "field", "source", "id", "meta", "param"),
}
_TEXT_MEMBERS = ("message", "msg", "reason", "detail", "errorMessage", "error_message")
_PROBLEM_MEMBERS = ("detail", "instance", "traceId")
_FAILED_WORDS = frozenset({"error", "failed", "failure", "fail"})
_IDENTITY = re.compile(r"id|name|url|.*(?:_id|[a-z]I[dD])|(?:created|started).*", re.DOTALL)
_TIME = re.compile(r"(?:created|started|finished|completed|ended|updated).*|.*(?:_at|[a-z]At)")
_EXCEPTION_NAME = re.compile(r"(?:.*[\W_])?\w*(?:error|exception)", re.IGNORECASE)
_CODE_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL)
_MAX_WRAPPERS = 3
"""How often a value may be wrapped as `{"result": …}`."""
_MAX_ITEMS = 100
"""How many items of a list are looked at for a suspicion."""


def judge_json(value: Any, arguments: Arguments = _NO_ARGUMENTS) -> Judgement:
    """Return whether a decoded value says that the call failed.

    *arguments* are the call's: a member that only repeats one of them is not data.
    """
    for _ in range(_MAX_WRAPPERS):
        if not isinstance(value, dict) or value.keys() != {"result"}:
            break
        value = value["result"]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return _judge_list(value)
    if not isinstance(value, dict):
        return DATA
    if _MARKS.isdisjoint(value) and not isinstance(value.get("result"), str):
        results = value.get("results")
        return _judge_results(value, results) if isinstance(results, list) else DATA
    return _judge_object(value, arguments)


def is_failure_json(value: Any, arguments: Arguments = _NO_ARGUMENTS) -> bool:
    """Return whether a value certainly says that the call failed."""
    return judge_json(value, arguments).certainty == "certain"


def strip_code_fence(text: str) -> str:
    """Return the contents of a Markdown code fence if it is the whole text, else the text."""
    text = text.strip()
    found = _CODE_FENCE.fullmatch(text) if text.startswith("```") else None
    return found[1] if found else text


def failure_in_text(text: str) -> Any:
    """Return the error object that the text encodes, even in a code fence; None for other text."""
    value = json_in_text(text)
    return value if is_failure_json(value) else None


def json_in_text(text: str) -> Any:
    """Return the object or array that *text* encodes as JSON, or None.

    The JSON may be in a Markdown code fence, or encoded twice.
    """
    start = text[:1]
    if start.isspace():
        text = text.lstrip()
        start = text[:1]
    if start == "`":
        text = strip_code_fence(text).lstrip()
        start = text[:1]
    is_twice = text[:2] in ('"{', '"[')
    if (start not in ("{", "[") and not is_twice) or len(text) > MAX_INNER_BYTES:
        return None
    try:
        encoded = text.encode()
        found = None if has_more_marks(encoded, MAX_VALUES) else msgspec.json.decode(encoded)
    except (ValueError, RecursionError):
        return None
    return json_in_text(found) if isinstance(found, str) else found


def _judge_object(value: dict[str, Any], arguments: Arguments) -> Judgement:
    if is_yes(value.get("isError")) or is_yes(value.get("is_error")):
        return Judgement("certain", "isError is true")
    if value.get("object") == "error" and isinstance(value.get("message"), str):
        return Judgement("certain", "it is an error object")
    if is_json_rpc(value):
        failed = value.get("error") is not None or "code" in value
        return Judgement("certain", "it is a JSON-RPC error") if failed else DATA
    others = {name for name, each in value.items() if not _is_empty(each)} - FAILURE_MEMBERS
    others = {name for name in others if not _repeats(arguments, name, value[name])}
    if _is_not_ok(value):
        return _judge_not_ok(value, others)
    if value.get("error") and finished_dialect(value) == "envelope":
        return Judgement("certain", "it is an envelope with an error")
    if _says_ok(value):
        has_error = _is_error(value.get("error"))
        return Judgement("suspected", "it has an error beside success") if has_error else DATA
    return _judge_error(value, others)


def _judge_error(value: dict[str, Any], others: set[str]) -> Judgement:
    """Judge an object without a flag; *others* are its members that an error object lacks."""
    text = _error_text(value)
    word = _failed_word(value)
    has_result = word != "result" and not _is_empty(value.get("result"))
    has_data = has_result or not _is_empty(value.get("data"))
    error = value.get("error")
    if not error and (error := value.get("errors") or value.get("errorMessages")):
        # `{"valid": false, "errors": […]}` is a validator's report.
        others |= {name for name in value.keys() - FAILURE_MEMBERS if value[name] is False}
    if _is_error(error) or (error is True and (text or len(value) == 1)):
        if others or has_data:
            return Judgement("suspected", "it has an error beside other data")
        return Judgement("certain", "it has an error")
    if word:
        is_record = bool(others) or has_data or any(map(_IDENTITY.fullmatch, value))
        if text and not is_record:
            return Judgement("certain", f"its {word} says that it failed, with a message")
        return Judgement("suspected", f"its {word} says that something failed")
    if others or has_data:
        return _judge_exit_code(value)
    if _has_error_status(value):
        return Judgement("certain", "it has an HTTP error's status and message")
    if _has_error_message(value):
        return Judgement("certain", "its message is an error's")
    return _judge_exit_code(value)


def _judge_not_ok(value: dict[str, Any], others: set[str]) -> Judgement:
    """Judge an object whose `success` or `ok` says no."""
    if "id" in value and any(map(_TIME.fullmatch, value)):
        return Judgement("suspected", "it is the record of something that did not succeed")
    has_error = bool(_error_text(value)) or _is_error(value.get("error"))
    if has_error or "content" in others or others <= _MEMBERS_BESIDE_NOT_OK:
        return Judgement("certain", "success is false")
    # Such as the report of a test run, or of a check that came out negative.
    return Judgement("suspected", "success is false beside other data")


def _judge_exit_code(value: dict[str, Any]) -> Judgement:
    codes = (value.get("exit_code"), value.get("exitCode"), value.get("returncode"))
    if any(is_integer(code) and code != 0 for code in codes):
        return Judgement("suspected", "its exit code says that a command failed")
    return DATA


def _judge_results(value: dict[str, Any], results: list[Any]) -> Judgement:
    """Judge `{"results": […]}`; counts beside the list are not data."""
    counts = (each for name, each in value.items() if name != "results")
    if results and isinstance(results[0], dict) and all(map(is_integer, counts)):
        return _judge_list(results)
    return DATA


def _judge_list(items: list[Any]) -> Judgement:
    if all(map(_is_issue, items)):
        return Judgement("certain", "it is a list of problems with the arguments")
    first = [each for each in items[:_MAX_ITEMS] if _is_failed_item(each)]
    if not first:
        return DATA
    if len(first) == len(items[:_MAX_ITEMS]) and all(map(_is_failed_item, items[_MAX_ITEMS:])):
        return Judgement("certain", "every item says that it failed")
    return Judgement("suspected", f"{len(first)} items say that they failed")


def _is_failed_item(item: Any) -> bool:
    # Lists in items are not looked at, so that a list that contains itself ends.
    if not isinstance(item, dict) or _MARKS.isdisjoint(item):
        return False
    return _judge_object(item, _NO_ARGUMENTS).certainty == "certain"


def _is_empty(value: Any) -> bool:
    """Return whether a member says nothing: null, false, zero or empty."""
    if isinstance(value, bool | int | float | str | list | dict):
        return not value
    return value is None


def _repeats(arguments: Arguments, name: str, value: Any) -> bool:
    return isinstance(value, str | int | float) and arguments.get(name) == value


def _error_text(value: dict[str, Any]) -> str:
    found = (value.get("error"), *(value.get(name) for name in _TEXT_MEMBERS))
    return next((each for each in found if isinstance(each, str) and each.strip()), "")


def _is_not_ok(value: dict[str, Any]) -> bool:
    if "success" in value:
        # `success: null` means failure too, unless a status could say "pending".
        flag = value["success"]
        return is_no(flag) or (flag is None and "status" not in value)
    return is_no(value.get("ok"))


def _says_ok(value: dict[str, Any]) -> bool:
    if is_yes(value.get("success")) or is_yes(value.get("ok")):
        return True
    status = value.get("status")
    if isinstance(status, str | int) and status in ("ok", "success", 200):
        return True
    codes = (value.get("exit_code"), value.get("exitCode"), value.get("returncode"))
    return any(is_integer(code) and code == 0 for code in codes)


def _failed_word(value: dict[str, Any]) -> str:
    """Return the member that says "error" or "failed"; empty if there is none."""
    for name in ("status", "state", "result"):
        word = value.get(name)
        if isinstance(word, str) and word.lower() in _FAILED_WORDS:
            return name
    return ""


def _has_error_status(value: dict[str, Any]) -> bool:
    """Return whether there is a 4xx or 5xx HTTP status, with a message or title.

    `code` counts only as a number or with an error message: coupons and rooms have codes too.
    """
    message, title = value.get("message"), value.get("title")
    if isinstance(message, str):
        status = [value.get(name) for name in ("status", "statusCode", "status_code")]
        status += [value.get("code")] * (is_integer(value.get("code")) or _is_error_phrase(message))
    elif isinstance(title, str):
        is_problem = any(name in value for name in _PROBLEM_MEMBERS) or _is_error_phrase(title)
        status = [value.get("status")] * is_problem
    else:
        status = []
    return any(re.fullmatch("[45][0-9][0-9]", str(each)) for each in status)


def _is_error_phrase(text: str) -> bool:
    return bool(re.fullmatch(STATUSES, text, re.IGNORECASE)) or is_failure_text(text)


def _has_error_message(value: dict[str, Any]) -> bool:
    match value:
        case {"__type": str(name), "message": str()} if _EXCEPTION_NAME.fullmatch(name):
            return True
        case {"message": str(message)} if value.keys() <= _MEMBERS_BESIDE_MESSAGE:
            name = value.get("type", "Error")
            return is_failure_text(message) and bool(_EXCEPTION_NAME.fullmatch(str(name)))
        case {"detail": str(detail)} if len(value) == 1:
            return bool(re.fullmatch(STATUSES, detail))
        case {"detail": [_, *_] as issues} if len(value) == 1:
            return all(isinstance(each, dict) and {"loc", "msg"} <= each.keys() for each in issues)
    return False


def _is_error(error: Any) -> bool:
    match error:
        case str() if error.strip():
            return True
        case {"message": str()} | {"code": _} | {"type": str()}:
            return True
        case [str(), *_]:
            return True
        case [{"message": str()} | {"title": str()} | {"detail": str()}, *_]:
            return all(isinstance(each, dict) and each.keys() <= _ITEM_MEMBERS for each in error)
    return False


def _is_issue(value: Any) -> bool:
    """Return whether this is a zod issue about an argument; the TypeScript SDK sends it as text."""
    match value:
        case {"code": str(code), "path": list(), "message": str()}:
            return "_" in code
    return False
