"""A stand-in for a language model: it speaks Chat Completions, offline and always the same.

    python examples/stand_in_model.py 8399        # then OPENAI_BASE_URL=http://127.0.0.1:8399/v1

It calls the tool whose name and description share most words with the question, takes the
arguments from the question, and answers with the result.
"""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


def reply_to(request: dict[str, Any]) -> dict[str, Any]:
    """The message of the model."""
    last = request["messages"][-1]
    if last["role"] == "tool":
        return {"role": "assistant", "content": f"The tool says: {last['content']}"}
    question = last["content"]
    functions = [tool["function"] for tool in request.get("tools", ())]
    chosen = max(functions, key=lambda each: len(_words(question) & _about(each)), default=None)
    if chosen is None or not _words(question) & _about(chosen):
        return {"role": "assistant", "content": "I have no tool for that."}
    arguments = json.dumps(_arguments(question, chosen["parameters"]), ensure_ascii=False)
    function = {"name": chosen["name"], "arguments": arguments}
    call = {"id": f"call_{len(request['messages'])}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[^\W_]+", text.casefold()) if len(word) > 2}


def _about(function: dict[str, Any]) -> set[str]:
    return _words(f"{function['name']} {function.get('description', '')}")


def _arguments(question: str, schema: dict[str, Any]) -> dict[str, Any]:
    numbers = iter(re.findall(r"-?\d+(?:\.\d+)?", question))
    names = iter(re.findall(r"(?<=\s)[^\W\d_a-zà-ž][\w.-]*", question))
    found: dict[str, Any] = {}
    for name, each in schema.get("properties", {}).items():
        kinds = str(each)
        if "'integer'" in kinds or "'number'" in kinds:
            found[name] = json.loads(next(numbers, "null"))
        elif "'string'" in kinds:
            found[name] = next(names, None)
        else:
            found[name] = None
    required = schema.get("required", ())
    return {name: each for name, each in found.items() if each is not None or name in required}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = reply_to(request)
        finish = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        completion = {"id": "1", "object": "chat.completion", "created": 0, "model": "stand-in"}
        body = json.dumps(completion | {"choices": [choice]}, ensure_ascii=False).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no line for each request."""


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """Serve the model meanwhile; yields its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    with serving(int(sys.argv[1]) if len(sys.argv) > 1 else 8399) as url:
        sys.stdout.write(f"OPENAI_BASE_URL={url}\n")
        sys.stdout.flush()
        sys.stdin.read()
