"""One tool as one operation: what it takes, and what it may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ....content import Audio, Image
from ....dialects.accept import NAMED
from .bodies import error_schema, success_schema
from .statuses import error_statuses

if TYPE_CHECKING:
    from ....contract import Contract, Dialect
    from ....tool import Tool

Schema = dict[str, Any]

JSON = "application/json"
ERROR_CODE = "ErrorCode"
HEADERS = {
    ERROR_CODE: {
        "description": "A stable name for what went wrong, such as INVALID_ARGUMENTS",
        "schema": {"type": "string"},
    }
}
_CODED = {"X-Error-Code": {"$ref": f"#/components/headers/{ERROR_CODE}"}}


def operation(tool: Tool, arguments: Schema, data: Schema | None) -> Schema:
    """The operation of *tool*, given the schemas of its arguments and of its wrapped data."""
    found = {
        "operationId": f"functions.{tool.name}",
        "summary": tool.title or tool.description.partition("\n")[0],
        "description": tool.description,
        "tags": ["functions"],
        "requestBody": _request(tool, arguments),
        "responses": {"200": _success(tool, data)},
    }
    for status, description in error_statuses(tool).items():
        found["responses"][str(status)] = error_response(description, tool.contract)
    return {name: value for name, value in found.items() if value}


def error_response(description: str, contract: Contract) -> Schema:
    """An error with that description, in each dialect it may be asked for in."""
    media = _media_types(contract)
    content = {name: {"schema": error_schema(dialect)} for name, dialect in media.items()}
    return {"description": description, "headers": _CODED, "content": content}


def _media_types(contract: Contract) -> dict[str, Dialect]:
    others = {name: dialect for name, dialect in NAMED.items() if dialect != contract.http}
    return {JSON: contract.http, **others}


def _request(tool: Tool, arguments: Schema) -> Schema:
    media: Schema = {"schema": arguments}
    examples = tool.options.get("examples", ())
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
        return msgspec.json.decode(msgspec.json.encode(example))
    except (TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"an example of tool {tool.name!r} is not JSON: {exc}") from None


def _success(tool: Tool, data: Schema | None) -> Schema:
    content: Schema = {}
    for media, dialect in _media_types(tool.contract).items():
        if dialect == "problem":
            continue
        blocks_only = tool.returns.blocks_only
        content[media] = {"schema": success_schema(dialect, data, blocks_only=blocks_only)}
    if tool.contract.http == "rest" and data is None:
        content |= {media: {} for media in _bytes_of(tool)}
    return {"description": "Successful execution", "content": content}


def _bytes_of(tool: Tool) -> list[str]:
    """The media types of what may be sent as its bytes: a lone image or sound."""
    told = _named_in(tool.signature.returns)
    unsaid = not tool.returns.blocks_only
    kinds = {Image: "image/*", Audio: "audio/*"}
    return [media for block, media in kinds.items() if unsaid or block in told]


def _named_in(annotation: Any) -> set[Any]:
    """All types that an annotation names, at any depth."""
    inner = getattr(annotation, "__args__", ())
    return {annotation}.union(*(_named_in(member) for member in inner)) if inner else {annotation}
