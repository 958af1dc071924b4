"""An app's OpenAPI document. Needs only msgspec, because CGI and the CLI print it too.

Every tool and every page has an operation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, get_origin
from weakref import WeakKeyDictionary

import msgspec

from ...contract import Contract, Dialect
from ...core.content import Audio, Image, block_class
from ...core.json_value import Json
from ...dialects.accept import MEDIA_TYPES
from ...dialects.reply_schemas import wire_schemas
from ...dialects.rest import FORM
from ...dialects.status_and_headers import ERROR_CODE, ERROR_HINT, JSON, PROBLEM, RETRY_AFTER
from ...errors import CODES, INPUT_REQUIRED, ToolError, find_code
from ...gates.prompts import codes_of, needs_login, scopes_of, shown_to_all
from ...registry.declarations import Registry
from ...tools.docstrings import parse
from ...tools.tool import Tool
from ...types.json_schema import add_description, default_keyword, rename_refs, schemas
from ...types.json_text import ENCODER
from ...types.schema_references import references, used_definitions
from .routes import PUBLIC

Schema = dict[str, Any]
Components = dict[str, Schema]

SCHEMAS = "#/components/schemas/"
_DEFS = "#/$defs/"
_INVALID_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")


def ref(name: str) -> Schema:
    """Return a reference to the shared schema *name*."""
    return {"$ref": SCHEMAS + name}


def object_schema(properties: Schema, required: Sequence[str] | None = None) -> Schema:
    """Return the schema of an object; all members are required unless *required* lists some."""
    names = list(properties if required is None else required)
    return {"type": "object", "properties": properties, "required": names}


def tool_schemas(
    tools: Sequence[Tool], reserved: Collection[str]
) -> tuple[list[tuple[Schema, Schema | None]], Components]:
    """Return the schemas of each tool's arguments and wrapped data, and of the classes they use.

    The data schema is None for a tool that declares no return type. Classes are not given names
    in *reserved*.
    """
    argument_types = [parameter.annotation for tool in tools for parameter in tool.parameters]
    return_types = [
        tool.returns.data_type
        for tool in tools
        if tool.returns.declared and tool.settings.output_schema is None
    ]
    # All types are passed in both directions, so that a class has the same name in each.
    all_types = argument_types + return_types
    inputs, input_classes = schemas(all_types, _DEFS + "{name}", mode="validation")
    outputs, output_classes = schemas(all_types, _DEFS + "{name}", mode="serialization")
    inputs, outputs = inputs[: len(argument_types)], outputs[len(argument_types) :]
    input_classes = used_definitions(inputs, input_classes, _DEFS)
    output_classes = used_definitions(outputs, output_classes, _DEFS)

    names: dict[str, str] = {}
    for name in sorted(input_classes.keys() | output_classes.keys()):
        names[name] = _free_name(name, {*reserved, *names.values()})
    # A class gets a second name if its output schema differs, like a pydantic model with defaults.
    only_output: dict[str, str] = {}
    for name in sorted(input_classes.keys() & output_classes.keys()):
        if _with_dependencies(name, input_classes) != _with_dependencies(name, output_classes):
            taken = {*reserved, *names.values(), *only_output.values()}
            only_output[name] = _free_name(f"{names[name]}Output", taken)
    output_names = names | only_output
    arguments, data = iter(_renamed(inputs, names)), iter(_renamed(outputs, output_names))
    classes = _components(input_classes, names) | _components(output_classes, output_names)
    given = _GivenSchemas(classes, reserved)
    of_tools = [(_arguments(tool, arguments, given), _data(tool, data, given)) for tool in tools]
    return of_tools, classes


class _GivenSchemas:
    """Schemas supplied by the author; a schema that refers to itself becomes a component."""

    def __init__(self, components: Components, reserved: Collection[str]) -> None:
        self._components = components
        self._reserved = reserved

    def place(self, schema: Schema, name: str) -> Schema:
        """Return *schema*, or a reference to it as a component called *name*."""
        # References in a schema with an `$id` are not relative to the document.
        own = {key: each for key, each in schema.items() if key not in ("$id", "$schema")}
        inner = [each for each in references(own) if each.startswith("#")]
        if not inner:
            return _with_arrays(own)
        name = _free_name(name, {*self._reserved, *self._components})
        here = {each: f"{SCHEMAS}{name}{each[1:]}" for each in inner}
        self._components[name] = _with_arrays(rename_refs(own, here))
        return ref(name)


def _free_name(name: str, taken: Collection[str]) -> str:
    """Return a valid component name made from *name*; it ends with a number if *name* is taken."""
    valid = _INVALID_IN_NAMES.sub("_", name) or "Type"
    numbered = (f"{valid}_{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (valid, *numbered) if each not in taken)


def _with_dependencies(name: str, components: Components) -> Components:
    return used_definitions({"$ref": _DEFS + name}, components, _DEFS)


def _renamed(node: Json, names: dict[str, str]) -> Any:
    renamed = rename_refs(node, {_DEFS + old: SCHEMAS + new for old, new in names.items()})
    return _with_items(renamed)


def _with_items(node: Json) -> Json:
    """Return *node* with `items` in every array: linters and generators require it."""
    if isinstance(node, list):
        return [_with_items(each) for each in node]
    if not isinstance(node, dict):
        return node
    schema = {name: _with_items(value) for name, value in node.items()}
    if schema.get("type") == "array" and "items" not in schema:
        schema["items"] = _items(schema)
    return schema


def _with_arrays(schema: Schema) -> Schema:
    return {name: _with_items(each) for name, each in schema.items()}


def _items(array: Schema) -> Schema:
    """Return a schema that allows every item of *array*, which has positional schemas or none."""
    by_position: list[Schema] = array.get("prefixItems", [])
    if not by_position or array.get("maxItems") != len(by_position):
        return {}
    different = [each for i, each in enumerate(by_position) if each not in by_position[:i]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _components(classes: Components, names: dict[str, str]) -> Components:
    return {names[name]: _renamed(schema, names) for name, schema in classes.items()}


def _arguments(tool: Tool, types: Iterator[Schema], given: _GivenSchemas) -> Schema:
    """Return the schema of the arguments, taking each parameter's schema from *types*."""
    if tool.signature.argument_object is not None:
        return given.place(tool.input_schema, f"{tool.name}_arguments")
    properties = {}
    for parameter in tool.parameters:
        schema = dict(next(types))
        add_description(schema, parameter.description)
        if not parameter.required:
            schema |= default_keyword(parameter.default)
        properties[parameter.name] = schema
    arguments = {
        "properties": properties,
        "required": [parameter.name for parameter in tool.parameters if parameter.required],
    }
    not_empty = {name: value for name, value in arguments.items() if value}
    return {"type": "object", **not_empty, "additionalProperties": False}


def _data(tool: Tool, types: Iterator[Schema], given: _GivenSchemas) -> Schema | None:
    """Return the schema of the wrapped data, taking the return type's schema from *types*."""
    if not tool.returns.declared:
        return None
    if (schema := tool.settings.output_schema) is not None:
        return given.place(tool.returns.shape.wrap_schema(schema), f"{tool.name}_result")
    wrapped: Schema = tool.returns.shape.wrap_schema(next(types))
    return wrapped


class MediaTypes(msgspec.Struct, frozen=True):
    """The media types in the document, each with its dialect."""

    success: dict[str, Dialect]
    error: dict[str, Dialect]


def media_types(contract: Contract, *, dialects: bool) -> MediaTypes:
    """Return the contract's own media type, followed by all the others if *dialects* is set.

    The `problem` dialect is only for errors, and is never sent as plain JSON.
    """
    success: dict[str, Dialect] = {JSON: contract.http}
    error: dict[str, Dialect] = {PROBLEM: "problem"} if contract.http == "problem" else success
    if dialects:
        others = {name: each for name, each in MEDIA_TYPES.items() if each != contract.http}
        error = error | others
        success = success | {name: each for name, each in others.items() if each != "problem"}
    return MediaTypes(success, error)


def with_media_ranges(tool: Tool, content: Schema) -> Schema:
    """Return *content* with the media ranges for any bytes that the tool may send.

    The ranges come first for a tool annotated as returning one image or audio block: many
    generated clients use only the first media type, and bytes are sent unless the client
    prefers JSON.
    """
    kinds = {Image: "image/*", Audio: "audio/*"}
    if not tool.returns.blocks_only:
        return content | {media: {} for media in kinds.values()}
    annotation = tool.signature.returns
    declared = [block_class(each) for each in _classes_in(annotation)]
    ranges: Schema = {media: {} for block, media in kinds.items() if block in declared}
    return ranges | content if _is_one_media_block(annotation) else content | ranges


def _is_one_media_block(annotation: Any) -> bool:
    if isinstance(annotation, type):
        return block_class(annotation) in (Image, Audio)
    if get_origin(annotation) in (list, tuple, Sequence):
        return False
    return all(map(_is_one_media_block, annotation.__args__))


def _classes_in(annotation: object) -> Iterator[type]:
    """Yield the classes that an annotation names, at any depth."""
    if isinstance(annotation, type):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _classes_in(inner)


TIMESTAMP: Schema = {"type": "string", "format": "date-time"}
_PREFIX = "Answerback"
CONTENT = "AnswerbackContent"
MCP_RESULT = "AnswerbackMcpResult"
MCP_ERROR = "AnswerbackMcpError"
ENVELOPE = "AnswerbackEnvelope"
FAILURE = "AnswerbackFailure"
_ERROR_SCHEMAS: dict[Dialect, Schema] = {
    # Too small to share.
    "rest": object_schema({"error": {"type": "string"}}),
    "mcp": ref(MCP_ERROR),
    "envelope": ref("AnswerbackEnvelopeError"),
    "problem": ref("AnswerbackProblem"),
}
"""The schema of an error body in each dialect."""


def shared_schemas(contract: Contract) -> dict[str, Schema]:
    """Return the schemas that all tools share, by name."""
    wire = wire_schemas(SCHEMAS + _PREFIX + "{name}")
    shared = {_PREFIX + name: schema for name, schema in wire.items()}
    # In MCP `isError` is optional, but Answerback always sends it.
    result = _with_required(shared[MCP_RESULT], {"isError": {"const": False}})
    failure = shared[FAILURE]
    # The message is omitted if it equals the result's text.
    in_meta = object_schema(failure["properties"], required=["code"]) | {"allOf": failure["allOf"]}
    meta = object_schema({"answerback/error": in_meta})
    error = _with_required(shared[MCP_ERROR], {"_meta": meta})
    if contract.envelope_in_mcp:
        members = {"success": {"const": True}, "timestamp": TIMESTAMP}
        result = _with_required(result, members)
        members = {"success": {"const": False}, "timestamp": TIMESTAMP, "error": ref(FAILURE)}
        error = _with_required(error, members)
    return shared | {MCP_RESULT: result, MCP_ERROR: error}


def success_schema(dialect: Dialect, data: Schema | None, *, blocks_only: bool) -> Schema:
    """Return the schema of a success body; *data* is the wrapped data's schema, if declared."""
    match dialect:
        case "mcp":
            return _with_data(MCP_RESULT, "structuredContent", data)
        case "envelope":
            return _with_data(ENVELOPE, "data", data)
        case _ if data is not None:
            return data
        case _ if blocks_only:
            return ref(CONTENT)
    # Without a declared type, an object is sent as is.
    return {"anyOf": [{"type": "object"}, ref(CONTENT)]}


def _with_data(name: str, member: str, data: Schema | None) -> Schema:
    if data is None:
        return ref(name)
    return {"allOf": [ref(name), object_schema({member: data})]}


def _with_required(schema: Schema, members: Schema) -> Schema:
    """Return the object schema *schema* with *members* added, all of them required."""
    required = list(dict.fromkeys([*schema["required"], *members]))
    return object_schema({**schema["properties"], **members}, required=required)


_ALWAYS = {
    400: "Invalid request",
    413: "Body too large",
    415: "Unsupported media type",
    500: "Internal server error",
}
DESCRIPTIONS = _ALWAYS | {
    401: "Not logged in",
    402: "Subscription required",
    403: "Not allowed",
    404: "Not found",
    409: "Conflict",
    410: "The rest of the list is no longer stored",
    422: "The idempotency key belongs to another call",
    429: "Too many requests",
    503: "Unavailable",
    504: "Timed out",
}
_OTHER = "Failed"


def error_statuses(tool: Tool) -> dict[int, str]:
    """Return *tool*'s known error statuses in order, with the docstring's descriptions or our own.

    Undeclared errors get the operation's `default` response.
    """
    found = {find_code(error.code, error.kind).status for error in tool.settings.raises}
    if tool.gates is not None:
        found |= {CODES[code].status for each in tool.gates.declared for code in codes_of(each)}
    policy = tool.policy
    needs_service = policy is not None and bool(policy.retry or policy.breaker)
    # The server's errors, such as a timeout or an open question.
    codes = {
        "UNAVAILABLE": True,
        "TIMED_OUT": tool.timeout is not None or needs_service,
        "RATE_LIMITED": policy is not None and bool(policy.limits),
        INPUT_REQUIRED: bool(tool.signature.questions),
        "CURSOR_EXPIRED": tool.is_paged,
        "LOGIN_REQUIRED": needs_login(tool),
    }
    found |= {CODES[code].status for code, possible in codes.items() if possible}
    descriptions = {status: DESCRIPTIONS.get(status, _OTHER) for status in found}
    return dict(sorted((descriptions | _statuses_in_docstring(tool.fn.__doc__) | _ALWAYS).items()))


def _statuses_in_docstring(doc: str | None) -> dict[int, str]:
    """Return the statuses and descriptions of the ToolErrors in the Raises section."""
    errors = [ToolError]
    for each in errors:
        errors.extend(each.__subclasses__())
    classes = {each.__name__: each for each in errors}
    found: dict[int, str] = {}
    for name, text in parse(doc).raises.items():
        error = classes.get(name.rpartition(".")[2])
        if error is not None:
            status = find_code(error.code, error.kind).status
            description = text or DESCRIPTIONS.get(status, _OTHER)
            found[status] = "; ".join(filter(None, [found.get(status), description]))
    return found


BEARER = "bearer"
"""The name of the security scheme for tools that require a login."""
RESPONSES = "#/components/responses/"
HEADERS = {
    "ErrorCode": {
        "description": "A stable name for what went wrong, such as INVALID_ARGUMENTS",
        "schema": {"type": "string"},
    },
    "ErrorHint": {
        "description": "What to do about it; non-ASCII characters are written as %XX",
        "schema": {"type": "string"},
    },
    "RetryAfter": {
        "description": "Seconds to wait before repeating the call",
        "schema": {"type": "integer", "minimum": 0},
    },
}
_FUNCTIONS = {"name": "functions", "description": "The functions that can be called"}
_SERVICE = {"name": "service", "description": "The list of functions, this document, and health"}
_ERROR_HEADERS = {
    ERROR_CODE: {"$ref": "#/components/headers/ErrorCode"},
    ERROR_HINT: {"$ref": "#/components/headers/ErrorHint"},
}
_FORM_HEADER = {
    "description": "Sent if the body is not data but content blocks, or the bytes of one block",
    "schema": {"enum": ["content", "image", "audio"]},
}
_LIMIT: Schema = {
    "name": "limit",
    "in": "query",
    "description": "Maximum number of items to return; the Link header points to the next page",
    "schema": {"type": "integer", "minimum": 1, "maximum": 999_999_999},
}
_LINK: Schema = {
    "description": 'The next page, as <url>; rel="next"; sent if limit is set and items remain',
    "schema": {"type": "string"},
}
# The `aligned` convention reads these responses in the operation itself, not through references.
_INLINE_STATUSES = (400, 500)
# The statuses for requests that do not reach a tool.
_BEFORE_THE_CALL = (400, 413, 415)

_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": "object"}
_FUNCTION = object_schema(
    {
        "name": _TEXT,
        "title": _TEXT,
        "description": _TEXT,
        "inputSchema": _OBJECT,
        "outputSchema": _OBJECT,
    },
    required=["name", "description", "inputSchema"],
)
_CHECKS: Schema = {
    "description": "The health checks by name; calls can be served if all are ready",
    "type": "object",
    "additionalProperties": object_schema({"ready": {"type": "boolean"}}),
}


def _health_schema(status: str) -> Schema:
    return object_schema(
        {"status": {"const": status}, "name": _TEXT, "version": _TEXT, "checks": _CHECKS},
        required=["status", "name", "version"],
    )


def tags_of(tools: Iterable[Tool]) -> list[Schema]:
    """Return the operations' tags, with the tools' own first."""
    own = [tool.settings.tags for tool in tools]
    names = {tag for tags in own for tag in tags} - {_FUNCTIONS["name"], _SERVICE["name"]}
    has_untagged = any(not tags or _FUNCTIONS["name"] in tags for tags in own)
    return [
        *({"name": name} for name in sorted(names)),
        *([_FUNCTIONS] if has_untagged else []),
        _SERVICE,
    ]


def operation(tool: Tool, arguments: Schema, data: Schema | None, media: MediaTypes) -> Schema:
    """Return the operation for *tool*; *data* is the schema of its wrapped data, if declared."""
    summary = tool.title or tool.description.partition("\n")[0]
    about = {
        "operationId": f"functions.{tool.name}",
        "summary": summary,
        "description": "" if tool.description == summary else tool.description,
    }
    made: Schema = {
        **{name: text for name, text in about.items() if text},
        "tags": sorted(tool.settings.tags) or [_FUNCTIONS["name"]],
        "requestBody": _request(tool, arguments),
        "responses": _responses(tool, data, media),
        **({"security": [{BEARER: list(scopes_of(tool))}]} if needs_login(tool) else {}),
    }
    if tool.settings.task != "forbidden" or tool.settings.idempotency_key:
        # Imported here: most apps have neither tasks nor idempotency keys.
        from .openapi_tasks import add_to_call

        add_to_call(made, tool)
    result = {} if data is None else data.get("properties", {}).get("result", {})
    is_list = result.get("type") == "array" and "prefixItems" not in result
    if tool.is_paged or is_list:
        made["parameters"] = [*made.get("parameters", ()), _LIMIT]
        made["responses"]["200"].setdefault("headers", {})["Link"] = _LINK
    return made


def _request(tool: Tool, arguments: Schema) -> Schema:
    media: Schema = {"schema": arguments}
    for number, example in enumerate(tool.settings.examples, 1):
        try:
            value = msgspec.json.decode(ENCODER.encode(example))
        except (NotImplementedError, TypeError, ValueError, RecursionError) as exc:
            raise ValueError(f"an example of tool {tool.name!r} is not JSON: {exc}") from None
        media.setdefault("examples", {})[f"example{number}"] = {"value": value}
    # An empty body means {}, so the body is required only if an argument is.
    if tool.signature.argument_object is not None:
        required = bool(tool.input_schema.get("required"))
    else:
        required = any(parameter.required for parameter in tool.parameters)
    return {"required": required, "content": {JSON: media}}


def _responses(tool: Tool, data: Schema | None, media: MediaTypes) -> Schema:
    blocks_only = tool.returns.blocks_only
    content: Schema = {
        name: {"schema": success_schema(dialect, data, blocks_only=blocks_only)}
        for name, dialect in media.success.items()
    }
    if tool.contract.always_200:
        either = [content[JSON]["schema"], _ERROR_SCHEMAS[tool.contract.http]]
        content[JSON] = {"schema": {"anyOf": either}}
    success: Schema = {"description": "Successful execution"}
    if data is None and tool.contract.http not in ("mcp", "envelope"):
        success["headers"] = {FORM: _FORM_HEADER}
        content = with_media_ranges(tool, content)
    errors = error_statuses(tool)
    if tool.contract.always_200:
        errors = {each: errors[each] for each in errors if each in _BEFORE_THE_CALL}
    return {"200": {**success, "content": content}, **error_responses(errors, media)}


def error_responses(statuses: dict[int, str], media: MediaTypes) -> Schema:
    """Return the responses with these statuses and descriptions, and one for other errors."""
    responses: Schema = {}
    for status, description in statuses.items():
        if status in _INLINE_STATUSES or description != DESCRIPTIONS.get(status):
            responses[str(status)] = _error_response(status, description, media)
        else:
            responses[str(status)] = {"$ref": f"{RESPONSES}Error{status}"}
    # Any other error: undeclared by the tool, or from a proxy or middleware.
    return {**responses, "default": {"$ref": f"{RESPONSES}Error"}}


def shared_responses(media: MediaTypes) -> dict[str, Schema]:
    """Return the error responses that tools share, by name."""
    shared = {
        f"Error{status}": _error_response(status, description, media)
        for status, description in DESCRIPTIONS.items()
        if status not in _INLINE_STATUSES
    }
    # The status may be 429 or 503.
    shared["Error"] = _error_response(503, "Any other error", media)
    return shared


def page_paths(media: MediaTypes) -> dict[str, Schema]:
    """Return the paths that are not tools: the list of functions, this document, and health."""
    functions = {"type": "array", "items": _FUNCTION}
    summary = "Whether calls can be served"
    readiness = _page("checkReadiness", summary, _health_schema("ready"), media)
    not_ready = {JSON: {"schema": _health_schema("not ready")}}
    responses = readiness["get"]["responses"]
    responses["503"] = {"description": "Calls cannot be served", "content": not_ready}
    readiness["get"]["responses"] = dict(sorted(responses.items()))
    return {
        "/functions": _page("listFunctions", "The functions", functions, media),
        "/openapi.json": _page("describeService", "This document", _OBJECT, media),
        "/healthz": _page("checkHealth", "Whether the service is up", _health_schema("ok"), media),
        "/readyz": readiness,
    }


def _page(operation_id: str, summary: str, schema: Schema, media: MediaTypes) -> Schema:
    errors = {status: DESCRIPTIONS[status] for status in (400, 500)}
    success = {"description": summary, "content": {JSON: {"schema": schema}}}
    return {
        "get": {
            "operationId": operation_id,
            "summary": summary,
            "tags": ["service"],
            "responses": {"200": success, **error_responses(errors, media)},
        }
    }


def _error_response(status: int, description: str, media: MediaTypes) -> Schema:
    headers = _ERROR_HEADERS
    if status in (429, 503):  # Limits and breakers say when to retry.
        headers = {**headers, RETRY_AFTER: {"$ref": "#/components/headers/RetryAfter"}}
    content = {name: {"schema": _ERROR_SCHEMAS[dialect]} for name, dialect in media.error.items()}
    return {"description": description, "headers": headers, "content": content}


_cache: WeakKeyDictionary[Registry, tuple[Any, bytes]] = WeakKeyDictionary()
"""Each registry's last document as JSON, with the values it was built from."""


def document(registry: Registry, base: str = "", *, dialects: bool = False) -> Schema:
    """Return the OpenAPI 3.1 document for *registry*. Each call returns a new dict.

    *base* is the app's mount point, or empty. *dialects* includes the media types
    of all dialects, not only the contract's.
    """
    decoded: Schema = msgspec.json.decode(document_json(registry, base, dialects=dialects))
    return decoded


def document_json(registry: Registry, base: str = "", *, dialects: bool = False) -> bytes:
    """Return the document as compact JSON, cached until the registry changes."""
    key = (
        base,
        dialects,
        registry.name,
        registry.version,
        registry.description,
        registry.auth,
        *registry.tools.values(),
    )
    cached = _cache.get(registry)
    if cached is None or cached[0] != key:
        made = _document(registry, base or "/", dialects=dialects)
        cached = _cache[registry] = (key, ENCODER.encode(made))
    return cached[1]


def _document(registry: Registry, url: str, *, dialects: bool) -> Schema:
    media = media_types(registry.contract, dialects=dialects)
    shared = shared_schemas(registry.contract)
    tools = shown_to_all(registry.tools.values())
    if registry.has_tasks:
        from .openapi_tasks import TASK_SCHEMAS, task_paths

        shared |= TASK_SCHEMAS
    schemas_of_tools, classes = tool_schemas(tools, shared)
    paths: Schema = {
        registry.contract.route + tool.name: {"post": operation(tool, arguments, data, media)}
        for tool, (arguments, data) in zip(tools, schemas_of_tools, strict=True)
    }
    for tool in tools:
        if tool.settings.task != "forbidden":
            called = paths[registry.contract.route + tool.name]["post"]
            paths |= task_paths(tool, called, media)
    paths |= page_paths(media)
    responses = used_definitions(paths, shared_responses(media), RESPONSES)
    schemas = used_definitions([paths, responses], classes | shared, SCHEMAS)
    components = {"schemas": schemas, "responses": responses, "headers": HEADERS}
    schemes: Schema = {}
    security: list[Schema] = []
    if registry.auth is not None or any(needs_login(tool) for tool in tools):
        schemes = {BEARER: {"type": "http", "scheme": "bearer"}}
    if registry.auth is not None:
        schemes |= registry.auth.security_schemes
        for path in PUBLIC:
            for each in paths.get(path, {}).values():
                each["security"] = []
        security = [*([{}] if registry.auth.anonymous else []), *({name: []} for name in schemes)]
    if schemes:
        components["securitySchemes"] = schemes
    info = {"title": registry.name, "version": registry.version}
    if registry.description:
        info["description"] = registry.description
    return {
        "openapi": "3.1.1",
        "info": info,
        "servers": [{"url": url}],
        # Tools that require a login say so; some linters also expect a `security` for the document.
        "security": security,
        "tags": tags_of(tools),
        "paths": paths,
        "components": components,
    }
