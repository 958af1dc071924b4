"""The messages that return a tool's result to a model, in each provider's format."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec

from ..core.content import Block, Embedded, Image
from ..core.reply import Reply
from ..dialects.common import encoded_data
from ..dialects.model_text import ModelView, Part, describe, view_for_model
from ..reading import read
from .provider_rules import Provider, ProviderRules


class ReplyParts(msgspec.Struct, frozen=True):
    """A reply's text, whether it failed, and the images and documents that the provider accepts."""

    text: str
    """All the text; if there is none, a description of the result."""
    sequence: tuple[Part, ...] = ()
    """The text blocks, images and documents, in order."""
    failed: bool = False
    data: Any = msgspec.UNSET
    """The structured data, if the text adds nothing to it."""

    @property
    def images(self) -> list[Image]:
        return [part for part in self.sequence if isinstance(part, Image)]

    @property
    def documents(self) -> list[Embedded]:
        return [part for part in self.sequence if isinstance(part, Embedded)]


def parts_for(
    result: Any, rules: ProviderRules, budget: int | None, *, untrusted: bool
) -> ReplyParts:
    """Return the parts of a reply that the provider accepts; the others are described in text.

    *result* is anything that `read` accepts. *budget* is the maximum number of characters of text.
    *untrusted* puts the text between markers.
    """
    reply = read(result)
    has_media = reply.error is None or rules.media_in_errors

    def takes(block: Block) -> bool:
        if not has_media:
            return False
        if isinstance(block, Embedded):
            return block.blob is not None and block.mime in rules.documents
        if not isinstance(block, Image):
            return False
        # Gemini does not fetch images from the web.
        return rules.provider != "gemini" if block.url is not None else block.mime in rules.images

    view = view_for_model(reply, budget, untrusted=untrusted, takes=takes)
    media = [describe(part) for part in view.parts if not isinstance(part, str)]
    text = view.text if view.texts else "\n".join(media)
    data = msgspec.UNSET if untrusted else _only_data(reply, view)
    return ReplyParts(text, tuple(view.sequence), failed=not reply.ok, data=data)


def _only_data(reply: Reply[Any], view: ModelView) -> Any:
    """Return the data if the only text is all of the data, unchanged or as JSON, else UNSET."""
    if not reply.ok or not reply.has_data or len(view.texts) != 1:
        return msgspec.UNSET
    [text] = view.texts
    try:
        data = msgspec.json.decode(encoded_data(reply))
        is_complete = text == data or msgspec.json.decode(text) == data
    except (TypeError, ValueError, RecursionError):
        return msgspec.UNSET
    return data if is_complete else msgspec.UNSET


RunResult: TypeAlias = tuple[str | None, Reply[Any], str]
"""A call's id, its reply, and the name that the model called."""


class AsyncCalls(Protocol):
    """A server whose `call` is awaited."""

    async def call(self, name: str, arguments: Mapping[str, Any], /) -> Reply[Any]: ...


class BlockingCalls(Protocol):
    """A server whose `call` blocks."""

    def call(self, name: str, arguments: Mapping[str, Any], /) -> Reply[Any]: ...


@runtime_checkable
class SeveralServers(Protocol):
    """Several servers, some of which may still be connecting; the method is async if `call` is."""

    def wait_for(self, name: str, /) -> Any:
        """Wait for the tool's server and return its name; return "" if it is not connecting."""


class ModelCall(NamedTuple):
    """A call that a model requested, with the name and the arguments that it sent."""

    id: str | None
    name: str
    arguments: Any


def read_call(call: object, provider: Provider) -> ModelCall:
    """Read a provider's call, as JSON or as an object from its package; raises TypeError."""
    match provider:
        case "openai":
            # In Chat Completions' original form, a call has no id and no `function` member.
            inner, call_id, arguments = member(call, "function") or call, "id", "arguments"
        case "openai_responses":
            inner, call_id, arguments = call, "call_id", "arguments"
        case "anthropic":
            inner, call_id, arguments = call, "id", "input"
        case "gemini":
            part = member(call, "functionCall") or member(call, "function_call")
            call = inner = part or call
            call_id, arguments = "id", "args"
    name, given = member(inner, "name"), member(inner, arguments)
    if name is None and given is None:
        raise TypeError(f"{call!r} should be one of the model's calls, in {provider} format")
    return ModelCall(member(call, call_id), name if isinstance(name, str) else "", given)


def member(value: object, name: str) -> Any:
    """Return a member of a JSON object, or an attribute of an SDK's object; else None."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


class CallResult(NamedTuple):
    """One call's result: the id and name that the model sent, and the parts."""

    call_id: str | None
    name: str
    parts: ReplyParts


def result_message(
    result: CallResult, provider: Provider, *, functions: bool = False
) -> dict[str, Any]:
    """Return a result in a provider's format: a message, an item, a block or a part.

    *functions* asks for Chat Completions' original form.
    """
    parts = result.parts
    match provider:
        case "openai" if functions:
            return {"role": "function", "name": result.name, "content": _with_prefix(parts)}
        case "openai":
            content = _with_prefix(parts)
            return {"role": "tool", "tool_call_id": result.call_id, "content": content}
        case "openai_responses":
            return _responses_item(result)
        case "anthropic":
            blocks = [_anthropic_part(part) for part in parts.sequence]
            block = {"type": "tool_result", "tool_use_id": result.call_id, "content": blocks}
            return block | {"is_error": True} if parts.failed else block
        case "gemini":
            return _gemini_part(result)


def openai_media_message(results: Sequence[CallResult]) -> list[dict[str, Any]]:
    """Return the user message with all images and documents; an empty list if there are none.

    It comes after the messages for all calls, because the provider rejects any between them.
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


def _responses_item(result: CallResult) -> dict[str, Any]:
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


def _anthropic_part(part: Part) -> dict[str, Any]:
    match part:
        case Image(url=None):
            return {"type": "image", "source": _base64_source(part.mime, part.data)}
        case Image():
            return {"type": "image", "source": {"type": "url", "url": part.url}}
        case Embedded():
            return {"type": "document", "source": _base64_source(part.mime, part.blob)}
    return {"type": "text", "text": part}


def _gemini_part(result: CallResult) -> dict[str, Any]:
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
    """Return the text marked as a failure, for a provider without an error flag."""
    return text if text.startswith("Error: ") else f"Error: {text}"


def _image_url(image: Image) -> str:
    return image.url or f"data:{image.mime};base64,{_base64(image.data)}"


def _base64_source(mime: str | None, data: bytes | None) -> dict[str, Any]:
    return {"type": "base64", "media_type": mime, "data": _base64(data)}


def _file(document: Embedded) -> dict[str, Any]:
    name = document.uri.rpartition("/")[2] or "document"
    data = f"data:{document.mime};base64,{_base64(document.blob)}"
    return {"filename": name, "file_data": data}


def _base64(data: bytes | None) -> str:
    return b64encode(data or b"").decode()
