"""Hostile replies, lists, streams and errors of a server, by a seeded generator.

A case's number decides everything about it. The attacked client makes the case to know what to
ask; only the server builds the messages, so that they cost the client nothing before they arrive.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tests.attack.hostile_messages import Spoiler
from tests.attack.hostile_schemas import costly_schema, odd_schema
from tests.fuzz.frames import encoded

Act = Literal[
    "call",
    "tools",
    "resources",
    "templates",
    "prompts",
    "read",
    "prompt",
    "complete",
    "schema",
]
"""What the client does; "schema" lists the tools and then calls the tool `act`."""
Sending = Literal["whole", "gzip", "chunks", "events", "ended events", "endless", "never", "slow"]
ID = b"@ID@"
"""Stands for the id of the request in a message."""
MB = 1024 * 1024


@dataclass(frozen=True)
class Case:
    """What the client asks, and how the server answers it."""

    name: str
    act: Act
    build: Callable[[], list[bytes]]
    """Builds the messages; the last is meant as the response. For "schema" these are the two
    responses."""
    sending: Sending = "whole"
    timeout: float = 10.0
    size: int = 0
    """About how many bytes the messages have, if they are large."""


Make = Callable[[random.Random], Case]


def response(result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (ID, result)


def failure(error: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (ID, error)


FINE = response(b'{"content":[{"type":"text","text":"fine"}]}')
_TEXT = {"type": "text", "text": '{"a":[1,2],"b":null}'}
_IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
_LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}
_RESOURCE = {"uri": "file:///a", "mimeType": "text/plain", "text": "a"}
_EMBEDDED = {"type": "resource", "resource": _RESOURCE}
_RESULTS: list[Any] = [
    {"content": [_TEXT, _IMAGE], "isError": False},
    {"content": [_TEXT], "structuredContent": {"result": [1, {"b": 2}]}, "_meta": {"x": 1}},
    {"content": [_LINK, _EMBEDDED], "isError": True},
    {"content": [{"type": "text", "text": "NOT_FOUND: no such thing"}], "isError": True},
    {"success": False, "error": {"code": "E", "message": "m", "details": {}}, "content": [_TEXT]},
    {"resultType": "complete", "content": [], "structuredContent": None},
]
_TOOL = {
    "name": "act",
    "description": "acts",
    "inputSchema": {"type": "object", "properties": {"x": {"type": "integer"}}},
    "outputSchema": {"type": "object", "properties": {"result": {"type": "array"}}},
    "annotations": {"readOnlyHint": True},
}
_LISTS: dict[Act, Any] = {
    "tools": {"tools": [_TOOL, {**_TOOL, "name": "other"}]},
    "resources": {"resources": [{"uri": "file:///a", "name": "a", "size": 3}]},
    "templates": {"resourceTemplates": [{"uriTemplate": "file:///{a}", "name": "a"}]},
    "prompts": {"prompts": [{"name": "p", "arguments": [{"name": "x", "required": True}]}]},
    "read": {"contents": [_RESOURCE, {"uri": "file:///b", "blob": "aGVsbG8="}]},
    "prompt": {"messages": [{"role": "user", "content": _TEXT}], "description": "d"},
    "complete": {"completion": {"values": ["a", "b"], "total": 2}},
}
_ERROR = {"code": -32602, "message": "no such tool", "data": {"uri": "file:///a", "x": [1]}}
_SENDINGS: tuple[Sending, ...] = ("whole", "whole", "gzip", "chunks", "events")


def _malformed(chance: random.Random, value: Any) -> bytes:
    text = encoded(Spoiler(chance).malformed(json.loads(json.dumps(value))))
    return text.encode("utf-8", "replace")


def odd_result(chance: random.Random) -> Case:
    found = _malformed(chance, chance.choice(_RESULTS))
    return Case("an odd result", "call", lambda: [response(found)], chance.choice(_SENDINGS))


def odd_list(chance: random.Random) -> Case:
    act = chance.choice(list(_LISTS))
    found = _malformed(chance, _LISTS[act])
    return Case(f"an odd answer to {act}", act, lambda: [response(found)], chance.choice(_SENDINGS))


def odd_cursor(chance: random.Random) -> Case:
    junk = _malformed(chance, {"cursor": chance.choice(["a", 0, False, "", {"a": 1}])})
    found = b'{"tools":[{"name":"a"}],"nextCursor":%b}' % junk
    return Case("an odd cursor", "tools", lambda: [response(found)])


def odd_error(chance: random.Random) -> Case:
    found = _malformed(chance, _ERROR)
    act: Act = chance.choice(["call", "call", "tools", "read", "prompt"])
    return Case("an odd error", act, lambda: [failure(found)], chance.choice(_SENDINGS))


def corrupted(chance: random.Random) -> Case:
    found = Spoiler(chance).corrupted(response(json.dumps(chance.choice(_RESULTS)).encode()))
    return Case("a corrupted message", "call", lambda: [found], chance.choice(_SENDINGS))


def crowd(chance: random.Random) -> Case:
    """Other messages before the response: repeated ids, other ids, batches, questions."""
    others = [
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"same","method":"roots/list"}',
        b'{"jsonrpc":"2.0","id":99999,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"result":{}}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}',
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":[],"data":{}}}',
        b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
        b"[" + b",".join([b'{"jsonrpc":"2.0","method":"x"}'] * 20) + b"]",
        b"a line of a log",
        b"[]",
        Spoiler(chance).corrupted(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}'),
    ]
    found = [chance.choice(others) for _ in range(chance.randint(1, 30))]
    return Case("a crowd of messages", "call", lambda: [*found, FINE], "events")


def near_limits(chance: random.Random) -> Case:
    """Sizes just below and above those at which threads and refusals begin."""
    count = chance.choice([499, 500, 501, 2_000])
    block = chance.choice([b"null", b"{}", b"0", b'{"type":"text","text":"{}"}', b'{"type":"x"}'])
    pad = 64 * 1024 - chance.randint(-200, 200)

    def build() -> list[bytes]:
        if chance.random() < 0.5:
            return [response(b'{"content":[%b]}' % b",".join([block] * count))]
        text = b'{"content":[{"type":"text","text":"%b"}]}' % (b"e" * pad)
        return [response(text)]

    return Case("a size near a limit", "call", build, chance.choice(_SENDINGS))


def _tool_with(schema: bytes) -> bytes:
    tool = b'{"name":"act","inputSchema":{"type":"object"},"outputSchema":%b}' % schema
    return response(b'{"tools":[%b]}' % tool)


def _reply_with(data: bytes) -> bytes:
    return response(b'{"content":[],"structuredContent":%b}' % data)


def odd_output_schema(chance: random.Random) -> Case:
    name, schema, data = odd_schema(chance)
    return Case(name, "schema", lambda: [_tool_with(schema), _reply_with(data)])


def costly_output_schema(chance: random.Random) -> Case:
    name, make = costly_schema(chance)

    def build() -> list[bytes]:
        schema, data = make()
        return [_tool_with(json.dumps(schema).encode()), _reply_with(json.dumps(data).encode())]

    return Case(f"a schema with {name}", "schema", build)


SMALL: list[Make] = [
    *[odd_result] * 4,
    *[odd_output_schema] * 2,
    *[odd_list] * 3,
    *[odd_cursor, odd_error, corrupted, crowd, near_limits],
]
"""Generators of cases that take about a millisecond each."""

# By its name: the head, a unit that is repeated, the end, and how many marks of JSON a unit has.
_UNITS: dict[str, tuple[bytes, bytes, bytes, int]] = {
    "lists": (b"[", b"[],", b"0]", 5),
    "objects": (b"[", b"{},", b"0]", 5),
    "rows": (b"[", b'{"name":"abc","value":1.5,"ok":true},', b"0]", 10),
    "points": (b"[", b"[1.25,2.5],", b"0]", 6),
    "numbers": (b"[", b"1.5,", b"0]", 1),
    "texts": (b"[", '"é☃",'.encode(), b"0]", 1),
    "texts with commas": (b"[", b'",,",', b"0]", 1),
    "nested lists": (b"[", b"[" * 180 + b"]" * 180 + b",", b"0]", 721),
    "nested objects": (b"[", b'{"a":' * 180 + b"1" + b"}" * 180 + b",", b"0]", 901),
    "NaN": (b"[NaN,", b"[],", b"0]", 5),
    "escapes": (b'["', b"\\u00e9", b'"]', 0),
    "wide characters": ('["☃'.encode(), b"a", '\U0001f600"]'.encode(), 0),
    "a long text": (b'["', b"a", b'"]', 0),
}
_MARKS = 1_000_000


def _large_value(chance: random.Random) -> tuple[str, int, Callable[[], bytes]]:
    name = chance.choice([*_UNITS, "names"])
    # A little below the limits, a little above them, or as much as a message may have.
    share = chance.choice([0.3, 0.9, 0.98, 1.02, 1e9])
    if name == "names":
        count = int(min(share, 2) * _MARKS / 2)
        return name, 12 * count, lambda: _names(count)
    head, unit, end, marks = _UNITS[name]
    count = int(share * _MARKS / marks) if marks else 10**9
    most = 31 if name in ("wide characters", "escapes", "texts") else 62
    count = min(count, chance.choice([most, most // 4, 1]) * MB // len(unit))
    return name, count * len(unit), lambda: head + unit * count + end


def _names(count: int) -> bytes:
    return b"{" + b",".join(b'"k%d":1' % number for number in range(count)) + b"}"


_PLACES: dict[str, tuple[Act, bytes, bytes]] = {
    "data": ("call", b'{"content":[],"structuredContent":{"a":', b"}}"),
    "blocks": ("call", b'{"content":', b"}"),
    "text": ("call", b'{"content":[{"type":"text","text":"', b'"}]}'),
    "meta": ("call", b'{"content":[],"_meta":{"a":', b"}}"),
    "tools": ("tools", b'{"tools":', b"}"),
    "schema": ("tools", b'{"tools":[{"name":"a","inputSchema":{"a":', b"}}]}"),
    "contents": ("read", b'{"contents":', b"}"),
    "messages": ("prompt", b'{"messages":', b"}"),
    "values": ("complete", b'{"completion":{"values":', b"}}"),
}


def large(chance: random.Random) -> Case:
    what, size, build = _large_value(chance)
    place = chance.choice([*_PLACES, "error"])
    act, head, end = _PLACES.get(place, ("call", b"", b""))
    sendings: list[Sending] = ["whole", "events", "gzip"]

    def messages() -> list[bytes]:
        value = build()
        if place == "error":
            return [failure(b'{"code":1,"message":"x","data":%b}' % value)]
        if place == "text":
            value = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        return [response(head + value + end)]

    return Case(f"{what} as {place}", act, messages, chance.choice(sendings), 10.0, size)


def endless(chance: random.Random) -> Case:
    """Answers without an end, each with a short time-out."""
    sending: Sending = chance.choice(["endless", "never", "slow", "ended events"])
    unit = chance.choice(
        [
            b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
            b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}',
            b'{"jsonrpc":"2.0","method":"x","params":{"a":[%b0]}}' % (b"[]," * 100_000),
            b"not JSON",
            b"  ",
        ]
    )
    act: Act = chance.choice(["call", "call", "tools", "read"])
    return Case(f"{sending}: {unit[:40]!r}", act, lambda: [unit], sending, 1.0)


def endless_pages(chance: random.Random) -> Case:
    description = b"x" * chance.choice([10, 100_000, 4_000_000])

    def build() -> list[bytes]:
        cursor = random.randbytes(8).hex().encode()
        page = b'{"tools":[{"name":"%b","description":"%b"}],"nextCursor":"%b"}'
        return [response(page % (cursor, description, cursor))]

    return Case("pages without an end", "tools", build, "whole", 10.0)


LARGE: list[Make] = [*[large] * 9, *[costly_output_schema] * 3, endless_pages]
"""Generators of cases near the limits, which take up to some seconds each."""
ENDLESS: list[Make] = [endless]
"""Generators of cases that last until their time-out."""


def case_of(kind: str, number: int, seed: int) -> Case:
    chance = random.Random(f"{seed} {kind} {number}")
    return chance.choice({"small": SMALL, "large": LARGE, "endless": ENDLESS}[kind])(chance)
