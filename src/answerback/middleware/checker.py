"""What all of them do with a reply: find out its form, check it, refuse it, record it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from time import perf_counter_ns, time
from typing import TYPE_CHECKING, Any

import msgspec

from ..dialects.detect import code_of, dialect_of
from ..errors import MissingExtraError
from ..records.call_record import CallRecord

if TYPE_CHECKING:
    from ..contract import Dialect
    from ..records import Records
    from ..rules.finding import Finding

INVALID = "INVALID_RESPONSE_FORMAT"
FAILED = "RESPONSE_VALIDATION_ERROR"
TEXTS = {
    INVALID: "Internal server error: Invalid response format",
    FAILED: "Internal server error: Response validation failed",
}
_OF_REPLIES = frozenset({"success", "content", "isError", "structuredContent"})
_encode = msgspec.json.Encoder().encode


class Checked(msgspec.Struct):
    """A reply and what the rules say about it."""

    found: Any = None
    findings: Sequence[Finding] = ()
    code: str = ""
    """Why it must not be sent; empty if it may."""
    message: str = ""


class Clock:
    """When a call came, and how long it took."""

    def __init__(self) -> None:
        self.began = time()
        self._from = perf_counter_ns()

    def answered(
        self, name: str, wire: str, checked: Checked, arguments: bytes = b""
    ) -> CallRecord:
        found = checked.found
        return CallRecord(
            kind="tool",
            name=name,
            wire=wire,
            arguments=arguments,
            started_at=self.began,
            duration_ns=perf_counter_ns() - self._from,
            size=len(msgspec.json.encode(found, enc_hook=repr)) if found is not None else 0,
            reply=found,
            code=checked.code or code_of(found),
            findings=checked.findings,
        )


class Checker:
    """*dialect* is told from each reply unless it is given; *records* keeps each."""

    def __init__(self, dialect: Dialect | None = None, records: Records | None = None) -> None:
        self.dialect = dialect
        self.records = records

    def check(self, found: Any, **known: Any) -> Checked:
        """What the rules say; *known* is what `validate` may be told beside the reply."""
        from ..rules import validate

        try:
            dialect = self.dialect or dialect_of(found)
            try:
                findings = validate(found, dialect=dialect, **known)
            except MissingExtraError:  # Without a checker of schemas the rest is checked.
                findings = validate(found, dialect=dialect, **(known | {"schema": None}))
        except Exception as exc:  # noqa: BLE001 -- what cannot be checked is not sent either
            return self.unchecked(found, exc)
        grave = [each for each in findings if each.severity == "error"]
        if not grave:
            return Checked(found, findings)
        _log().error("Invalid MCP response: %s", _uncapitalised(grave[0].message))
        return Checked(found, findings, INVALID, grave[0].message)

    def unchecked(self, found: Any, exc: Exception) -> Checked:
        _log().error("Error validating MCP response: %s", exc, exc_info=exc)
        return Checked(found, (), FAILED, "the response could not be checked")

    def unreadable(self, exc: Exception) -> Checked:
        """What the parser has to say is for the log alone."""
        _log().error("Error validating MCP response: it is not JSON: %s", exc)
        return Checked(None, (), FAILED, "the response is not JSON")

    def record(self, item: CallRecord) -> None:
        if self.records is not None:
            self.records.add(item)


def is_meant_as_reply(found: Any) -> bool:
    """Whether there is anything of an envelope's or of a result's in it."""
    return isinstance(found, dict) and not _OF_REPLIES.isdisjoint(found)


def envelope_refusal(checked: Checked) -> dict[str, Any]:
    """What is sent in place of a reply that must not be."""
    error = {"code": checked.code, "message": checked.message}
    return _envelope(TEXTS[checked.code], error)


def envelope_failure(code: str, message: str, details: Any) -> dict[str, Any]:
    """What a framework said of itself, as an envelope."""
    error = {"code": code, "message": message}
    return _envelope(f"Error: {message}", error if details is None else error | _detailed(details))


def _detailed(details: Any) -> dict[str, Any]:
    return {"details": details if isinstance(details, dict) else {"result": details}}


def _envelope(text: str, error: dict[str, Any]) -> dict[str, Any]:
    return {
        "success": False,
        "timestamp": datetime.now(UTC),
        "content": [{"type": "text", "text": text}],
        "error": error,
    }


def mcp_refusal(checked: Checked) -> dict[str, Any]:
    """The same, where MCP results are sent."""
    error = {"code": checked.code, "message": checked.message}
    return {
        "content": [{"type": "text", "text": TEXTS[checked.code]}],
        "isError": True,
        "_meta": {"answerback/error": error},
    }


def _uncapitalised(message: str) -> str:
    return message[:1].lower() + message[1:]


def _log() -> Any:
    import logging

    return logging.getLogger("answerback")
