"""AB2xx: whether a failure is said as one, and says something."""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET

from ..detectors.failure_json import tells_of_failure, unfenced
from ..detectors.failure_message import retold
from ..detectors.failure_text import reads_as_error
from ..examples import ENVELOPE_FAILURE, MCP_FAILURE, said
from ..finding import ENVELOPE, MCP, PROBLEM, REST, About, Example, Fault, Faults, Scope, rule
from ..json_values import quoted
from ..reply_view import Subject, parse

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
_FINE = re.compile(
    r"(?:http\s*)?20[0-6](?:\s+(?:ok|created|accepted|no content|reset content))?[.!]?"
    r"|(?:ok|success|done|no content|completed)[.!]?|operation completed successfully[.!]?",
    re.IGNORECASE,
)
_SAY_FAILURE = "set success: false, and add error with a code and a message"


@rule(
    "AB201",
    About(
        scope=Scope(dialects=MCP + ENVELOPE, when="success"),
        severity="warning",
        hint="set isError: true, so that the model and its host know that the call failed",
        bad=said("Error: 401 Unauthorized"),
        good=said("Your token was refused (401). Log in again.", isError=True),
    ),
)
def error_hidden_in_text(it: Subject) -> Faults:
    """A failure that is not flagged counts as a success: hosts do not retry and models go on."""
    if len(it.blocks) != 1 or not it.texts:
        return ()
    index, text = it.texts[0]
    if it.data is not UNSET and _is_its_own(it.data, text):
        return ()
    text = text.strip()
    if not reads_as_error(text):
        return ()
    at, line = f"/content/{index}/text", text.partition("\n")[0]
    if it.dialect == "mcp":
        return [Fault(at, f"a failure without isError: {quoted(line, 80)}")]
    return [Fault(at, f"a failure with success: true: {quoted(line, 80)}", _SAY_FAILURE)]


def _is_its_own(data: Any, text: str) -> bool:
    """Whether data speak for a success; the text once more, as for any `-> str`, does not."""
    if isinstance(data, dict):
        return bool(data) and (len(data) > 1 or data.get("result") != text)
    return bool(data) and data != text


def _say_it(found: dict[str, Any], _: str) -> None:
    """Flag the failure, and say in words what was said in JSON."""
    found["isError"] = True
    content = found.get("content")
    for block in content if isinstance(content, list) else ():
        text = block.get("text") if isinstance(block, dict) else None
        value = parse(unfenced(text)) if isinstance(text, str) else None
        if tells_of_failure(value) or _holds_error(value):
            block["text"] = retold(value) or text
            # Clients refuse an error whose data do not keep to the output schema.
            if found.get("structuredContent") == value and block["text"] != text:
                del found["structuredContent"]


@rule(
    "AB202",
    About(
        scope=Scope(dialects=MCP, when="success"),
        hint="set isError: true and say the message as text; never encode errors in JSON strings",
        bad=said('{"success":false,"error":{"code":"NOT_FOUND","message":"no such city"}}'),
        good=said("no such city: Olso. Did you mean Oslo?", isError=True),
        fix=_say_it,
    ),
)
def failure_as_json_text(it: Subject) -> Faults:
    """A host looks at `isError` alone; `{"success": false}` in a string it takes for a success."""
    if tells_of_failure(it.data):
        return [Fault("/structuredContent", "the data say that the call failed, isError does not")]
    message = "the JSON says that the call failed, isError does not"
    for index, _, value in it.parsed:
        if tells_of_failure(value):
            return [Fault(f"/content/{index}/text", message)]
    if len(it.parsed) < len(it.texts):
        for index, text in it.texts:
            if text.startswith("```") and tells_of_failure(parse(unfenced(text))):
                return [Fault(f"/content/{index}/text", message)]
    return ()


@rule(
    "AB203",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, when="failure"),
        hint="say what went wrong and what to do about it",
        bad={"content": [], "isError": True},
        good=MCP_FAILURE,
    ),
)
def empty_error_message(it: Subject) -> Faults:
    """A model that is told nothing tries the same again."""
    texts = it.error_texts()
    if any(text.strip() for _, text in texts):
        return _empty_message(it)
    if any(block.get("type") != "text" for _, block in it.blocks):
        return ()
    # Where there is no message at all, rules about shape say so.
    if it.dialect != "mcp" and not texts:
        return ()
    return [Fault(texts[0][0] if texts else "", "the failure says nothing")]


def _empty_message(it: Subject) -> Faults:
    error = it.found.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    if isinstance(message, str) and not message.strip():
        return [Fault("/error/message", "the error's message is empty")]
    return ()


@rule(
    "AB204",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, when="failure"),
        severity="warning",
        hint="name what was wrong and what would be right: \"Location 'xyz' not found. Please "
        'provide a valid city name or zip code."',
        bad=said("Error occurred", isError=True),
        good=MCP_FAILURE,
    ),
)
def vague_error_message(it: Subject) -> Faults:
    """From `Error occurred` neither a person nor a model can tell what to change."""
    said = [each for each in it.error_texts() if each[1].strip()]
    if not said or not all(len(text) < 80 and _VAGUE.fullmatch(text.strip()) for _, text in said):
        return ()
    pointer, text = said[0]
    return [Fault(pointer, f"the failure says no more than {text.strip()!r}")]


@rule(
    "AB205",
    About(
        scope=Scope(dialects=MCP, when="failure"),
        severity="warning",
        hint="leave isError out, or set it to false",
        bad=said("204 No Content", isError=True),
        good=said("Deleted issue 17.", isError=False),
    ),
)
def success_flagged_as_error(it: Subject) -> Faults:
    """A success that is flagged as an error is done again, and what it did is done twice."""
    if len(it.texts) != 1 or len(it.blocks) != 1:
        return ()
    text = it.texts[0][1].strip()
    told = [value for _, _, value in it.parsed if isinstance(value, dict)]
    # {"success": true} beside nothing that went wrong.
    fine = any(each.get("success") is True and not each.get("error") for each in told)
    if fine or (len(text) < 40 and _FINE.fullmatch(text)):
        return [Fault("/isError", f"isError is true, and the text is {quoted(text)}")]
    return ()


@rule(
    "AB206",
    About(
        scope=Scope(dialects=MCP, part="rpc"),
        severity="warning",
        hint="answer a tool that fails with a result that has isError: true",
        bad=Example(
            {"error": {"code": -32603, "message": "Weather service timed out"}},
            method="tools/call",
        ),
        good=Example(
            {"error": {"code": -32602, "message": "Unknown tool: wether"}}, method="tools/call"
        ),
    ),
)
def tool_failure_as_protocol_error(it: Subject) -> Faults:
    """A host keeps protocol errors from the model, which then cannot do anything about them."""
    error = it.found.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if it.given.method != "tools/call" or code not in (-32603, -32000):
        return ()
    return [Fault("/error/code", f"a tool's failure is said as the protocol error {code}")]


@rule(
    "AB207",
    About(
        scope=Scope(dialects=MCP, when="failure"),
        severity="note",
        hint="say the message alone; codes and details can go in _meta",
        bad=said(
            '{"success":false,"error":{"code":"NOT_FOUND","message":"no such city"}}',
            isError=True,
        ),
        good=said("NOT_FOUND: no such city", isError=True),
        fix=_say_it,
    ),
)
def error_object_in_text(it: Subject) -> Faults:
    """A model reads a sentence better than an object in an object, and a person sees only noise."""
    return [
        Fault(f"/content/{index}/text", "the error is an object in JSON, not a message")
        for index, _, value in it.parsed
        if _holds_error(value)
    ]


def _holds_error(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("error"), dict)


@rule(
    "AB208",
    About(
        scope=Scope(dialects=ENVELOPE, when="failure"),
        severity="warning",
        hint="show the error's message in the content",
        bad={
            **ENVELOPE_FAILURE,
            "content": [{"type": "text", "text": "Operation completed successfully"}],
        },
        good=ENVELOPE_FAILURE,
    ),
)
def error_not_shown(it: Subject) -> Faults:
    """A person reads the content and a program the error; both have to learn the same."""
    error = it.found.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    if not isinstance(message, str) or not message.strip() or not it.texts:
        return ()
    if any(message.strip() in text for _, text in it.texts):
        return ()
    return [Fault(f"/content/{it.texts[0][0]}/text", "the content does not show the error")]
