"""A stdio server of the stateful era that floods its client, or does not read, as argv[1] says.

It is run with `python -I -S`.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

INFO = {"name": "flooding", "version": "1"}
FINE = {"content": [{"type": "text", "text": "fine"}]}
QUESTION = {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}}


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def ask_with_one_id() -> None:
    for _ in range(50):
        write({"id": "same", "method": "elicitation/create", "params": QUESTION})


def wait_for_file() -> None:
    """Read nothing until the file in argv[2] exists."""
    while not Path(sys.argv[2]).exists():
        time.sleep(0.01)


def stay() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


ACTS = {"one id": ask_with_one_id, "no reading": wait_for_file, "staying": stay}
TOO_LARGE = 65 * 1024 * 1024


def main() -> None:
    how, called = sys.argv[1], []
    for line in sys.stdin:
        asked = json.loads(line)
        method, id = asked.get("method"), asked.get("id")
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO}
            write({"id": id, "result": result})
        elif method == "tools/call":
            called.append(asked["params"]["name"])
            if len(called) == 1 and how == "too large":
                write({"id": id, "result": {"content": [], "x": "x" * TOO_LARGE}})
                sys.stdout.flush()
                continue
            if len(called) == 1:
                ACTS[how]()
            text = {"type": "text", "text": " ".join(called)}
            write({"id": id, "result": {"content": [text]}})
        elif method == "server/discover":
            write({"id": id, "error": {"code": -32601, "message": "no such method"}})
        sys.stdout.flush()


if __name__ == "__main__":
    main()
