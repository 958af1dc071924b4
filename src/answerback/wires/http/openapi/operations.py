"""One tool as one operation: what it takes, and what it may answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from ....content import Audio, Image
from ....dialects.accept import MEDIA_TYPES
from ....dialects.http_reply import ERROR_CODE, JSON
from ....dialects.rest import FORM
from ....types.json_text import ENCODER
from .bodies import error_schema, success_schema
from .statuses import WORDS, error_statuses

if TYPE_CHECKING:
    from ....contract import Contract, Dialect
    from ....tools.tool import Tool

Schema = dict[str, Any]

RESPONSES = "#/components/responses/"
HEADERS = {
    "ErrorCode": {
        "description": "A stable name for what went wrong, such as INVALID_ARGUMENTS",
        "schema": {"type": "string"},
    }
}
_CODED = {ERROR_CODE: {"$ref": "#/components/headers/ErrorCode"}}
_FORM = {
    "description": "Says that the body is not data but blocks, or the bytes of one",
    "schema": {"enum": ["content", "image", "audio"]},
}
# Seed 001 looks for these where the operation is, without following a reference.
_WRITTEN_OUT = (400, 500)


def operation(tool: Tool, arguments: Schema, data: Schema | None) -> Schema:
    """The operation of *tool*, given the schemas of its arguments and of its wrapped data."""
    summary = tool.title or tool.description.partition("\n")[0]
    about = {
        "operationId": f"functions.{tool.name}",
        "summary": summary,
        "description": "" if tool.description == summary else tool.description,
    }
    return {
        **{name: text for name, text in about.items() if text},
        "tags": ["functions"],
        "requestBody": _request(tool, arguments),
        "responses": _responses(tool, data),
    }


def shared_responses(contract: Contract) -> dict[str, Schema]:
    """The errors that several tools give in the same words, by name."""
    return {
        f"Error{status}": error_response(description, contract)
        for status, description in WORDS.items()
        if status not in _WRITTEN_OUT
    }


def _responses(tool: Tool, data: Schema | None) -> Schema:
    responses = {"200": _success(tool, data)}
    for status, description in error_statuses(tool).items():
        if status in _WRITTEN_OUT or description != WORDS.get(status):
            responses[str(status)] = error_response(description, tool.contract)
        else:
            responses[str(status)] = {"$ref": f"{RESPONSES}Error{status}"}
    return responses


def error_response(description: str, contract: Contract) -> Schema:
    """An error with that description, in each dialect it may be asked for in."""
    media = _media_types(contract, failed=True)
    content = {name: {"schema": error_schema(dialect)} for name, dialect in media.items()}
    return {"description": description, "headers": _CODED, "content": content}


def _media_types(contract: Contract, *, failed: bool) -> dict[str, Dialect]:
    """What may be sent; a problem is for errors alone, and always goes by its own name."""
    named = {
        media: dialect for media, dialect in MEDIA_TYPES.items() if failed or dialect != "problem"
    }
    if failed and contract.http == "problem":
        return named
    others = {media: dialect for media, dialect in named.items() if dialect != contract.http}
    return {JSON: contract.http, **others}


def _request(tool: Tool, arguments: Schema) -> Schema:
    media: Schema = {"schema": arguments}
    examples = tool.settings.examples
    if examples:
        media["examples"] = {
            f"example{number}": {"value": _plain(tool, example)}
            for number, example in enumerate(examples, 1)
        }
    # An empty body is {}, so a body is needed only where an argument is.
    needed = any(parameter.required for parameter in tool.parameters)
    return {"required": needed, "content": {JSON: media}}


def _plain(tool: Tool, example: Any) -> Any:
    try:
        return msgspec.json.decode(ENCODER.encode(example))
    except (NotImplementedError, TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"an example of tool {tool.name!r} is not JSON: {exc}") from None


def _success(tool: Tool, data: Schema | None) -> Schema:
    blocks_only = tool.returns.blocks_only
    content: Schema = {
        media: {"schema": success_schema(dialect, data, blocks_only=blocks_only)}
        for media, dialect in _media_types(tool.contract, failed=False).items()
    }
    success = {"description": "Successful execution", "content": content}
    if data is not None or tool.contract.http in ("mcp", "envelope"):
        return success
    content |= {media: {} for media in _bytes_of(tool)}
    return success | {"headers": {FORM: _FORM}}


def _bytes_of(tool: Tool) -> list[str]:
    """The media types of what may be sent as its bytes: a lone image or sound."""
    kinds = {Image: "image/*", Audio: "audio/*"}
    if not tool.returns.blocks_only:
        return list(kinds.values())
    told = list(_classes_in(tool.signature.returns))
    return [
        media for block, media in kinds.items() if any(issubclass(each, block) for each in told)
    ]


def _classes_in(annotation: Any) -> Iterator[type]:
    """The classes that an annotation names, at any depth."""
    if isinstance(annotation, type):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _classes_in(inner)
