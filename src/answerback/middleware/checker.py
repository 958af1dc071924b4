"""Checks and records other frameworks' replies, and refuses invalid ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from time import perf_counter_ns, time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from ..core.json_value import Json, JsonObject
from ..core.limits import MAX_VALUES
from ..core.log import logger
from ..errors import MissingExtraError, code_for_status
from ..records.recorder import CallRecord
from ..rules import validate
from ..types.json_text import has_more_marks
from ..verdicts.forms import code_of, dialect_of

if TYPE_CHECKING:
    from ..contract import Dialect
    from ..records import Records
    from ..rules.finding import Finding


INVALID_FORMAT = "INVALID_RESPONSE_FORMAT"
CHECK_FAILED = "RESPONSE_VALIDATION_ERROR"
REFUSAL_TEXTS = {
    INVALID_FORMAT: "Internal server error: Invalid response format",
    CHECK_FAILED: "Internal server error: Response validation failed",
}
FASTAPI_PAGES = ("/docs", "/redoc", "/openapi.json")
MAX_CHECKED_BYTES = 16 * 1024 * 1024
_REPLY_MEMBERS = frozenset({"success", "content", "isError", "structuredContent"})
_STATUS_WITHOUT_BODY = (204, 205, 304)
_encode = msgspec.json.Encoder().encode
A = TypeVar("A")


class CheckResult(msgspec.Struct):
    """A reply with its findings, and the reason for refusing it if it must not be sent."""

    reply: Json = None
    findings: Sequence[Finding] = ()
    code: str = ""
    """The refusal's code, or the code of a call without a reply; empty if the reply may be sent."""
    message: str = ""


class CallTimer:
    """Measures a call's duration, from request to reply, for its record."""

    def __init__(self) -> None:
        self._began = time()
        self._began_ns = perf_counter_ns()

    def record_of(
        self, name: str, wire: str, result: CheckResult, arguments: bytes = b""
    ) -> CallRecord:
        reply = result.reply
        return CallRecord(
            kind="tool",
            name=name,
            wire=wire,
            arguments=arguments,
            started_at=self._began,
            duration_ns=perf_counter_ns() - self._began_ns,
            size=len(msgspec.json.encode(reply, enc_hook=repr)) if reply is not None else 0,
            reply=reply,
            code=result.code or code_of(reply),
            findings=result.findings,
        )


class Checker:
    """Applies the rules to replies, and stores the replies in *records*.

    Without a *dialect*, each reply is checked against the dialect that it resembles.
    """

    def __init__(self, dialect: Dialect | None = None, records: Records | None = None) -> None:
        self.dialect = dialect
        self.records = records

    def check(self, reply: Any, **known: Any) -> CheckResult:
        """Check a reply against the rules; *known* is passed to `validate`."""
        try:
            dialect = self.dialect or dialect_of(reply)
            try:
                findings = validate(reply, dialect=dialect, **known)
            except MissingExtraError:  # No JSON Schema validator is installed: check the rest.
                findings = validate(reply, dialect=dialect, **(known | {"schema": None}))
        except Exception as exc:  # noqa: BLE001 -- a reply that cannot be checked is not sent
            logger().error("Error validating MCP response: %s", exc, exc_info=exc)
            return CheckResult(reply, (), CHECK_FAILED, "the response could not be checked")
        errors = [each for each in findings if each.severity == "error"]
        if not errors:
            return CheckResult(reply, findings)
        message = errors[0].message
        logger().error("Invalid MCP response: %s", message[:1].lower() + message[1:])
        return CheckResult(reply, findings, INVALID_FORMAT, message)

    def record(self, item: CallRecord) -> None:
        if self.records is not None:
            self.records.add(item)


def as_dict(value: Any) -> JsonObject:
    """Return a pydantic model as the JSON object to send; a dict is returned unchanged."""
    if isinstance(value, dict):
        return value
    members: JsonObject = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return members


def mcp_refusal(result: CheckResult) -> JsonObject:
    """Return the MCP result to send in place of an invalid one."""
    error = {"code": result.code, "message": result.message}
    return {
        "content": [{"type": "text", "text": REFUSAL_TEXTS[result.code]}],
        "isError": True,
        "_meta": {"answerback/error": error},
    }


class AppResponse(msgspec.Struct, frozen=True):
    """The app's complete response, before it is checked."""

    path: str
    wire: str
    status: int
    media_type: str
    body: bytes
    timer: CallTimer

    @property
    def failed(self) -> bool:
        return self.status >= 400


class CheckedResponse(msgspec.Struct, frozen=True):
    """The response to send; `body` is None to send the app's own bytes."""

    status: int
    body: bytes | None = None


class HttpMiddleware(Generic[A]):
    """Replaces each invalid reply with an error and status 500.

    *app* is the wrapped application. *dialect* is the format of the replies; by default it is
    detected. *records* receives an event for each reply. Every response under the
    paths in *only* counts as a reply, unless it is under a path in *skip*. Install it so that it
    sees responses before any middleware compresses them.

    The framework's own errors (404, 401) are not replies: their status says what they are. They
    pass through unchanged, or as envelopes with the same status if the dialect is `envelope`.
    """

    def __init__(
        self,
        app: A,
        *,
        dialect: Dialect | None = None,
        records: Records | None = None,
        only: Sequence[str] = ("/",),
        skip: Sequence[str] = FASTAPI_PAGES,
    ) -> None:
        self.app = app
        self._checker = Checker(dialect, records)
        self._only = tuple(only)
        self._skip = tuple(skip)

    def applies_to(self, method: str, path: str) -> bool:
        """Return whether the response to this request is a reply."""
        below = path.startswith(self._only)
        return method not in ("HEAD", "OPTIONS") and below and not path.startswith(self._skip)

    @staticmethod
    def has_checkable_body(status: int, media_type: str) -> bool:
        """Return False for an event stream, or for a status without a body, such as a redirect."""
        bodiless = status in _STATUS_WITHOUT_BODY or 300 <= status < 400
        return not bodiless and not media_type.startswith("text/event-stream")

    def check(self, response: AppResponse) -> CheckedResponse:
        if has_more_marks(response.body, MAX_VALUES):
            # Not checked, like a body that is too large.
            return CheckedResponse(response.status)
        try:
            found = msgspec.json.decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            if response.failed and not (response.body and "json" in response.media_type):
                return self._pass_framework_error(response, None)
            # The parser's message goes only to the log.
            logger().error("Error validating MCP response: it is not JSON: %s", exc)
            result = CheckResult(None, (), CHECK_FAILED, "the response is not JSON")
            return self._refuse(response, result)
        if isinstance(found, dict) and "jsonrpc" in found:
            return self._check_jsonrpc(response, found)
        looks_like_reply = isinstance(found, dict) and not _REPLY_MEMBERS.isdisjoint(found)
        if response.failed and not looks_like_reply:
            return self._pass_framework_error(response, found)
        # An envelope without a timestamp is not refused; the timestamp is added.
        lacks = isinstance(found, dict) and "success" in found and not found.get("timestamp")
        if lacks:
            found["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        result = self._checker.check(found)
        if result.code:
            return self._refuse(response, result)
        self._record(response, result)
        return CheckedResponse(response.status, _encode(found) if lacks else None)

    def _check_jsonrpc(self, response: AppResponse, frame: JsonObject) -> CheckedResponse:
        """Check the result of a `tools/call`; a refusal stays a result, as MCP clients expect."""
        found = frame.get("result")
        if not isinstance(found, dict) or "content" not in found:
            return CheckedResponse(response.status)
        result = Checker("mcp").check(found)
        self._record(response, result)
        if not result.code:
            return CheckedResponse(response.status)
        body = _encode({**frame, "result": mcp_refusal(result)})
        return CheckedResponse(response.status, body)

    def _pass_framework_error(self, response: AppResponse, found: object) -> CheckedResponse:
        code = code_for_status(response.status) or f"HTTP_{response.status}"
        self._record(response, CheckResult(code=code))
        if self._checker.dialect != "envelope":
            return CheckedResponse(response.status)
        phrases = (each.phrase for each in HTTPStatus if each == response.status)
        phrase = next(phrases, f"HTTP status {response.status}")
        error: JsonObject = {"code": code, "message": phrase}
        if found is not None:
            error["details"] = found if isinstance(found, dict) else {"result": found}
        return CheckedResponse(response.status, _encoded_envelope(f"Error: {phrase}", error))

    def _refuse(self, response: AppResponse, result: CheckResult) -> CheckedResponse:
        self._record(response, result)
        error = {"code": result.code, "message": result.message}
        return CheckedResponse(500, _encoded_envelope(REFUSAL_TEXTS[result.code], error))

    def _record(self, response: AppResponse, result: CheckResult) -> None:
        if self._checker.records is not None:
            item = response.timer.record_of(response.path, response.wire, result)
            item.size = len(response.body)
            self._checker.records.add(item)


def _encoded_envelope(text: str, error: JsonObject) -> bytes:
    return _encode(
        {
            "success": False,
            "timestamp": datetime.now(UTC),
            "content": [{"type": "text", "text": text}],
            "error": error,
        }
    )
