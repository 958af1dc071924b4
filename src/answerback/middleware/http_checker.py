"""The same for HTTP, where a reply is a body: ASGI and WSGI only carry it here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import code_for_status
from .checker import (
    Checked,
    Checker,
    Clock,
    envelope_failure,
    envelope_refusal,
    is_meant_as_reply,
    mcp_refusal,
)

if TYPE_CHECKING:
    from ..contract import Dialect
    from ..records import Records

# FastAPI's own pages.
PAGES = ("/docs", "/redoc", "/openapi.json")
MOST_BYTES = 16 * 1024 * 1024
_WITHOUT_BODY = (204, 205, 304)
_encode = msgspec.json.Encoder().encode


class Sent(msgspec.Struct, frozen=True):
    """A response as the app gave it."""

    path: str
    wire: str
    status: int
    media_type: str
    body: bytes

    @property
    def failed(self) -> bool:
        return self.status >= 400


class Judged(msgspec.Struct, frozen=True):
    """What is sent. `body` is None where it is what came."""

    status: int
    body: bytes | None = None


class Bodies:
    """Every response below *only* and not below *skip* is a reply.

    Not so a framework's own errors, which say by their status what they are: no such route, no
    login. They pass, or become envelopes of that status where all has to be an envelope.
    """

    def __init__(
        self,
        dialect: Dialect | None,
        records: Records | None,
        only: Sequence[str],
        skip: Sequence[str],
    ) -> None:
        self._checker = Checker(dialect, records)
        self._only = tuple(only)
        self._skip = tuple(skip)

    def is_reply_to(self, method: str, path: str) -> bool:
        below = path.startswith(self._only)
        return method not in ("HEAD", "OPTIONS") and below and not path.startswith(self._skip)

    @staticmethod
    def is_one(status: int, media_type: str) -> bool:
        """A stream has no one body, and some responses, redirects among them, have none at all."""
        bodiless = status in _WITHOUT_BODY or 300 <= status < 400
        return not bodiless and not media_type.startswith("text/event-stream")

    def judge(self, sent: Sent, clock: Clock) -> Judged:
        try:
            found = msgspec.json.decode(sent.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            if sent.failed and not (sent.body and "json" in sent.media_type):
                return self._pass(sent, None, clock)
            checked = self._checker.unreadable(exc)
            self._record(sent, checked, clock)
            return Judged(500, _encode(envelope_refusal(checked)))
        if isinstance(found, dict) and "jsonrpc" in found:
            return self._judge_frame(sent, found, clock)
        if sent.failed and not is_meant_as_reply(found):
            return self._pass(sent, found, clock)
        return self._judge_reply(sent, found, clock)

    def _judge_reply(self, sent: Sent, found: Any, clock: Clock) -> Judged:
        stamped = self._stamp(found)
        checked = self._checker.check(found)
        self._record(sent, checked, clock)
        if checked.code:
            return Judged(500, _encode(envelope_refusal(checked)))
        return Judged(sent.status, _encode(found) if stamped else None)

    def _judge_frame(self, sent: Sent, frame: dict[str, Any], clock: Clock) -> Judged:
        """Only the result of a call is a reply; it stays a result, so that its caller reads it."""
        result = frame.get("result")
        if not isinstance(result, dict) or "content" not in result:
            return Judged(sent.status)
        checked = Checker("mcp").check(result)
        self._record(sent, checked, clock)
        if not checked.code:
            return Judged(sent.status)
        return Judged(sent.status, _encode({**frame, "result": mcp_refusal(checked)}))

    def _pass(self, sent: Sent, found: Any, clock: Clock) -> Judged:
        code = code_for_status(sent.status) or f"HTTP_{sent.status}"
        self._record(sent, Checked(code=code), clock)
        if self._checker.dialect != "envelope":
            return Judged(sent.status)
        return Judged(sent.status, _encode(envelope_failure(code, _phrase(sent.status), found)))

    def _record(self, sent: Sent, checked: Checked, clock: Clock) -> None:
        if self._checker.records is not None:
            item = clock.answered(sent.path, sent.wire, checked)
            item.size = len(sent.body)
            self._checker.record(item)

    @staticmethod
    def _stamp(found: Any) -> bool:
        """A missing time is filled in, not refused."""
        lacks = isinstance(found, dict) and "success" in found and not found.get("timestamp")
        if lacks:
            found["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        return lacks


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"HTTP status {status}"
