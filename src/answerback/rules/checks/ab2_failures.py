"""AB2xx: a failure is flagged as a failure, and its message helps the caller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from ...verdicts.judge import failure_in_text, is_failure_json, json_in_text
from ...verdicts.texts import is_failure_text
from ..finding import (
    ENVELOPE,
    ENVELOPE_FAILURE,
    MCP,
    MCP_FAILURE,
    PROBLEM,
    REST,
    Example,
    Fault,
    Faults,
    Scope,
    rule,
    text_result,
)
from ..reply_view import ReplyView, failure_sentence, is_declared, quoted

_VAGUE = re.compile(
    r"""(?:error:?\s*)?(?:
      (?:an?\ )?(?:unexpected\ |internal\ |unknown\ |unhandled\ |general\ )?
        (?:server\ )?(?:error|exception)(?:\ (?:has\ )?(?:occurred|happened))?
    | something\ went\ wrong | (?:it|operation|request|tool|call|execution)?\ ?failed | failure
    | undefined | null | none | nan | \{\} | \[object\ object\] | oops
    | error\ (?:executing|calling)\ tool\ \S+
    )[\s.!:]*""",
    re.VERBOSE | re.IGNORECASE,
)
_SUCCESS = re.compile(
    r"(?:http\s*)?20[0-6](?:\s+(?:ok|created|accepted|no content|reset content))?[.!]?"
    r"|(?:ok|success|done|no content|completed)[.!]?|operation completed successfully[.!]?",
    re.IGNORECASE,
)
_DATA = "/structuredContent"
_ENVELOPE_HINT = "set success: false, and add error with a code and a message"


@rule(
    "AB201",
    scope=Scope(dialects=MCP + ENVELOPE, when="success"),
    severity="warning",
    hint="set isError: true, so that the model and its host know that the call failed",
    bad=text_result("Error: 401 Unauthorized"),
    good=text_result("Your token was refused (401). Log in again.", isError=True),
)
def error_hidden_in_text(reply: ReplyView) -> Faults:
    """An unflagged failure counts as a success: hosts do not retry, and models carry on."""
    if len(reply.blocks) != 1 or not reply.texts:
        return ()
    index, text = reply.texts[0]
    if reply.data is not UNSET and _shows_success(reply.data, text):
        return ()
    text = text.strip()
    if not is_failure_text(text):
        return ()
    at, line = f"/content/{index}/text", text.partition("\n")[0]
    if reply.dialect == "mcp":
        return [Fault(at, f"a failure without isError: {quoted(line, 80)}")]
    return [Fault(at, f"a failure with success: true: {quoted(line, 80)}", _ENVELOPE_HINT)]


def _shows_success(data: Any, text: str) -> bool:
    """Return whether the data is more than a copy of the text, as sent by a `-> str` tool."""
    if isinstance(data, dict):
        return bool(data) and (len(data) > 1 or data.get("result") != text)
    return bool(data) and data != text


def _flag_failure(reply: dict[str, Any], _: str) -> None:
    """Set `isError`, and replace an error object in the text with a sentence."""
    reply["isError"] = True
    content = reply.get("content")
    for block in content if isinstance(content, list) else ():
        text = block.get("text") if isinstance(block, dict) else None
        value = json_in_text(text) if isinstance(text, str) else None
        if is_failure_json(value) or _has_error_object(value):
            block["text"] = failure_sentence(value) or text
            # Clients reject an error whose data does not match the output schema.
            if reply.get("structuredContent") == value and block["text"] != text:
                del reply["structuredContent"]


@rule(
    "AB202",
    scope=Scope(dialects=MCP, when="success", plain_replies="json"),
    hint="set isError: true and send the message as text; never encode errors in JSON strings",
    bad=text_result('{"success":false,"error":{"code":"NOT_FOUND","message":"no such city"}}'),
    good=text_result("no such city: Olso. Did you mean Oslo?", isError=True),
    fix=_flag_failure,
)
def failure_as_json_text(reply: ReplyView) -> Faults:
    """A host looks only at `isError`, and treats `{"success": false}` in text as a success."""
    for pointer, value in _stated_failures(reply):
        if not _is_declared(reply, value):
            what = "the data says" if pointer == _DATA else "the JSON says"
            return [Fault(pointer, f"{what} that the call failed, but isError does not")]
    return ()


def _stated_failures(reply: ReplyView) -> Iterator[tuple[str, Any]]:
    """Yield the error objects in the data and in the text blocks, each with its pointer."""
    if is_failure_json(reply.data):
        yield _DATA, reply.data
    for index, _, value in reply.json_texts:
        if is_failure_json(value):
            yield f"/content/{index}/text", value
    if len(reply.json_texts) < len(reply.texts):
        for index, text in reply.texts:
            if text.startswith("```") and (value := failure_in_text(text)) is not None:
                yield f"/content/{index}/text", value


def _is_declared(reply: ReplyView, value: Any) -> bool:
    """Return whether the value is the data, which the tool's output schema describes."""
    schema = reply.context.schema
    # Before 2025-06-18, data could only be sent as text.
    data = value if reply.data is UNSET else reply.data
    if schema is None or not isinstance(data, dict) or value not in (data, data.get("result")):
        return False
    return is_declared(data, schema)


@rule(
    "AB203",
    scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, when="failure"),
    hint="say what went wrong and what to do about it",
    bad={"content": [], "isError": True},
    good=MCP_FAILURE,
)
def empty_error_message(reply: ReplyView) -> Faults:
    """A model that gets no message makes the same call again."""
    texts = reply.error_texts()
    if any(text.strip() for _, text in texts):
        error = reply.json.get("error")
        message = error.get("message") if isinstance(error, dict) else None
        if isinstance(message, str) and not message.strip():
            return [Fault("/error/message", "the error's message is empty")]
        return ()
    if any(block.get("type") != "text" for _, block in reply.blocks):
        return ()
    # In the other dialects, the AB1xx rules report a missing message.
    if reply.dialect != "mcp" and not texts:
        return ()
    return [Fault(texts[0][0] if texts else "", "the failure has no message")]


@rule(
    "AB204",
    scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, when="failure"),
    severity="warning",
    hint="name what was wrong and what would be right: \"Location 'xyz' not found. Please "
    'provide a valid city name or zip code."',
    bad=text_result("Error occurred", isError=True),
    good=MCP_FAILURE,
)
def vague_error_message(reply: ReplyView) -> Faults:
    """`Error occurred` tells neither a person nor a model what to change."""
    texts = [each for each in reply.error_texts() if each[1].strip()]
    if not texts or not all(len(text) < 80 and _VAGUE.fullmatch(text.strip()) for _, text in texts):
        return ()
    pointer, text = texts[0]
    return [Fault(pointer, f"the failure says only {quoted(text.strip(), 80)}")]


@rule(
    "AB205",
    scope=Scope(dialects=MCP, when="failure"),
    severity="warning",
    hint="leave isError out, or set it to false",
    bad=text_result("204 No Content", isError=True),
    good=text_result("Deleted issue 17.", isError=False),
)
def success_flagged_as_error(reply: ReplyView) -> Faults:
    """Models repeat a call that is flagged as an error, and its side effects happen twice."""
    if len(reply.texts) != 1 or len(reply.blocks) != 1:
        return ()
    text = reply.texts[0][1].strip()
    objects = [value for _, _, value in reply.json_texts if isinstance(value, dict)]
    is_success = any(each.get("success") is True and not each.get("error") for each in objects)
    if is_success or (len(text) < 40 and _SUCCESS.fullmatch(text)):
        return [Fault("/isError", f"isError is true, but the text is {quoted(text)}")]
    return ()


@rule(
    "AB206",
    scope=Scope(dialects=MCP, part="rpc"),
    severity="warning",
    hint="if a tool fails, answer with a result that has isError: true",
    bad=Example(
        {"error": {"code": -32603, "message": "Weather service timed out"}},
        method="tools/call",
    ),
    good=Example(
        {"error": {"code": -32602, "message": "Unknown tool: wether"}}, method="tools/call"
    ),
)
def tool_failure_as_protocol_error(reply: ReplyView) -> Faults:
    """A host hides protocol errors from the model, which then cannot do anything about them."""
    error = reply.json.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if reply.context.method != "tools/call" or code not in (-32603, -32000):
        return ()
    return [Fault("/error/code", f"a tool's failure was sent as protocol error {code}")]


@rule(
    "AB207",
    scope=Scope(dialects=MCP, when="failure", plain_replies="json"),
    severity="note",
    hint="send only the message; codes and details can go in _meta",
    bad=text_result(
        '{"success":false,"error":{"code":"NOT_FOUND","message":"no such city"}}',
        isError=True,
    ),
    good=text_result("NOT_FOUND: no such city", isError=True),
    fix=_flag_failure,
)
def error_object_in_text(reply: ReplyView) -> Faults:
    """Models understand a sentence better than a nested object, which is only noise to people."""
    return [
        Fault(f"/content/{index}/text", "the error is a JSON object, not a message")
        for index, _, value in reply.json_texts
        if _has_error_object(value)
    ]


def _has_error_object(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("error"), dict)


@rule(
    "AB208",
    scope=Scope(dialects=ENVELOPE, when="failure"),
    severity="warning",
    hint="show the error's message in the content",
    bad={
        **ENVELOPE_FAILURE,
        "content": [{"type": "text", "text": "Operation completed successfully"}],
    },
    good=ENVELOPE_FAILURE,
)
def error_not_shown(reply: ReplyView) -> Faults:
    """A person reads the content and a program reads the error; both must say the same thing."""
    error = reply.json.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    if not isinstance(message, str) or not message.strip() or not reply.texts:
        return ()
    if any(message.strip() in text for _, text in reply.texts):
        return ()
    return [Fault(f"/content/{reply.texts[0][0]}/text", "the content does not show the error")]
