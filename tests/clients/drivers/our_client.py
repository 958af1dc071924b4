"""Shared by the drivers of our tools for frameworks: the server, and the parts of an answer."""

import json
from typing import Any

from driving import COMMAND, URL, WIRE

from answerback import connect


def server() -> Any:
    return connect(COMMAND if WIRE == "stdio" else URL + "/mcp")


def of_text(text: str, *, failed: bool) -> dict[str, Any]:
    """The parts in the text that a model reads.

    It has a value itself in the place of `{"result": value}`, and a link in a line of its own.
    """
    text, _, link = text.partition("\nreport: ")
    if failed or link:
        return {"text": text, "error": failed, **({"link": link} if link else {})}
    try:
        value = json.loads(text.rpartition("\n")[2])
    except ValueError:
        value = text
    return {"text": text, "data": value if isinstance(value, dict) else {"result": value}}


def check_result(answer: dict[str, Any], result: Any) -> None:
    """Compare the data that the model reads with the result that the program gets."""
    found = (result or {}).get("structuredContent")
    if found != answer.get("data"):
        raise ValueError(f"the program gets {found}, and the model {answer}")
