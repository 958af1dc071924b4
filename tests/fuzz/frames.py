"""Good messages of every method in every version, and ways to spoil them."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from tests.fuzz.pipes import Json, notification, request

STATEFUL = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
VERSIONS = (*STATEFUL, STATELESS)
PREFIX = "io.modelcontextprotocol/"
ID = "the id"

_NOTE = {"uri": "note://one"}
_COMPLETE = {
    "ref": {"type": "ref/prompt", "name": "greet"},
    "argument": {"name": "name", "value": "a"},
    "context": {"arguments": {"tone": "kind"}},
}
_OPENING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": True}},
    "clientInfo": {"name": "fuzz", "version": "1", "title": "Fuzz"},
}
_BOTH: dict[str, Json] = {
    "tools/list": {"cursor": ""},
    "tools/call": {"name": "add_in_thread", "arguments": {"x": 1, "y": 2}},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "note://shelf/7"},
    "prompts/list": {"cursor": ""},
    "prompts/get": {"name": "greet", "arguments": {"name": "ada", "tone": "curt"}},
    "completion/complete": _COMPLETE,
}
_STATEFUL_ONLY: dict[str, Json] = {
    "initialize": _OPENING,
    "ping": {},
    "logging/setLevel": {"level": "debug"},
    "resources/subscribe": _NOTE,
    "resources/unsubscribe": _NOTE,
}
_STATELESS_ONLY: dict[str, Json] = {
    "server/discover": {},
    "subscriptions/listen": {
        "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["note://one"]}
    },
}
_NOT_ANSWERED: list[Json] = [
    notification("notifications/initialized"),
    notification("notifications/cancelled", requestId=ID, reason="no more"),
    notification("notifications/progress", progressToken=1, progress=0.5),
    notification("notifications/roots/list_changed"),
    {"jsonrpc": "2.0", "id": "ask-1", "result": {"action": "accept", "content": {"value": "x"}}},
    {"jsonrpc": "2.0", "id": "ask-1", "error": {"code": -1, "message": "no", "data": {}}},
]


def meta(version: str) -> dict[str, Json]:
    if version != STATELESS:
        return {"progressToken": "token"}
    return {
        "progressToken": "token",
        PREFIX + "protocolVersion": version,
        PREFIX + "clientCapabilities": {"elicitation": {}},
        PREFIX + "clientInfo": {"name": "fuzz", "version": "1"},
        PREFIX + "logLevel": "debug",
    }


def good_frames(version: str) -> list[Json]:
    methods = _BOTH | (_STATELESS_ONLY if version == STATELESS else _STATEFUL_ONLY)
    requests = [
        request(ID, method, {**params, "_meta": meta(version)})
        for method, params in methods.items()
    ]
    if version == STATELESS:
        retry = {"name": "ask_name", "inputResponses": {"1": {"action": "accept"}}}
        more = {**retry, "requestState": "forged", "_meta": meta(version)}
        requests.append(request(ID, "tools/call", more))
    return copy.deepcopy(requests + _NOT_ANSWERED)


@dataclass(frozen=True)
class Raw:
    """A text that stands in the message as it is."""

    text: str


_ODD_TEXTS = ["", "\0", "☃\U0001f600", "a" * 2000, "__class__", "../../etc/passwd", "{x}", "%s%n"]
_ODD_RAWS = [
    "1e999",
    "-0",
    "1.0",
    "9" * 400,
    "9" * 5000,
    '"\\ud800"',
    '"\\ud800 and more"',
    '"\\udc00"',
    '"\\u0000"',
    "NaN",
    "Infinity",
    "01",
    "[" * 150 + "]" * 150,
    "[" * 300 + "]" * 300,
    '{"a":1,"a":2}',
]
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2**31, 2**53 + 1, 2**63, 2**64, 10**30]),
    st.sampled_from([0.5, -1.5, 1e308, 1e-320]),
    st.sampled_from(_ODD_TEXTS),
    st.text(max_size=8),
    st.sampled_from(_ODD_RAWS).map(Raw),
)
JUNK: st.SearchStrategy[Json] = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)


def encoded(value: Json) -> str:
    """As JSON, but for what is to stand there raw."""
    match value:
        case Raw():
            return value.text
        case dict():
            pairs = (f"{json.dumps(name)}:{encoded(each)}" for name, each in value.items())
            return "{" + ",".join(pairs) + "}"
        case list():
            return "[" + ",".join(encoded(each) for each in value) + "]"
        case _:
            return json.dumps(value)


def places(value: Json, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all that is in a message, but not to the message itself."""
    found: list[tuple[Any, ...]] = []
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in inside:
        found += [(*way, key), *places(each, (*way, key))]
    return found


@st.composite
def spoiled_frames(draw: st.DrawFn, version: str) -> Json:
    """A good message with something in it replaced, taken out, renamed or added."""
    frame = draw(st.sampled_from(good_frames(version)))
    for _ in range(draw(st.integers(1, 3))):
        ways = places(frame)
        if not ways:
            break
        *way, last = draw(st.sampled_from(ways))
        holder = frame
        for step in way:
            holder = holder[step]
        what = draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename", "add"]))
        if what == "replace":
            holder[last] = draw(JUNK)
        elif what == "remove" or not isinstance(holder, dict):
            holder.pop(last)
        elif what == "rename":
            holder[draw(st.text(max_size=6))] = holder.pop(last)
        else:
            holder[draw(st.text(max_size=6))] = draw(JUNK)
    return frame


@st.composite
def broken_texts(draw: st.DrawFn, version: str) -> bytes:
    """The bytes of a message, with some lost, changed or put in."""
    text = bytearray(encoded(draw(st.sampled_from(good_frames(version)))).encode())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        match draw(st.sampled_from(["cut", "drop", "flip", "insert"])):
            case "cut":
                del text[at:]
            case "drop":
                del text[at : at + draw(st.integers(1, 8))]
            case "flip" if at < len(text):
                text[at] ^= draw(st.integers(1, 255))
            case _:
                text[at:at] = draw(st.binary(min_size=1, max_size=6))
    return bytes(text)


def read_as_python_does(text: bytes) -> Json:
    """The message, by another reader than the one that is tested; None if it is no JSON."""
    try:
        decoded = text.decode("utf-8", "strict")
        return json.loads(decoded, parse_constant=_refuse, parse_int=_number)
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> Json:
    raise ValueError(name)


def _number(digits: str) -> Json:
    # Python refuses to read thousands of digits; no id has so many.
    return int(digits) if len(digits) < 4000 else float("inf")


def readable_id(message: Json) -> Json:
    """The id that an answer must carry; None if there is none."""
    id = message.get("id") if isinstance(message, dict) else None
    is_one = isinstance(id, str | int) and not isinstance(id, bool)
    return id if is_one else None
