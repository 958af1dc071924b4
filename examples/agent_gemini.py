"""An agent on the Gemini API; agent.py is the same on Chat Completions.

    python examples/agent_gemini.py "What is the weather?" "python examples/weather.py mcp"

The key is GEMINI_API_KEY, the name of the model MODEL. GEMINI_BASE_URL is another address.
"""

import json
import os
import sys
from typing import Any
from urllib.request import Request, urlopen

from answerback import ToolError, connect
from answerback.client import ConnectError
from answerback.models import to_gemini

MAX_TURNS = 10
MAX_CHARACTERS = 20_000
"""Of one reply, for the model."""


def answer(server: Any, question: str) -> str:
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": question}]}]
    for _ in range(MAX_TURNS):
        kit = to_gemini(server.tools())
        parts = ask_model(contents, kit.tools)
        # They go back unchanged: the API wants the thoughtSignature that a part may have.
        contents.append({"role": "model", "parts": parts})
        calls = [part for part in parts if "functionCall" in part]
        if not calls:
            return "".join(part.get("text", "") for part in parts)
        contents += kit.messages([kit.run(server, call) for call in calls], budget=MAX_CHARACTERS)
    return f"No answer after {MAX_TURNS} turns."


def ask_model(contents: list[dict[str, Any]], functions: list[dict[str, Any]]) -> list[Any]:
    # One of the API's tools holds all the declarations.
    body = {"contents": contents, "tools": [{"functionDeclarations": functions}]}
    key = os.environ.get("GEMINI_API_KEY", "none")
    headers = {"Content-Type": "application/json", "x-goog-api-key": key}
    default = "https://generativelanguage.googleapis.com"
    base_url = os.environ.get("GEMINI_BASE_URL", default).rstrip("/")
    model = os.environ.get("MODEL", "gemini-3-pro-preview")
    url = f"{base_url}/v1beta/models/{model}:generateContent"
    with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=120) as response:
        content = json.load(response)["candidates"][0]["content"]
    return list(content.get("parts", ()))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        with connect(sys.argv[2]) as server:
            print(answer(server, sys.argv[1]))
    except (ConnectError, ToolError, OSError) as exc:
        sys.exit(f"agent: {exc}")
