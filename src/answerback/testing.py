"""For pytest: `assert_valid_reply`, and `client`, which sees a reply as an application shows it.

Installed as a plugin; what it needs of Answerback is imported when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .contract import Dialect
    from .reply import Error, Reply
    from .rules import Finding


def assert_valid_reply(
    reply: Any,
    dialect: Dialect | None = None,
    *,
    schema: dict[str, Any] | None = None,
    version: str | None = None,
) -> None:
    """Fail the test if the rules find fault with a reply, and print what they find.

    The reply is a `Reply`, an envelope, an MCP result, the JSON of one, or a model of one.
    """
    __tracebackhide__ = True
    from .rules import validate

    findings = validate(_plain(reply), dialect=dialect, schema=schema, version=version)
    grave = [each for each in findings if each.severity != "note"]
    if grave:
        raise AssertionError(_report(grave))


class Client:
    """An application that shows replies."""

    def __init__(self) -> None:
        self._shown: dict[str, Any] | None = None
        self._error: Error | None = None

    def process_response(self, response: Any) -> None:
        """Show a reply; raises MalformedReply for one that no application could read."""
        self._shown = _as_sent(_plain(response))
        self._error = _read(self._shown).error

    @property
    def displayed_text(self) -> str:
        """The texts of what was shown last, one below the other."""
        blocks = self._last.get("content") or ()
        return "\n".join(block["text"] for block in blocks if block.get("type") == "text")

    @property
    def displayed_error(self) -> bool:
        return bool(self._last) and self._error is not None

    @property
    def error_code(self) -> str | None:
        return None if not self.displayed_error or self._error is None else self._error.code

    @property
    def _last(self) -> dict[str, Any]:
        if self._shown is None:
            raise AssertionError("nothing was shown yet; call process_response(reply) first")
        return self._shown


@pytest.fixture
def client() -> Client:
    """An application to show replies to."""
    return Client()


@pytest.fixture(name="assert_valid_reply")
def _assert_valid_reply() -> Callable[..., None]:
    """The function of that name, for those who do not import it."""
    return assert_valid_reply


def _plain(reply: Any) -> Any:
    """A model of pydantic's becomes what it stands for."""
    dump = getattr(reply, "model_dump", None)
    return dump(by_alias=True, mode="json", exclude_none=True) if callable(dump) else reply


def _as_sent(reply: Any) -> dict[str, Any]:
    import msgspec

    from .contract import STANDARD
    from .dialects import write
    from .reply import Reply
    from .shape import BARE, RESULT

    if isinstance(reply, Reply):
        bare = isinstance(reply.data, dict) or reply.data is msgspec.UNSET
        reply = write(reply, "mcp", BARE if bare else RESULT, STANDARD).body
    found: Any = msgspec.json.decode(reply) if isinstance(reply, bytes | str) else reply
    if not isinstance(found, dict):
        raise AssertionError(f"a reply is an object, and this is {type(found).__name__}")
    return found


def _read(found: dict[str, Any]) -> Reply[Any]:
    import msgspec

    from .dialects import HttpReply, read
    from .dialects.detect import dialect_of

    return read(HttpReply(200, msgspec.json.encode(found), "application/json"), dialect_of(found))


def _report(findings: Sequence[Finding]) -> str:
    lines = [f"the reply breaks {len(findings)} rule{'' if len(findings) == 1 else 's'}:"]
    for each in findings:
        lines.append(f"  {each.rule} {each.name} at {each.pointer or 'the whole'}: {each.message}")
        if each.hint:
            lines.append(f"    {each.hint}")
    return "\n".join(lines)
