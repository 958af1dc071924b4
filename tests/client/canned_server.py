"""A stdio server of 2025-11-25 that answers each method as its argument says: {"method": answer}.

It is run with `python -I -S`. An answer with the member `error` is an error. Without an answer
for a method, the process ends. A `line` is written before each answer to a call.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

OPENED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "resources": {}},
    "serverInfo": {"name": "canned", "version": "1"},
}


def command(tools: list[dict[str, Any]] | None = None, **answers: Any) -> list[str]:
    """Return the command of a server with these tools; `call=` and `read=` are its answers."""
    named = {"tools/call": "call", "resources/read": "read", "line": "line"}
    given = {method: answers[name] for method, name in named.items() if name in answers}
    listed = [{"inputSchema": {"type": "object"}, **tool} for tool in tools or [{"name": "act"}]]
    canned = {"initialize": OPENED, "tools/list": {"tools": listed}, **given}
    return [sys.executable, "-I", "-S", __file__, json.dumps(canned)]


def serve(answers: dict[str, Any]) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        method = asked["method"]
        if "id" not in asked:
            continue
        if method == "server/discover":
            answer: Any = {"error": {"code": -32601, "message": "Method not found"}}
        elif method in answers:
            answer = answers[method]
        else:
            os._exit(4)
        if method == "tools/call" and "line" in answers:
            sys.stdout.write(answers["line"] + "\n")
        is_error = isinstance(answer, dict) and "error" in answer
        result = answer if is_error else {"result": answer}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **result}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
