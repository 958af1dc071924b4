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

from answerback import ToolError, connect
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
        # A call that the model got wrong becomes a failed reply, which the model gets like others.
        results = [kit.run(server, call) for call in message["tool_calls"]]
        for _, reply, name in results:
            sys.stderr.write(f"{name}: {'done' if reply.ok else 'failed'}\n")
        # The model gets the text of an error, else the data as JSON, else the text. For the server
        # of a stranger, untrusted=True puts markers around it.
        messages += kit.messages(results, budget=MAX_CHARACTERS)
    return f"No answer after {MAX_TURNS} turns."


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
