"""`ReplyView`: a decoded reply, and the values that several rules derive from it.

Also contains helpers shared by the rules: quoting for messages, JSON pointers, declared members,
and the sentence for a failure sent as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from ..contract import Dialect
from ..core.json_value import is_integer
from ..core.limits import MAX_INNER_BYTES
from ..core.secrets import mask
from ..core.versions import Version
from ..dialects.common import without_added
from ..errors import MissingExtraError
from ..types.schema_references import same_value_schemas
from ..verdicts.judge import is_failure_json, json_in_text

# Only the beginning of a string is quoted, and secrets are recognised by their beginning.
_MAX_MASKED = 4096


def kind_name(value: Any) -> str:
    """Return the kind of a JSON value, worded for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
    return "an object"


def quoted(value: Any, limit: int = 60) -> str:
    """Return the `repr` of a value with its secrets masked, truncated to *limit* characters.

    A string is masked before it is cut, because half a secret would not be recognised.
    """
    if isinstance(value, str):
        text = mask(value[:_MAX_MASKED])
        return repr(text if len(text) <= limit else text[: limit - 1] + "…")
    text = mask(repr(value))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def pointer_token(name: str) -> str:
    """Return a member's name, escaped for use in a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def block_at(reply: dict[str, Any], pointer: str) -> dict[str, Any]:
    """Return the content block that a pointer such as `/content/0/data` leads into."""
    block: dict[str, Any] = reply["content"][int(pointer.split("/")[2])]
    return block


def parent_of(value: Any, pointer: str) -> tuple[Any, str]:
    """Return the object or array that holds the value at *pointer*, and the value's key in it."""
    *path, name = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in path:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value, name


def walk_strings(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield every string in *value* with its pointer, except a resource's `blob`."""
    for at, each in walk_values(value, pointer):
        if isinstance(each, str):
            yield at, each


def walk_values(value: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    """Yield *value* and every value in it with its pointer, except a resource's `blob`."""
    waiting, seen = [(pointer, value)], set[int]()
    while waiting:
        pointer, value = waiting.pop()
        yield pointer, value
        # Unlike decoded JSON, a value built in Python can contain itself.
        if id(value) in seen:
            continue
        if isinstance(value, dict | list | tuple):
            seen.add(id(value))
        if isinstance(value, dict):
            waiting += [
                (f"{pointer}/{pointer_token(str(name))}", each)
                for name, each in value.items()
                if name != "blob"
            ]
        elif isinstance(value, list | tuple):
            waiting += [(f"{pointer}/{index}", each) for index, each in enumerate(value)]


def is_declared(data: Any, schema: dict[str, Any]) -> bool:
    """Return whether *schema* declares the failure members in *data*, and *data* matches it."""
    if not isinstance(data, dict):
        return False
    members: dict[str, Any] = data
    schema_of_members: Any = schema
    if data.keys() == {"result"} and isinstance(data["result"], dict):
        properties = schema.get("properties")
        members = data["result"]
        schema_of_members = properties.get("result") if isinstance(properties, dict) else None
    named = named_members(schema_of_members, schema)
    if is_failure_json({name: each for name, each in members.items() if name not in named}):
        return False
    try:
        from ..types.schema_check import schema_check

        return not schema_check(schema)(data)
    except MissingExtraError:
        # Without jsonschema-rs, the data cannot be checked, so it counts as valid.
        return True


def named_members(schema: Any, root: dict[str, Any]) -> set[str]:
    """Return the members that a schema in *root* names, including by reference or in a union."""
    found = same_value_schemas(schema, root, ("allOf", "anyOf", "oneOf"))
    members = [each.get("properties") for each in found]
    return {name for each in members if isinstance(each, dict) for name in each}


_MESSAGE_MEMBERS = (
    *("message", "error", "errors", "detail", "error_description", "msg", "reason", "title"),
    *("errorMessage", "error_message", "errorMessages", "description"),
)
_CODE_MEMBERS = ("code", "errorCode", "error_code", "type", "error_type", "errorType", "__type")
# `isError` replaces the first three; stack traces belong in the log.
_DROPPED = ("success", "ok", "isError", "stack", "trace", "object")


def failure_sentence(failure: Any) -> str:
    """Return `CODE: message (details)`, omitting missing parts; empty if there is no message."""
    if isinstance(failure, list):
        return _as_text(failure)
    if failure.keys() == {"result"} and isinstance(failure["result"], dict):
        return failure_sentence(failure["result"])
    members = dict(failure)
    if members.get("status") in ("error", "fail", "failed"):
        del members["status"]
    inner = members.get("error")
    if isinstance(inner, dict):
        members = {**members, "error": None, **inner}
    message = _pop_first_text(members, _MESSAGE_MEMBERS)
    code = _pop_first_text(members, _CODE_MEMBERS) if message else ""
    rest = {
        name: value
        for name, value in members.items()
        if name not in _DROPPED and value not in (None, "", [], {})
    }
    details = rest.pop("details") if rest.keys() == {"details"} else rest
    text = f"{code}: {message}" if code and code not in message else message
    more = msgspec.json.encode(details).decode() if details else ""
    return f"{text} ({more})" if message and more else text


def _pop_first_text(members: dict[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        if text := _as_text(members.get(name)):
            del members[name]
            return text
    return ""


def _as_text(value: Any) -> str:
    match value:
        case str():
            return value.strip()
        case _ if is_integer(value):
            return str(value)
        case [dict(), *_]:
            return "; ".join(filter(None, map(_issue_text, value)))
        case [str(), *_]:
            return "; ".join(map(str, value))
    return ""


def _issue_text(error: Any) -> str:
    """Return the message of an item in a list of errors, prefixed with its argument's path."""
    if not isinstance(error, dict):
        return ""
    message = _pop_first_text(dict(error), ("message", "msg", "detail", "title"))
    path = error.get("loc") or error.get("path")
    at = ".".join(map(str, path)) if isinstance(path, list) else ""
    return f"{at}: {message}" if at and message else message


MEDIA = ("image", "audio")
_LONG = 2_000
_encode = msgspec.json.Encoder(enc_hook=repr).encode


class CheckContext(msgspec.Struct, frozen=True):
    """Facts about a call that its reply does not state."""

    version: Version | None = None
    schema: dict[str, Any] | None = None
    """The tool's output schema."""
    method: str | None = None
    """The method of the JSON-RPC request that the reply answers."""
    listed: bool = False
    """Whether the tool's `tools/list` entry is known; if so, a None *schema* means it has none."""
    max_chars: int | None = None
    """The tool's `anthropic/maxResultSizeChars`, if it has one."""
    unsent: bool = False
    """Whether the reply is a `Reply`, whose form depends on the tool that returns it."""


NO_CONTEXT = CheckContext()

JsonText: TypeAlias = tuple[int, str, Any]
"""A text block that is JSON: the index of the block, its text, and the decoded value."""


class ReplyView:
    """One reply in one dialect; checks never modify it.

    `blocks`, `texts` and `media` pair an index in `content` with the block, its text or its base64.
    `sent_data` may include a member that our dialect adds to `data`.
    """

    def __init__(
        self, reply: Any, dialect: Dialect, context: CheckContext, json_text: str | None = None
    ) -> None:
        self.json: dict[str, Any] = reply
        self.dialect = dialect
        self.context = context
        self.version = context.version
        if dialect == "mcp":
            self.failed = reply.get("isError") is True
            self.sent_data = reply.get("structuredContent", msgspec.UNSET)
            self.data = without_added(self.sent_data, reply.get("_meta"))
        elif dialect == "envelope":
            self.failed = reply.get("success") is False
            self.data = self.sent_data = reply.get("data", msgspec.UNSET)
        elif dialect == "rest":
            # The whole reply is the data.
            self.failed = reply.keys() == {"error"} and _is_rest_error(reply)
            self.data = self.sent_data = reply
        else:
            self.failed = True
            self.data = self.sent_data = msgspec.UNSET
        content = reply.get("content")
        self.blocks: list[tuple[int, dict[str, Any]]] = []
        self.texts: list[tuple[int, str]] = []
        self.media: list[tuple[int, str]] = []
        for index, block in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(block, dict):
                continue
            self.blocks.append((index, block))
            block_type = block.get("type")
            if block_type == "text" and isinstance(block.get("text"), str):
                self.texts.append((index, block["text"]))
            elif block_type in MEDIA and isinstance(block.get("data"), str):
                self.media.append((index, block["data"]))
        self._json_texts: list[JsonText] | None = None
        self._texts_unlike_data: list[JsonText] | None = None
        self._json_text = json_text
        self._error_texts: list[tuple[str, str]] | None = None

    @property
    def json_texts(self) -> list[JsonText]:
        """The text blocks that are JSON objects or arrays."""
        if self._json_texts is None:
            self._json_texts = []
            left = MAX_INNER_BYTES
            for index, text in self.texts:
                left -= len(text)
                value = json_in_text(text) if left >= 0 else None
                if value is not None:
                    self._json_texts.append((index, text, value))
        return self._json_texts

    @property
    def texts_unlike_data(self) -> list[JsonText]:
        """The text blocks that are JSON; empty if there is no data, or if one of them equals it."""
        if self._texts_unlike_data is None:
            self._texts_unlike_data = _texts_unlike(self.json_texts, self.data)
        return self._texts_unlike_data

    @property
    def json_text(self) -> str:
        """The reply encoded as JSON, without its image and audio blocks."""
        if self._json_text is None:
            shown = self.json
            if self.media:
                others = [block for _, block in self.blocks if block.get("type") not in MEDIA]
                shown = {**self.json, "content": others}
            self._json_text = _encoded(shown)
        return self._json_text

    @property
    def may_have_nulls(self) -> bool:
        """Whether the JSON may contain null (or NaN, which the encoder writes as null)."""
        return "null" in self.json_text

    @property
    def is_stateless(self) -> bool:
        """Whether the MCP version is 2026-07-28 or later; if unknown, inferred from the members."""
        return "resultType" in self.json if self.version is None else self.version.stateless

    @property
    def text_to_scan(self) -> str:
        """The JSON to search for secrets, without long data that a text block repeats."""
        text = self.json_text
        if len(text) < _LONG or self.media or not self.json_texts or self.texts_unlike_data:
            return text
        return _encoded(
            {name: each for name, each in self.json.items() if each is not self.sent_data}
        )

    def error_texts(self) -> list[tuple[str, str]]:
        """Return the strings that say what went wrong, each with its pointer."""
        if self._error_texts is None:
            if self.dialect in ("rest", "problem"):
                pairs = [(f"/{name}", self.json.get(name)) for name in ("error", "detail")]
            else:
                pairs = [(f"/content/{index}/text", text) for index, text in self.texts]
                error = self.json.get("error")
                if self.dialect == "envelope" and isinstance(error, dict):
                    pairs.append(("/error/message", error.get("message")))
            self._error_texts = [
                (pointer, text) for pointer, text in pairs if isinstance(text, str)
            ]
        return self._error_texts

    def strings(self) -> Iterator[tuple[str, str]]:
        """Yield every string in the reply with its pointer, except base64."""
        for name, value in self.json.items():
            if name != "content":
                yield from walk_strings(value, f"/{pointer_token(name)}")
        for index, block in self.blocks:
            for name, value in block.items():
                if name != "data" or block.get("type") not in MEDIA:
                    yield from walk_strings(value, f"/content/{index}/{pointer_token(name)}")


def _is_rest_error(reply: dict[str, Any]) -> bool:
    """Return whether `error` holds an error; a number or an empty value counts as data."""
    error = reply["error"]
    if isinstance(error, str):
        return bool(error.strip())
    return bool(error) and (isinstance(error, dict) or is_failure_json(reply))


def _texts_unlike(texts: list[JsonText], data: Any) -> list[JsonText]:
    if not texts or not isinstance(data, dict):
        return []
    result = data["result"] if len(data) == 1 and "result" in data else data
    for _, text, value in texts:
        # A file's content is often JSON, and may be one of the values in the data.
        if value in (data, result) or text in data.values():
            return []
    return texts


def _encoded(value: Any) -> str:
    try:
        return _encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        # A value that JSON cannot express (a lone surrogate, a cycle) can still hold a secret.
        return repr(value)
