"""The same for HTTP, where a reply is a body: ASGI and WSGI only carry it here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from .replies import Checked, Checker, Clock, envelope_refusal, mcp_refusal

if TYPE_CHECKING:
    from ..contract import Dialect
    from ..records import Records

# FastAPI's own pages.
PAGES = ("/docs", "/redoc", "/openapi.json")
MOST_BYTES = 16 * 1024 * 1024
_WITHOUT_BODY = (204, 205, 304)
_encode = msgspec.json.Encoder().encode


class Judged(msgspec.Struct, frozen=True):
    """What is sent. `body` is None where it is what came."""

    status: int
    body: bytes | None = None


class Bodies:
    """Every response below *only* and not below *skip* is a reply."""

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

    def judge(self, path: str, wire: str, status: int, body: bytes, clock: Clock) -> Judged:
        try:
            found = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            checked = self._checker.unchecked(None, exc)
            self._record(path, wire, checked, clock)
            return Judged(500, _encode(envelope_refusal(checked)))
        if isinstance(found, dict) and "jsonrpc" in found:
            return self._judge_frame(path, wire, status, found, clock)
        return self._judge_reply(path, wire, status, found, clock)

    def _judge_reply(self, path: str, wire: str, status: int, found: Any, clock: Clock) -> Judged:
        stamped = self._stamp(found)
        checked = self._checker.check(found)
        self._record(path, wire, checked, clock)
        if checked.code:
            return Judged(500, _encode(envelope_refusal(checked)))
        return Judged(status, _encode(found) if stamped else None)

    def _judge_frame(
        self, path: str, wire: str, status: int, frame: dict[str, Any], clock: Clock
    ) -> Judged:
        """Only the result of a call is a reply; it stays a result, so that its caller reads it."""
        result = frame.get("result")
        if not isinstance(result, dict) or "content" not in result:
            return Judged(status)
        checked = Checker("mcp").check(result)
        self._record(path, wire, checked, clock)
        if not checked.code:
            return Judged(status)
        return Judged(status, _encode({**frame, "result": mcp_refusal(checked)}))

    def _record(self, path: str, wire: str, checked: Checked, clock: Clock) -> None:
        if self._checker.records is not None:
            self._checker.record(clock.answered(path, wire, checked))

    @staticmethod
    def _stamp(found: Any) -> bool:
        """A missing time is filled in, not refused."""
        lacks = isinstance(found, dict) and "success" in found and not found.get("timestamp")
        if lacks:
            found["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        return lacks
