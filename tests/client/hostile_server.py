"""A stdio server that misbehaves as the arguments of a call say: {"how": "..."}.

It is run with `python -I -S`, and appends a line to the file in argv[1] for each call.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

FINE = {"resultType": "complete", "content": [{"type": "text", "text": "fine"}]}
ESCAPES = "red\x1b[31m\x07\x9b2J\u202eend"
ESCAPED = [{"type": "text", "text": ESCAPES}]


def write(frame: bytes) -> None:
    sys.stdout.buffer.write(frame + b"\n")
    sys.stdout.buffer.flush()


def answer(id: Any, result: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode())


def listed(how: str, cursor: str | None) -> dict[str, Any]:
    tool = {"name": "act", "inputSchema": {"type": "object"}}
    page: dict[str, Any] = {"resultType": "complete", "tools": [tool]}
    if how == "cycle":
        page["nextCursor"] = "b" if cursor == "a" else "a"
    elif how == "endless":
        number = int(cursor or 0)
        page["tools"] = [{**tool, "name": f"act{number}"}]
        page["nextCursor"] = str(number + 1)
    elif how == "crowd":
        page["tools"] = [{**tool, "name": f"act{number}"} for number in range(10_010)]
    elif how == "escapes":
        page["tools"] = [tool, {**tool, "name": f"n{ESCAPES}", "description": f"d{ESCAPES}"}]
    return page


FRAMES = {
    "deep": b'{"id":%d,"result":{"content":[],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "cut": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[',
    "no UTF-8": b'{"id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}',
    "null": b'{"jsonrpc":"2.0","id":%d,"result":null}',
    "error text": b'{"jsonrpc":"2.0","id":%d,"error":"boom"}',
    "neither": b'{"jsonrpc":"2.0","id":%d}',
    "half a character": b'{"id":%d,"result":{"content":[{"type":"text","text":"ab\\ud83d"}]}}',
    "NaN": b'{"id":%d,"result":{"content":[],"structuredContent":{"n":NaN}}}',
    "id at the end": b'{"result":{"content":tru},"id":%d}',
    "code alone": b'{"error":{"code":"E1"},"id":%d}',
    "code text": b'{"id":%d,"error":{"code":"QUOTA","message":"over quota","data":7}}',
    "code as text": b'{"jsonrpc":"2.0","id":%d,"error":{"code":"-32602","message":"no city"}}',
    "message number": b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":42}}',
    "error list": b'{"jsonrpc":"2.0","id":%d,"error":["boom"]}',
}


def answer_others(id: int) -> None:
    answer(id + 1000, FINE)
    answer(str(id), FINE)
    answer(None, {"content": []})
    write(b"a line of a log")
    answer(id, FINE)


def answer_twice(id: int) -> None:
    answer(id, FINE)
    answer(id, {"resultType": "complete", "content": []})


def write_without_end(id: int) -> None:
    while True:
        sys.stdout.buffer.write(b"x" * 1_000_000)


def notify_without_end(id: int) -> None:
    while True:
        write(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}')


def ask_without_end(id: int) -> None:
    while True:
        write(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % time.monotonic_ns())


def write_errors(id: int) -> None:
    for _ in range(100):
        sys.stderr.write("e" * 65_536)
    sys.stderr.flush()
    answer(id, FINE)


def close_and_hang(descriptor: int) -> None:
    os.close(descriptor)
    time.sleep(60)


def die(id: int) -> None:
    sys.stderr.write("out of memory\n")
    sys.stderr.flush()
    os._exit(9)


ACTS: dict[str, Callable[[int], None]] = {
    "other ids": answer_others,
    "twice": answer_twice,
    "too large": write_without_end,
    "notifications": notify_without_end,
    "requests": ask_without_end,
    "stderr": write_errors,
    "close stdout": lambda _: close_and_hang(1),
    "close stdin": lambda _: close_and_hang(0),
    "hang": lambda _: time.sleep(60),
    "die": die,
    "escapes": lambda id: answer(id, {**FINE, "content": ESCAPED}),
    "failing escapes": lambda id: answer(id, {**FINE, "content": ESCAPED, "isError": True}),
}


def misbehave(how: str, id: int) -> None:
    if how in FRAMES:
        write(FRAMES[how] % id)
    elif how in ACTS:
        ACTS[how](id)
    else:
        answer(id, FINE)


def main() -> None:
    effects, how_to_list = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        method, params = asked.get("method"), asked.get("params") or {}
        if "id" not in asked:
            continue
        if method == "server/discover":
            facts = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            answer(asked["id"], {"resultType": "complete", **facts})
        elif method == "tools/list":
            answer(asked["id"], listed(how_to_list, params.get("cursor")))
        else:
            with open(effects, "a") as file:
                file.write("ran\n")
            misbehave(params.get("arguments", {}).get("how", ""), asked["id"])


if __name__ == "__main__":
    main()
