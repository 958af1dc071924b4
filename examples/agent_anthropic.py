"""An agent on Anthropic's Messages API; agent.py is the same on Chat Completions.

    python examples/agent_anthropic.py "What is the weather?" "python examples/weather.py mcp"

The key is ANTHROPIC_API_KEY, the name of the model MODEL. ANTHROPIC_BASE_URL is another address.
"""

import json
import os
import sys
from typing import Any
from urllib.request import Request, urlopen

from answerback import ToolError, connect
from answerback.client import ConnectError
from answerback.models import to_anthropic

MAX_TURNS = 10
MAX_CHARACTERS = 20_000
"""Of one reply, for the model."""


def answer(server: Any, question: str) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for _ in range(MAX_TURNS):
        kit = to_anthropic(server.tools())
        content = ask_model(messages, kit.tools)
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            return "".join(block["text"] for block in content if block["type"] == "text")
        # All results of a turn are in one message; the API refuses others.
        results = [kit.run(server, call) for call in calls]
        messages += kit.messages(results, budget=MAX_CHARACTERS)
    return f"No answer after {MAX_TURNS} turns."


def ask_model(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    model = os.environ.get("MODEL", "claude-opus-4-5")
    body = {"model": model, "max_tokens": 4096, "messages": messages, "tools": tools}
    headers = {
        "Content-Type": "application/json",
        "x-api-key": os.environ.get("ANTHROPIC_API_KEY", "none"),
        "anthropic-version": "2023-06-01",
    }
    base_url = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com").rstrip("/")
    request = Request(f"{base_url}/v1/messages", json.dumps(body).encode(), headers)
    with urlopen(request, timeout=120) as response:
        content: list[dict[str, Any]] = json.load(response)["content"]
    return content


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        with connect(sys.argv[2]) as server:
            print(answer(server, sys.argv[1]))
    except (ConnectError, ToolError, OSError) as exc:
        sys.exit(f"agent: {exc}")
