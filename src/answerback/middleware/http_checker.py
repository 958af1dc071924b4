"""HttpMiddleware: checks HTTP response bodies; the base of the ASGI and WSGI middleware."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from ..core.json_value import Json, JsonObject
from ..core.limits import MAX_VALUES
from ..error_codes import code_for_status
from ..types.json_text import has_more_marks
from .checker import (
    CallTimer,
    Checker,
    CheckResult,
    envelope_failure,
    envelope_refusal,
    looks_like_reply,
    mcp_refusal,
)

if TYPE_CHECKING:
    from ..contract import Dialect
    from ..records import Records

A = TypeVar("A")
FASTAPI_PAGES = ("/docs", "/redoc", "/openapi.json")
MAX_CHECKED_BYTES = 16 * 1024 * 1024
_STATUS_WITHOUT_BODY = (204, 205, 304)
_encode = msgspec.json.Encoder().encode


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
    """An invalid reply is replaced by an error with status 500.

    *app* is the application that it wraps. *dialect* is the form of the replies; by default it is
    recognised. *records* gets an event for each reply. *only* are the paths below which every
    response counts as a reply. *skip* are the paths below which none does. Install it so that it
    sees responses before any middleware compresses them.

    The framework's own errors (404, 401) are not replies: their status says what they are. They
    pass unchanged, or as envelopes with the same status if the dialect is `envelope`.
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
        """Return whether the response to such a request is a reply."""
        below = path.startswith(self._only)
        return method not in ("HEAD", "OPTIONS") and below and not path.startswith(self._skip)

    @staticmethod
    def has_checkable_body(status: int, media_type: str) -> bool:
        """Return False for an event stream, or for a status without a body, such as a redirect."""
        bodiless = status in _STATUS_WITHOUT_BODY or 300 <= status < 400
        return not bodiless and not media_type.startswith("text/event-stream")

    def check(self, response: AppResponse) -> CheckedResponse:
        if has_more_marks(response.body, MAX_VALUES):
            # As a body that is too large, it is not checked.
            return CheckedResponse(response.status)
        try:
            found = msgspec.json.decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            if response.failed and not (response.body and "json" in response.media_type):
                return self._pass_framework_error(response, None)
            result = self._checker.refuse_non_json(exc)
            self._record(response, result)
            return CheckedResponse(500, _encode(envelope_refusal(result)))
        if isinstance(found, dict) and "jsonrpc" in found:
            return self._check_jsonrpc(response, found)
        if response.failed and not looks_like_reply(found):
            return self._pass_framework_error(response, found)
        return self._check_reply(response, found)

    def _check_reply(self, response: AppResponse, found: Json) -> CheckedResponse:
        changed = self._add_timestamp(found)
        result = self._checker.check(found)
        self._record(response, result)
        if result.code:
            return CheckedResponse(500, _encode(envelope_refusal(result)))
        return CheckedResponse(response.status, _encode(found) if changed else None)

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
        envelope = envelope_failure(code, phrase, found)
        return CheckedResponse(response.status, _encode(envelope))

    def _record(self, response: AppResponse, result: CheckResult) -> None:
        if self._checker.records is not None:
            item = response.timer.record_of(response.path, response.wire, result)
            item.size = len(response.body)
            self._checker.record(item)

    @staticmethod
    def _add_timestamp(found: Any) -> bool:
        """Add a missing timestamp to an envelope; it is not a reason to refuse it."""
        lacks = isinstance(found, dict) and "success" in found and not found.get("timestamp")
        if lacks:
            found["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        return lacks
