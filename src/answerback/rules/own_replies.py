"""Findings in our own `Reply`, with pointers into the reply, not into one of its forms.

The rules check a reply in the form of the `mcp` dialect, which carries everything. Writing and
checking that form takes 40 to 90 microseconds, so a plain reply gets a quick check first, which
takes a few. A plain reply is short and holds no secrets, and is one of these:

- data and no content, which the dialect writes as one text (its JSON) and as structured content;
- one text block without annotations, and no data;
- an error and no content, whose message is the text.

A rule declares in `Scope.plain_replies` whether a plain reply can break it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ..contract import STANDARD
from ..core.content import Text
from ..core.reply import RESULT_MEMBERS, Error, Reply
from ..core.secrets import may_hold_secrets
from ..core.shape import RESULT
from ..dialects import shape_of
from ..dialects.reply_text import HINT_LINE, content_with_text
from ..dialects.verdicts import FAILURE_MEMBERS
from .catalogue import RULE_BY_CHECK, Checks, plan_for
from .finding import Finding
from .reply_view import NO_CONTEXT, ReplyView
from .validation import validate

# The starts of a text that the rules may read as JSON; the last is a Markdown code fence.
_JSON_STARTS = ("{", "[", '"', "```")
# The MCP form repeats the text in the data; twice this length is far from too many tokens (AB602).
_MAX_LENGTH = 32 * 1024
# An object without any of these members is neither an error object nor a tool result.
_SUSPECT_MEMBERS = FAILURE_MEMBERS | RESULT_MEMBERS
_UNSET = msgspec.UNSET
_decode = msgspec.json.Decoder().decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder(enc_hook=repr).encode


def _plain_checks(failed: bool, is_json: bool) -> tuple[Checks, Checks]:
    """Return the checks that a plain reply can fail: of the whole reply, and of its text."""
    plan = plan_for("mcp", failed, has_version=False, has_schema=False)
    which = ("any", "json") if is_json else ("any",)
    on_reply, on_text = (
        tuple(check for check in checks if RULE_BY_CHECK[check].scope.plain_replies in which)
        for checks in (plan.reply, plan.text)
    )
    return on_reply, on_text


_PLAIN_CHECKS = {
    (failed, is_json): _plain_checks(failed, is_json)
    for failed in (False, True)
    for is_json in (False, True)
}


def findings_in(reply: Reply[Any]) -> tuple[Finding, ...]:
    """Return the findings in a reply, which are the same in every dialect.

    Pointers lead into `{"content": …, "data": …, "error": …, "meta": …}`.
    """
    return () if _passes_quick_check(reply) else tuple(_full_check(reply))


def _passes_quick_check(reply: Reply[Any]) -> bool:
    """Return True only if the reply is plain and no rule finds anything."""
    if reply.meta or reply.cuts:
        return False
    if reply.error is not None:
        return not reply.content and _error_passes(reply.error)
    if reply.content:
        return reply.data is _UNSET and _content_passes(reply)
    encoded = reply.encoded
    if encoded is None or len(encoded) > _MAX_LENGTH:
        return False
    text = encoded.decode()
    if may_hold_secrets(text):
        return False
    if text[0] == "{":
        return _SUSPECT_MEMBERS.isdisjoint(_decode_members(encoded)) or _passes(
            text, text, data=_decode(encoded)
        )
    if text[0] == '"':
        # Dates and other values that are not str are encoded as strings too.
        string = reply.data if type(reply.data) is str else _decode(encoded)
        return _passes(string, text, data={"result": string})
    # The text of a number or a list is {"result": …}, which no rule reports.
    return True


def _content_passes(reply: Reply[Any]) -> bool:
    block = reply.content[0]
    if len(reply.content) > 1 or type(block) is not Text or block.annotations or block.meta:
        return False
    text = block.text
    # JSON may encode one character as six.
    is_short = len(text) <= _MAX_LENGTH // 2
    return is_short and not may_hold_secrets(text) and _passes(text, text)


def _error_passes(error: Error) -> bool:
    text = _encode(error).decode()
    if len(text) > _MAX_LENGTH or may_hold_secrets(text):
        return False
    # The text of an MCP result has the hint too.
    shown = f"{error.message}{HINT_LINE}{error.hint}" if error.hint else error.message
    return _passes(shown, text, failed=True)


def _passes(text: str, json_text: str, *, failed: bool = False, data: Any = _UNSET) -> bool:
    """Return whether no rule finds anything in a plain reply of *text* and *data*, encoded as
    *json_text*."""
    reply: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": failed}
    if data is not _UNSET:
        reply["structuredContent"] = data
    view = ReplyView(reply, "mcp", NO_CONTEXT, json_text)
    on_reply, on_text = _PLAIN_CHECKS[failed, text.lstrip().startswith(_JSON_STARTS)]
    for check in on_reply:
        if check(view):
            return False
    for check in on_text:  # noqa: SIM110 -- any() takes twice as long
        if check(view, text, 0):
            return False
    return True


def _full_check(reply: Reply[Any]) -> Iterator[Finding]:
    """Check the MCP form, in which the text repeats the data; yield each finding once."""
    if reply.shape is not None:
        # The message and the lines repeat the blocks.
        reply = msgspec.structs.replace(reply, shape=reply.shape.without_additions())
    findings = [
        msgspec.structs.replace(each, pointer=_reply_pointer(each.pointer, reply))
        for each in validate(reply, "mcp")
    ]
    seen = set[tuple[str, str]]()
    for each in findings:
        key = each.rule, each.pointer
        below = f"{each.pointer}/"
        has_exact_one = each.pointer in ("/data", "/error/message") and any(
            other.rule == each.rule and other.pointer.startswith(below) for other in findings
        )
        if key not in seen and not has_exact_one:
            seen.add(key)
            yield each


def _reply_pointer(pointer: str, reply: Reply[Any]) -> str:
    """Return the pointer into the reply for a pointer into its MCP form."""
    name, *path = pointer[1:].split("/")
    match name, path:
        case "structuredContent", ["result", *rest] if shape_of(reply) is RESULT:
            return "/".join(["/data", *rest])
        case "structuredContent", _:
            return "/".join(["/data", *path])
        case "isError", _:
            return "/error"
        case "_meta", ["answerback~1error", *rest]:
            return "/".join(["/error", *rest])
        case "_meta", _:
            return "/".join(["/meta", *path])
        case "content", [index, *rest]:
            return _content_pointer(int(index), rest, reply)
        case "content", _ if not reply.content:
            return "/data" if reply.error is None else "/error/message"
    return pointer


def _content_pointer(index: int, rest: list[str], reply: Reply[Any]) -> str:
    """Return the pointer without the text block that the dialect adds if the content lacks it."""
    written = content_with_text(reply, shape_of(reply), STANDARD)
    added = len(written) > len(reply.content)
    is_first = added and written[1:] == reply.content
    if added and index == (0 if is_first else len(reply.content)):
        return "/data" if reply.error is None else "/error/message"
    return "/".join([f"/content/{index - is_first}", *rest])
