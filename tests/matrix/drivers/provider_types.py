"""Checks parts of requests against the types in the official packages of the model providers.

stdin has one JSON object in each line: `kind`, `about` and `value`. The last line that is printed
has the number of values and the faults.
"""

import json
import sys
from collections.abc import Iterator

import anthropic.types
import openai.types.chat
import openai.types.responses
from google.genai import types as google
from openai.types.chat import completion_create_params
from pydantic import TypeAdapter, ValidationError

TYPES = {
    "openai tool": openai.types.chat.ChatCompletionFunctionToolParam,
    "openai function": completion_create_params.Function,
    "openai user": openai.types.chat.ChatCompletionUserMessageParam,
    "openai tool message": openai.types.chat.ChatCompletionToolMessageParam,
    "openai function message": openai.types.chat.ChatCompletionFunctionMessageParam,
    "responses tool": openai.types.responses.FunctionToolParam,
    "responses item": openai.types.responses.ResponseInputItemParam,
    "anthropic tool": anthropic.types.ToolParam,
    "anthropic message": anthropic.types.MessageParam,
    "gemini tool": google.FunctionDeclaration,
    "gemini message": google.Content,
}
ADAPTERS = {kind: TypeAdapter(found) for kind, found in TYPES.items()}


def fault(kind: str, value: object) -> str | None:
    """The first fault of a value, or None; a member that the type does not have is one too."""
    adapter = ADAPTERS[kind]
    try:
        checked = adapter.validate_python(value)
        # Iterables are checked while they are written.
        again = adapter.dump_python(
            checked,
            mode="json",
            by_alias=True,
            exclude_none=kind.startswith("gemini"),
            warnings=False,
        )
    except ValidationError as exc:
        return str(exc.errors()[0])[:300]
    return next(differences(value, again, ""), None)


def differences(sent: object, again: object, path: str) -> Iterator[str]:
    if isinstance(sent, dict) and isinstance(again, dict):
        for name in sent.keys() | again.keys():
            if name not in again:
                yield f"{path}/{name} is not in the type"
            elif name in sent:
                yield from differences(sent[name], again[name], f"{path}/{name}")
            else:
                yield f"{path}/{name} is added"
    elif isinstance(sent, list) and isinstance(again, list) and len(sent) == len(again):
        for at, (one, other) in enumerate(zip(sent, again, strict=True)):
            yield from differences(one, other, f"{path}/{at}")
    elif sent != again:
        yield f"{path} is {str(again)[:80]}, not {str(sent)[:80]}"


if __name__ == "__main__":
    lines = [json.loads(line) for line in sys.stdin]
    found = [(each["about"], fault(each["kind"], each["value"])) for each in lines]
    faults = [f"{about}: {reason}" for about, reason in found if reason is not None]
    sys.stdout.write("CHECKED " + json.dumps({"count": len(found), "faults": faults}) + "\n")
