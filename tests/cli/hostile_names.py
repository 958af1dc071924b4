"""A stdio server with a line break in every text that it sends, to imitate lines of the command.

The tool's name says what a call answers.
"""

from __future__ import annotations

import json
import sys
from typing import Any

BREAK = "a\nFAKE"
SCHEMA = {"type": "object", "properties": {BREAK: {"type": "string"}}}
ERROR = {"code": BREAK, "message": BREAK, "hint": BREAK}
LINK = {"type": "resource_link", "uri": f"x:{BREAK}", "name": BREAK}
BLOB = {"uri": f"x:{BREAK}", "mimeType": BREAK, "blob": "AAAA"}
IMAGE = {"type": "image", "mimeType": f"image/{BREAK}", "data": "AAAA"}
CALLS: dict[str, Any] = {
    "link": {"content": [LINK]},
    "blob": {"content": [{"type": "resource", "resource": BLOB}]},
    "image": {"content": [IMAGE]},
    "error": {"isError": True, "content": [], "_meta": {"answerback/error": ERROR}},
}
LOG = {"level": "info", "data": BREAK}
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}, "logging": {}}
RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": BREAK, "version": "1"},
    },
    "tools/list": {
        "tools": [
            {"name": BREAK, "description": "d", "inputSchema": SCHEMA},
            *({"name": name, "inputSchema": SCHEMA} for name in CALLS),
        ]
    },
    "resources/list": {"resources": [{"uri": f"x:{BREAK}", "name": BREAK}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": BREAK, "name": BREAK}]},
    "prompts/list": {"prompts": [{"name": BREAK, "arguments": [{"name": BREAK}]}]},
    "prompts/get": {
        "messages": [{"role": BREAK, "content": {"type": "text", "text": "hello"}}],
    },
    "resources/read": {"contents": [BLOB]},
    "logging/setLevel": {},
}


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        method = asked["method"]
        if "id" not in asked:
            continue
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        if method == "tools/call":
            note = {"jsonrpc": "2.0", "method": "notifications/message", "params": LOG}
            write(note)
            answer["result"] = CALLS[asked["params"]["name"]]
        elif method in RESULTS:
            answer["result"] = RESULTS[method]
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        write(answer)


if __name__ == "__main__":
    main()
