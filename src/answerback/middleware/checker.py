"""Checks other frameworks' replies, makes the refusal of an invalid one, and records both."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from time import perf_counter_ns, time
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.json_value import Json, JsonObject
from ..core.log import logger
from ..dialects.verdicts import code_of, dialect_of
from ..errors import MissingExtraError
from ..records.recorder import CallRecord

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
_REPLY_MEMBERS = frozenset({"success", "content", "isError", "structuredContent"})


class CheckResult(msgspec.Struct):
    """A reply with its findings, and the reason for refusing it if it must not be sent."""

    reply: Json = None
    findings: Sequence[Finding] = ()
    code: str = ""
    """The refusal's code, or the code of a call without a reply; empty if the reply may be sent."""
    message: str = ""


class CallTimer:
    """A timer for one call, from request to reply, for its record."""

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
    """A checker that applies the rules to replies and keeps them in *records*.

    Without a *dialect*, each reply is checked in the dialect that it resembles.
    """

    def __init__(self, dialect: Dialect | None = None, records: Records | None = None) -> None:
        self.dialect = dialect
        self.records = records

    def check(self, reply: Any, **known: Any) -> CheckResult:
        """Check a reply against the rules; *known* is passed to `validate`."""
        from ..rules import validate

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

    def refuse_non_json(self, exc: Exception) -> CheckResult:
        """Refuse a body that is not JSON; the parser's message goes to the log only."""
        logger().error("Error validating MCP response: it is not JSON: %s", exc)
        return CheckResult(None, (), CHECK_FAILED, "the response is not JSON")

    def record(self, item: CallRecord) -> None:
        if self.records is not None:
            self.records.add(item)


def looks_like_reply(found: Json) -> bool:
    """Return whether a JSON value has a member that an envelope or an MCP result has."""
    return isinstance(found, dict) and not _REPLY_MEMBERS.isdisjoint(found)


def as_dict(value: Any) -> JsonObject:
    """Return a pydantic model's JSON object, as it is sent; a dict is returned unchanged."""
    if isinstance(value, dict):
        return value
    members: JsonObject = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return members


def envelope_refusal(result: CheckResult) -> JsonObject:
    """Return the envelope to send in place of an invalid reply."""
    error = {"code": result.code, "message": result.message}
    return _envelope(REFUSAL_TEXTS[result.code], error)


def envelope_failure(code: str, message: str, details: object) -> JsonObject:
    """Return one of the framework's own errors, such as 404, as an envelope."""
    error: JsonObject = {"code": code, "message": message}
    if details is not None:
        error["details"] = details if isinstance(details, dict) else {"result": details}
    return _envelope(f"Error: {message}", error)


def _envelope(text: str, error: JsonObject) -> JsonObject:
    return {
        "success": False,
        "timestamp": datetime.now(UTC),
        "content": [{"type": "text", "text": text}],
        "error": error,
    }


def mcp_refusal(result: CheckResult) -> JsonObject:
    """Return the MCP result to send in place of an invalid one."""
    error = {"code": result.code, "message": result.message}
    return {
        "content": [{"type": "text", "text": REFUSAL_TEXTS[result.code]}],
        "isError": True,
        "_meta": {"answerback/error": error},
    }
