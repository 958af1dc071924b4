"""An agent: it discovers the tools of a server, lets a model choose, and reads the replies.

    python examples/agent.py "What is the weather in Oslo?" "python examples/weather.py mcp"

The server may also be a URL. The model is the one at OPENAI_BASE_URL, of any provider that speaks
Chat Completions, with the key OPENAI_API_KEY and the name MODEL. Without that address a stand-in
answers, offline.
"""

import json
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from urllib.request import Request, urlopen

from answerback import Reply, ToolError, connect, failure
from answerback.client import ConnectError
from answerback.models import ModelTools, to_openai
from stand_in_model import serving  # type: ignore[import-not-found]  # beside this file

MAX_TURNS = 10
MAX_CHARACTERS = 20_000
"""Of one reply, for the model."""


def answer(server: Any, base_url: str, question: str) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for _ in range(MAX_TURNS):
        # The tools are listed for each turn: a server may add some meanwhile.
        kit = to_openai(server.tools(), strict=True)
        message = ask_model(base_url, messages, kit)
        messages.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        calls = [(each["id"], each["function"]) for each in message["tool_calls"]]
        replies = [(call_id, run(server, kit, call)) for call_id, call in calls]
        # The model gets the text of an error, else the data as JSON, else the text. For the server
        # of a stranger, untrusted=True puts markers around it.
        messages += kit.messages(replies, budget=MAX_CHARACTERS)
    return f"No answer after {MAX_TURNS} turns."


def run(server: Any, kit: ModelTools, call: dict[str, str]) -> Reply[Any]:
    """Make the call that the model asks for; what it got wrong is a failed reply."""
    try:
        name = kit.name_of(call["name"])
        arguments = kit.arguments(call["name"], call["arguments"])
    except ToolError as exc:
        return failure(exc.message, exc.code, hint=exc.hint)
    reply: Reply[Any] = server.call(name, arguments)
    sys.stderr.write(f"{name} {arguments}: {'done' if reply.ok else 'failed'}\n")
    return reply


def ask_model(base_url: str, messages: list[dict[str, Any]], kit: ModelTools) -> dict[str, Any]:
    body = {"model": os.environ.get("MODEL", "gpt-5"), "messages": messages, "tools": kit.tools}
    key = os.environ.get("OPENAI_API_KEY", "none")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = Request(f"{base_url}/chat/completions", json.dumps(body).encode(), headers)
    with urlopen(request, timeout=120) as response:
        message: dict[str, Any] = json.load(response)["choices"][0]["message"]
    return message


def model() -> AbstractContextManager[str]:
    base_url = os.environ.get("OPENAI_BASE_URL")
    return serving() if base_url is None else nullcontext(base_url.rstrip("/"))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        with model() as base_url, connect(sys.argv[2]) as server:
            print(answer(server, base_url, sys.argv[1]))
    except (ConnectError, ToolError, OSError) as exc:
        sys.exit(f"agent: {exc}")
