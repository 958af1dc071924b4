"""What the rules find in a reply of ours, told of the reply itself and not of one of its forms.

A reply is put to the rules in MCP's form, which says all of it. Most never get that far: they are
seen to be right from what they are made of, without being written. Hot: one in a few microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ..content import Text
from ..contract import STANDARD
from ..reply import Error, Reply
from ..shape import RESULT
from .catalogue import RULE_OF, Checks, plan_for
from .checks.ab3_text_and_data import RESULT_MEMBERS
from .detectors.failure_json import ABOUT_FAILURE
from .detectors.secrets import may_hold_secrets
from .finding import Finding
from .reply_view import NOTHING_KNOWN, Subject
from .validation import shape_of, validate

# Of one text, and the data that it says, these can find nothing: the dialect writes it so.
_HOLDS = frozenset(
    {
        *("AB102", "AB104", "AB111", "AB115", "AB118", "AB122", "AB301", "AB302", "AB303"),
        *("AB305", "AB306", "AB310", "AB601", "AB602", "AB603"),
    }
)
# These read texts that are JSON, and no others.
_OF_JSON = frozenset({"AB202", "AB207", "AB304", "AB307", "AB308"})
_JSON = ("{", "[", '"', "```")
# Written as MCP, where it stands twice, no more than this comes near to too many tokens.
_SHORT = 32 * 1024
# An object without any of these is not about a failed call, nor a result in a result.
_TELLING = ABOUT_FAILURE | RESULT_MEMBERS
_UNSET = msgspec.UNSET
_decode = msgspec.json.Decoder().decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder(enc_hook=repr).encode


def _asked(failed: bool, is_json: bool) -> tuple[Checks, Checks]:
    plan = plan_for("mcp", failed, versioned=False, with_schema=False)
    left_out = _HOLDS if is_json else _HOLDS | _OF_JSON
    kept = tuple(check for check in plan.reply if RULE_OF[check].id not in left_out)
    return kept, plan.text


_EITHER = (False, True)
_ASKED = {(failed, is_json): _asked(failed, is_json) for failed in _EITHER for is_json in _EITHER}


def findings_in(reply: Reply[Any]) -> tuple[Finding, ...]:
    """What there is to say about a reply, the same whichever dialect it is sent in.

    Pointers lead into `{"content": …, "data": …, "error": …, "meta": …}`.
    """
    return () if _is_plainly_right(reply) else tuple(_told(reply))


def _is_plainly_right(reply: Reply[Any]) -> bool:
    """Never wrong when it says yes; what is unusual is not looked into."""
    if reply.meta:
        return False
    if reply.error is not None:
        return not reply.content and _is_right_failure(reply.error)
    if reply.content:
        return reply.data is _UNSET and _is_right_content(reply)
    encoded = reply.encoded
    if encoded is None or len(encoded) > _SHORT:
        return False
    text = encoded.decode()
    if may_hold_secrets(text):
        return False
    # Of numbers and lists the text is {"result": …}, which is like nothing that is looked for.
    if text[0] == "{":
        return _TELLING.isdisjoint(_members(encoded)) or _is_right(
            text, text, data=_decode(encoded)
        )
    if text[0] == '"':
        # A date too is sent as a string.
        said = reply.data if type(reply.data) is str else _decode(encoded)
        return _is_right(said, text, data={"result": said})
    return True


def _is_right_content(reply: Reply[Any]) -> bool:
    block = reply.content[0]
    if len(reply.content) > 1 or type(block) is not Text or block.annotations or block.meta:
        return False
    text = block.text
    # A character may take six in JSON.
    short = len(text) <= _SHORT // 2
    return short and not may_hold_secrets(text) and _is_right(text, text)


def _is_right_failure(error: Error) -> bool:
    text = _encode(error).decode()
    if len(text) > _SHORT or may_hold_secrets(text):
        return False
    return _is_right(error.message, text, failed=True)


def _is_right(text: str, raw: str, *, failed: bool = False, data: Any = _UNSET) -> bool:
    """Whether no rule finds anything in a reply of that text and data; *raw* is their JSON."""
    found: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": failed}
    if data is not _UNSET:
        found["structuredContent"] = data
    it = Subject(found, "mcp", NOTHING_KNOWN, raw)
    of_reply, of_text = _ASKED[failed, text.lstrip().startswith(_JSON)]
    for check in of_reply:
        if check(it):
            return False
    for check in of_text:  # noqa: SIM110 -- any() takes twice as long
        if check(it, text, 0):
            return False
    return True


def _told(reply: Reply[Any]) -> Iterator[Finding]:
    """Each once, although what is in the data is in the text too."""
    found = [
        msgspec.structs.replace(each, pointer=_place(each.pointer, reply))
        for each in validate(reply, "mcp")
    ]
    seen = set[tuple[str, str]]()
    for each in found:
        key = each.rule, each.pointer
        below = f"{each.pointer}/"
        again = each.pointer in ("/data", "/error/message") and any(
            other.rule == each.rule and other.pointer.startswith(below) for other in found
        )
        if key not in seen and not again:
            seen.add(key)
            yield each


def _place(pointer: str, reply: Reply[Any]) -> str:
    """Where in the reply that is, which a pointer into its form in MCP leads to."""
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
            return _place_in_content(int(index), rest, reply)
        case "content", _ if not reply.content:
            return "/data" if reply.error is None else "/error/message"
    return pointer


def _place_in_content(index: int, rest: list[str], reply: Reply[Any]) -> str:
    """The dialect adds one text, of the error or of the data, if it is not there already."""
    from ..dialects.contract_text import content_with_text

    written = content_with_text(reply, shape_of(reply), STANDARD)
    added = len(written) > len(reply.content)
    leads = added and written[1:] == reply.content
    if added and index == (0 if leads else len(reply.content)):
        return "/data" if reply.error is None else "/error/message"
    return "/".join([f"/content/{index - leads}", *rest])
