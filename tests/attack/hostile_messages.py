"""Hostile messages: generated from valid ones by a seeded generator, and a recorded list."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass

import msgspec
from tests.fuzz.frames import (
    ID,
    PREFIX,
    VERSIONS,
    RawJson,
    encoded,
    meta,
    parse_with_json_module,
    paths_in,
    readable_id,
    valid_frames,
)
from tests.fuzz.stdio_client import Json, request

_SKIPPED = {"initialize", "subscriptions/listen", "notifications/cancelled"}
"""Methods that change the session, open a stream, or cancel a request whose answer is due."""
_MASKED_TOOLS = ("exit_async", "raise_interrupt", "raise_cancelled")
"""Tools that raise a text with a secret."""
_JUNK: list[Json] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    10**30,
    0.5,
    -1.5,
    1e308,
    1e-320,
    "",
    "\0",
    "☃\U0001f600",
    "a" * 2000,
    "__class__",
    "../../etc/passwd",
    "{x}",
    "%s%n",
    [],
    {},
    [[]],
    {"": {}},
    [None] * 40,
    {"$ref": "#"},
    {"jsonrpc": "1.0"},
    *(
        RawJson(text)
        for text in (
            "1e999",
            "-0",
            "1.0",
            "9" * 400,
            "9" * 5000,
            '"\\ud800"',
            '"\\udc00 x"',
            '"\\u0000"',
            "NaN",
            "Infinity",
            "01",
            "[" * 150 + "]" * 150,
            "[" * 300 + "]" * 300,
            '{"a":1,"a":2}',
            "'a'",
        )
    ),
]


@dataclass(frozen=True)
class Message:
    """The bytes of a message, and what must come back."""

    text: bytes
    id: Json = None
    """The id of the answer that is due; None if the message has no valid id."""
    method: str | None = None
    version: str | None = None
    """The version that the message names."""
    is_readable: bool = True
    """False if the server may refuse it as JSON, so that the error may lack the id."""

    @property
    def has_own_answer(self) -> bool:
        """Whether an answer with the id of this message is due, and no other message has it."""
        is_own = isinstance(self.id, str) and self.id.startswith("case-")
        return is_own and self.is_readable and self.method is not None


class Spoiler:
    """Makes valid messages malformed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def malformed(self, frame: Json) -> Json:
        for _ in range(self._chance.randint(1, 3)):
            paths = paths_in(frame)
            if not paths:
                break
            *path, last = self._chance.choice(paths)
            parent = frame
            for step in path:
                parent = parent[step]
            action = self._chance.choice(["replace", "replace", "remove", "rename", "add"])
            if action == "replace":
                parent[last] = self._junk()
            elif action == "remove" or not isinstance(parent, dict):
                parent.pop(last)
            elif action == "rename":
                parent[str(last) + self._chance.choice(["s", "\0", " "])] = parent.pop(last)
            else:
                parent[self._chance.choice(["", "x", "_meta"])] = self._junk()
        return frame

    def _junk(self) -> Json:
        # A later round may change the value, so it must not be the one in the table.
        return copy.deepcopy(self._chance.choice(_JUNK))

    def corrupted(self, text: bytes) -> bytes:
        changed = bytearray(text)
        for _ in range(self._chance.randint(1, 4)):
            at = self._chance.randint(0, len(changed))
            action = self._chance.randrange(4)
            if action == 0:
                del changed[at:]
            elif action == 1:
                del changed[at : at + self._chance.randint(1, 8)]
            elif action == 2 and at < len(changed):
                changed[at] ^= self._chance.randint(1, 255)
            else:
                changed[at:at] = self._chance.randbytes(self._chance.randint(1, 6))
        return bytes(changed).replace(b"\n", b" ").replace(b"\r", b" ")


class Generator:
    """Makes messages of one version. The same seed makes the same messages."""

    def __init__(self, version: str, seed: int) -> None:
        self._random = random.Random(f"{seed} {version}")
        self._spoiler = Spoiler(self._random)
        self._number = 0
        frames = [frame for frame in valid_frames(version) if frame.get("method") not in _SKIPPED]
        frames += [
            request(ID, "tools/call", {"name": name, "arguments": {}, "_meta": meta(version)})
            for name in _MASKED_TOOLS
        ]
        self._texts = [json.dumps(frame) for frame in frames]

    def message(self) -> Message:
        self._number += 1
        text = self._random.choice(self._texts).replace(f'"{ID}"', f'"case-{self._number}"', 1)
        action = self._random.random()
        if action < 0.1:
            return described(text.encode())
        if action < 0.7:
            return described(
                encoded(self._spoiler.malformed(json.loads(text))).encode("utf-8", "replace")
            )
        return described(self._spoiler.corrupted(text.encode()))

    def arguments(self) -> bytes:
        """A body for a tool with the arguments x and y."""
        chance = self._random
        value: Json = {"x": chance.choice([1, *_JUNK]), "y": chance.choice([2, *_JUNK])}
        if chance.random() < 0.2:
            value[chance.choice(["z", "X", "__proto__", "x\0"])] = chance.choice(_JUNK)
        if chance.random() < 0.1:
            value = chance.choice(_JUNK)
        text = encoded(value).encode("utf-8", "replace")
        return self._spoiler.corrupted(text) if chance.random() < 0.2 else text

    def spoiled(self, token: str) -> str:
        """The token with one character changed, removed or added; never the token itself."""
        at = self._random.randrange(len(token))
        other = self._random.choice([char for char in "aZ0-_.=" if char != token[at]])
        changed = self._random.choice([token[:at], token[:at] + other + token[at + 1 :]])
        return changed or "x"


def described(text: bytes) -> Message:
    """The message with what another JSON parser reads in it."""
    message = parse_with_json_module(text)
    is_readable = message is not None and _is_strict(text)
    if not isinstance(message, dict):
        return Message(text, is_readable=is_readable)
    method = message.get("method")
    params = message.get("params")
    own_meta = params.get("_meta") if isinstance(params, dict) else None
    version = own_meta.get(PREFIX + "protocolVersion") if isinstance(own_meta, dict) else None
    return Message(
        text,
        readable_id(message),
        method if isinstance(method, str) else None,
        version if version in VERSIONS else None,
        is_readable,
    )


def _is_strict(text: bytes) -> bool:
    """False for JSON that Python reads and others refuse, such as surrogates and deep nesting."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return text.count(b"[") + text.count(b"{") < 150


def large_messages(size: int) -> dict[str, bytes]:
    """Calls of `add` with about *size* bytes of arguments, by what is wrong with them."""

    def call(arguments: str) -> bytes:
        head = '{"jsonrpc":"2.0","id":"large","method":"tools/call","params":'
        return f'{head}{{"name":"add","arguments":{arguments}}}}}'.encode()

    third = size // 3
    return {
        "brackets that are not closed": b"[" * size,
        "nested arrays": call("[" * (size // 2) + "]" * (size // 2)),
        "199 nested arrays, many times": call(
            '{"x":[%s1]}' % (("[" * 199 + "]" * 199 + ",") * (size // 400))
        ),
        "unknown argument names": call(
            "{" + ",".join(f'"n{number}":0' for number in range(size // 12)) + "}"
        ),
        "an array of empty texts": call('{"x":[%s""]}' % ('"",' * third)),
        "an array of empty objects": call('{"x":[%s{}]}' % ("{}," * third)),
        "a long number": call('{"x":%s}' % ("9" * size)),
        "a long text": call('{"x":"%s"}' % ("a" * size)),
        "many escapes": call('{"x":"%s"}' % ("\\u00e9" * (size // 6))),
        "a long key": call('{"%s":1}' % ("k" * size)),
        "one key many times": call("{%s}" % ('"x":1,' * (size // 6) + '"y":2')),
        "a text that is not closed": call('{"x":"%s' % ("a" * size)),
        "bytes that are not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"' + b"\xff" * size + b'"}',
    }


RECORDED = [
    b"",
    b" ",
    b"\t",
    b"\0",
    b"null",
    b"true",
    b"0",
    b'""',
    b"[]",
    b"{}",
    b"[{}]",
    b"[[]]",
    b"[null]",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"nul",
    b"NaN",
    b"-",
    b"1e",
    b"\xff\xfe{\0}\0",
    b"\xef\xbb\xbf{}",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":[],"method":"ping"}',
    b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}',
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":null}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}garbage',
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"error":{}}',
    b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"\\u0000"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress"}',
    b'{"jsonrpc":"2.0","method":"nothing"}',
    b"Content-Length: 20\r",
    b"GET / HTTP/1.1",
    b"'single'",
    b"{'a':1}",
    b"// a comment",
    b"[1,]",
    b"[" * 1000,
    b"[" * 1000 + b"]" * 1000,
    b'{"a":' * 500 + b"1" + b"}" * 500,
    b"\x1b[31mred",
    b"[" + b",".join([b'{"jsonrpc":"2.0","method":"notifications/initialized"}'] * 50) + b"]",
]
"""Lines that broke some server, or that look as if they could."""
