"""The pytest plugin: `assert_valid_reply`, a client that displays replies, and a Context.

pytest loads it in every project that has Answerback installed, so the rest of Answerback is
imported only when a test uses it, and its fixture names avoid clashes with other plugins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..app import App
    from ..contract import Contract, Dialect
    from ..core.reply import Error, Reply
    from ..rules import Finding
    from .context_for_tests import TestContext

__all__ = ["DisplayClient", "TestContext", "assert_valid_reply"]


def __getattr__(name: str) -> Any:
    if name != "TestContext":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .context_for_tests import TestContext

    return TestContext


def assert_valid_reply(
    reply: object,
    dialect: Dialect | None = None,
    *,
    schema: dict[str, Any] | None = None,
    version: str | None = None,
) -> None:
    """Fail the test and list the findings if a reply has any errors or warnings.

    The reply is a `Reply`, an envelope, an MCP result, its JSON, or its pydantic model. Its data
    must match *schema*. *version* is the MCP version, such as "2025-11-25".
    """
    __tracebackhide__ = True
    from ..rules import validate

    findings = validate(_as_json(reply), dialect=dialect, schema=schema, version=version)
    failures = [each for each in findings if each.severity != "note"]
    if failures:
        raise AssertionError(_report(failures))


class DisplayClient:
    """A client application that displays replies: the text, and whether the call failed.

    With an *app*, it displays a `Reply` the way the app would send it under its contract.
    """

    def __init__(self, app: App | None = None) -> None:
        self._app = app
        self._displayed: dict[str, Any] | None = None
        self._error: Error | None = None

    def process_response(self, response: object) -> None:
        """Display a reply; raise MalformedReply if it cannot be read."""
        contract = None if self._app is None else self._app.contract
        self._displayed = _as_sent(_as_json(response), contract)
        self._error = _decode(self._displayed).error

    async def call(self, name: str, /, **arguments: object) -> Reply[Any]:
        """Call one of the app's tools and display its reply."""
        if self._app is None:
            raise AssertionError("this client has no app to call; write DisplayClient(app)")
        reply = await self._app.call(name, **arguments)
        self.process_response(reply)
        return reply

    @property
    def displayed_text(self) -> str:
        """The last reply's text blocks, one per line."""
        blocks = self._last.get("content") or ()
        return "\n".join(block["text"] for block in blocks if block.get("type") == "text")

    @property
    def displayed_error(self) -> bool:
        """Whether the last reply is a failure."""
        return bool(self._last) and self._error is not None

    @property
    def error_code(self) -> str | None:
        """The last reply's error code; None if the call succeeded."""
        return None if not self.displayed_error or self._error is None else self._error.code

    @property
    def _last(self) -> dict[str, Any]:
        if self._displayed is None:
            raise AssertionError("no reply displayed yet; call process_response(reply) first")
        return self._displayed


@pytest.fixture
def answerback_client() -> DisplayClient:
    """A client application that displays replies."""
    return DisplayClient()


@pytest.fixture
def answerback_context() -> TestContext:
    """A Context that records what a tool sends."""
    from .context_for_tests import TestContext

    return TestContext()


@pytest.fixture(name="assert_valid_reply")
def _assert_valid_reply() -> Callable[..., None]:
    """The function `assert_valid_reply`, for tests that do not import it."""
    return assert_valid_reply


def _as_json(reply: object) -> Any:
    """Return a pydantic model as a JSON object; return any other reply unchanged."""
    dump = getattr(reply, "model_dump", None)
    return dump(by_alias=True, mode="json", exclude_none=True) if callable(dump) else reply


def _as_sent(reply: object, contract: Contract | None) -> dict[str, Any]:
    """Return a reply's decoded JSON; a `Reply` is first written as an MCP result or an envelope."""
    import msgspec

    from ..core.reply import Reply

    if isinstance(reply, Reply):
        from ..dialects import as_sent

        is_envelope = contract is not None and contract.http == "envelope"
        return as_sent(reply, "envelope" if is_envelope else "mcp", contract)
    found: Any = msgspec.json.decode(reply) if isinstance(reply, bytes | str) else reply
    if not isinstance(found, dict):
        raise AssertionError(f"a reply must be an object, not {type(found).__name__}")
    return found


def _decode(found: dict[str, Any]) -> Reply[Any]:
    import msgspec

    from ..dialects import HttpReply, read
    from ..verdicts.forms import dialect_of

    return read(HttpReply(200, msgspec.json.encode(found), "application/json"), dialect_of(found))


def _report(findings: Sequence[Finding]) -> str:
    from ..core.secrets import mask_pointer
    from ..types.problems import counted

    lines = [f"the reply breaks {counted(len(findings), 'rule')}:"]
    for each in findings:
        at = mask_pointer(each.pointer) or "the top level"
        lines.append(f"  {each.rule} {each.name} at {at}: {each.message}")
        if each.hint:
            lines.append(f"    {each.hint}")
    return "\n".join(lines)
