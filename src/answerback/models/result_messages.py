"""The messages that bring a tool's result back to a model, in each provider's form."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ..core.content import Embedded, Image
from ..dialects.model_text import Part
from .reply_parts import ReplyParts

PREFIX = "Error: "
"""The first word of a failure if a provider has no flag for it."""


class CallResult(NamedTuple):
    """One call's result: the id and name that the model sent, and the parts."""

    call_id: str | None
    name: str
    parts: ReplyParts


def openai_message(result: CallResult) -> dict[str, Any]:
    """Return a tool's message in Chat Completions, which is a text."""
    text = _with_prefix(result.parts)
    return {"role": "tool", "tool_call_id": result.call_id, "content": text}


def function_message(result: CallResult) -> dict[str, Any]:
    """Return a function's message in the first form of Chat Completions."""
    return {"role": "function", "name": result.name, "content": _with_prefix(result.parts)}


def openai_media_message(results: Sequence[CallResult]) -> list[dict[str, Any]]:
    """Return the user message with all images and documents; an empty list if there are none.

    It follows all the calls' messages: the provider refuses other messages between them.
    """
    content: list[dict[str, Any]] = []
    for result in results:
        images, documents = result.parts.images, result.parts.documents
        if images or documents:
            about = result.call_id or result.name
            content.append({"type": "text", "text": f"From the result of the tool call {about}:"})
        content += [
            {"type": "image_url", "image_url": {"url": _image_url(each)}} for each in images
        ]
        content += [{"type": "file", "file": _file(each)} for each in documents]
    return [{"role": "user", "content": content}] if content else []


def responses_item(result: CallResult) -> dict[str, Any]:
    """Return a tool result's item in the Responses API."""
    parts = result.parts
    sequence = list(parts.sequence)
    output: Any = _with_prefix(parts)
    if parts.images or parts.documents:
        first = next((n for n, part in enumerate(sequence) if isinstance(part, str)), None)
        if parts.failed and first is not None:
            sequence[first] = _prefixed(str(sequence[first]))
        output = [_responses_part(part) for part in sequence]
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _responses_part(part: Part) -> dict[str, Any]:
    match part:
        case Image():
            return {"type": "input_image", "image_url": _image_url(part)}
        case Embedded():
            return {"type": "input_file", **_file(part)}
    return {"type": "input_text", "text": part}


def anthropic_block(result: CallResult) -> dict[str, Any]:
    """Return a tool result's block in Anthropic's Messages API."""
    parts = result.parts
    content = [_anthropic_part(part) for part in parts.sequence]
    block = {"type": "tool_result", "tool_use_id": result.call_id, "content": content}
    return block | {"is_error": True} if parts.failed else block


def _anthropic_part(part: Part) -> dict[str, Any]:
    match part:
        case Image():
            return {"type": "image", "source": _anthropic_source(part)}
        case Embedded():
            return {"type": "document", "source": _base64_source(part.mime, part.blob)}
    return {"type": "text", "text": part}


def gemini_part(result: CallResult) -> dict[str, Any]:
    """Return a tool result's part in the Gemini API."""
    parts = result.parts
    output = parts.text if parts.data is msgspec.UNSET else parts.data
    response: dict[str, Any] = {
        "name": result.name,
        "response": {"error" if parts.failed else "output": output},
    }
    if result.call_id is not None:
        response = {"id": result.call_id, **response}
    media = [
        *((each.mime, each.data) for each in parts.images),
        *((each.mime, each.blob) for each in parts.documents),
    ]
    if media:
        response["parts"] = [
            {"inlineData": {"mimeType": mime, "data": _base64(data)}} for mime, data in media
        ]
    return {"functionResponse": response}


def _with_prefix(parts: ReplyParts) -> str:
    return _prefixed(parts.text) if parts.failed else parts.text


def _prefixed(text: str) -> str:
    return text if text.startswith(PREFIX) else PREFIX + text


def _image_url(image: Image) -> str:
    return image.url or f"data:{image.mime};base64,{_base64(image.data)}"


def _anthropic_source(image: Image) -> dict[str, Any]:
    if image.url is not None:
        return {"type": "url", "url": image.url}
    return _base64_source(image.mime, image.data)


def _base64_source(mime: str | None, data: bytes | None) -> dict[str, Any]:
    return {"type": "base64", "media_type": mime, "data": _base64(data)}


def _file(document: Embedded) -> dict[str, Any]:
    name = document.uri.rpartition("/")[2] or "document"
    data = f"data:{document.mime};base64,{_base64(document.blob)}"
    return {"filename": name, "file_data": data}


def _base64(data: bytes | None) -> str:
    return b64encode(data or b"").decode()
