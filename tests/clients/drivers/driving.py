"""Shared by the drivers: the target, the calls, and the report of the answers as JSON.

An answer is an object with the parts that a client shows to its caller: `text` (the text blocks,
or the message of an error), `data` (the structured content), `error`, `code` (of the error),
`image` (in base64) and `link` (its address).
"""

import asyncio
import base64
import json
import os
import sys
from typing import Any

WIRE = sys.argv[1]
URL = os.environ["CLIENTS_URL"]
COMMAND: list[str] = json.loads(os.environ["CLIENTS_COMMAND"])
CALLS: list[Any] = json.loads(os.environ["CLIENTS_CALLS"])


def plain(value: Any) -> Any:
    """The value as JSON has it, with the names that MCP has."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True)
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def of_blocks(blocks: Any) -> dict[str, Any]:
    """The parts of an answer that content blocks have, in the forms of MCP and of LangChain."""
    answer: dict[str, Any] = {}
    texts = []
    for block in plain(blocks):
        if block["type"] == "text":
            texts.append(block["text"])
        elif block["type"] == "image":
            answer["image"] = block.get("data") or block["base64"]
        elif block["type"] in ("resource_link", "file"):
            answer["link"] = block.get("uri") or block["url"]
    answer["text"] = "\n".join(texts)
    return answer


def of_result(result: Any) -> dict[str, Any]:
    """The parts of an MCP result."""
    result = plain(result)
    answer = of_blocks(result["content"])
    answer["error"] = bool(result.get("isError"))
    if result.get("structuredContent") is not None:
        answer["data"] = result["structuredContent"]
    failure = (result.get("_meta") or {}).get("answerback/error")
    return answer if failure is None else answer | {"code": failure["code"]}


def of_png(data: bytes) -> dict[str, Any]:
    return {"image": base64.b64encode(data).decode()}


async def answers(call: Any) -> None:
    """Make all calls with *call*, which returns the parts of an answer, and print the answers."""
    found = []
    for tool, arguments in CALLS:
        try:
            found.append(await asyncio.wait_for(call(tool, arguments), 20))
        except Exception as exc:  # noqa: BLE001 - each client raises an exception of its own
            code = getattr(exc, "code", None)
            failure = {"error": True, "text": f"{type(exc).__name__}: {exc}"}
            found.append(failure | ({"code": code} if isinstance(code, int) else {}))
    sys.stdout.write("\nANSWERS " + json.dumps(found, default=repr) + "\n")
    sys.stdout.flush()
