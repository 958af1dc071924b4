"""`ReplyView`: a decoded reply, and the values that several rules derive from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from ..contract import Dialect
from ..core.limits import MAX_INNER_BYTES
from ..core.versions import Version
from ..dialects.common import without_added
from ..dialects.verdicts import is_failure_json, json_in_text
from .json_values import pointer_token, walk_strings

MEDIA = ("image", "audio")
_LONG = 2_000
_encode = msgspec.json.Encoder(enc_hook=repr).encode


class CheckContext(msgspec.Struct, frozen=True):
    """The facts about a call that its reply does not state."""

    version: Version | None = None
    schema: dict[str, Any] | None = None
    """The tool's output schema."""
    method: str | None = None
    """The method of the JSON-RPC request that the reply answers."""
    listed: bool = False
    """Whether the tool's `tools/list` entry is known; then no *schema* means that it has none."""
    max_chars: int | None = None
    """The tool's `anthropic/maxResultSizeChars`, if it has one."""
    unsent: bool = False
    """Whether the reply is a `Reply`: the tool that returns it decides about its form."""


NO_CONTEXT = CheckContext()

JsonText: TypeAlias = tuple[int, str, Any]
"""A text block that is JSON: the index of the block, its text, and the decoded value."""


class ReplyView:
    """One reply in one dialect; a check never changes it.

    `blocks`, `texts` and `media` pair an index in `content` with the block, its text or its base64.
    `sent_data` may have a member that our dialect adds to `data`.
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
        else:
            self.failed, self.data = _failed_and_data(reply, dialect)
            self.sent_data = self.data
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
        """The text blocks that are JSON; none if there is no data, or if one of them equals it."""
        if self._texts_unlike_data is None:
            self._texts_unlike_data = _texts_unlike(self.json_texts, self.data)
        return self._texts_unlike_data

    @property
    def json_text(self) -> str:
        """The reply encoded as JSON, without its image and audio blocks."""
        if self._json_text is None:
            self._json_text = _encoded(self._without_media() if self.media else self.json)
        return self._json_text

    @property
    def may_have_nulls(self) -> bool:
        """Whether the JSON may hold null, or NaN, which the encoder writes as null."""
        return "null" in self.json_text

    @property
    def is_stateless(self) -> bool:
        """Whether the reply is of 2026-07-28 or later; without a version, its members tell."""
        return "resultType" in self.json if self.version is None else self.version.stateless

    @property
    def text_to_scan(self) -> str:
        """The JSON to search for secrets; long data that a text repeats is left out."""
        text = self.json_text
        if len(text) < _LONG or self.media or not self.json_texts or self.texts_unlike_data:
            return text
        return _encoded(
            {name: each for name, each in self.json.items() if each is not self.sent_data}
        )

    def error_texts(self) -> list[tuple[str, str]]:
        """Return the texts in which a failure says what went wrong, each with its pointer."""
        if self._error_texts is None:
            self._error_texts = self._find_error_texts()
        return self._error_texts

    def _find_error_texts(self) -> list[tuple[str, str]]:
        if self.dialect in ("rest", "problem"):
            pairs = [(f"/{name}", self.json.get(name)) for name in ("error", "detail")]
        else:
            pairs = [(f"/content/{index}/text", text) for index, text in self.texts]
            error = self.json.get("error")
            if self.dialect == "envelope" and isinstance(error, dict):
                pairs.append(("/error/message", error.get("message")))
        return [(pointer, text) for pointer, text in pairs if isinstance(text, str)]

    def strings(self) -> Iterator[tuple[str, str]]:
        """Yield every string in the reply with its pointer, except base64."""
        for name, value in self.json.items():
            if name != "content":
                yield from walk_strings(value, f"/{pointer_token(name)}")
        for index, block in self.blocks:
            for name, value in block.items():
                if name != "data" or block.get("type") not in MEDIA:
                    yield from walk_strings(value, f"/content/{index}/{pointer_token(name)}")

    def _without_media(self) -> dict[str, Any]:
        kept = [block for _, block in self.blocks if block.get("type") not in MEDIA]
        return {**self.json, "content": kept}


def _failed_and_data(reply: dict[str, Any], dialect: Dialect) -> tuple[bool, Any]:
    """Return whether the reply is a failure, and its data or UNSET; a REST reply is all data."""
    match dialect:
        case "envelope":
            return reply.get("success") is False, reply.get("data", msgspec.UNSET)
        case "rest":
            return reply.keys() == {"error"} and _is_rest_error(reply), reply
    return True, msgspec.UNSET


def _is_rest_error(reply: dict[str, Any]) -> bool:
    """Return whether `error` holds an error; a number, or an empty value, is data."""
    error = reply["error"]
    if isinstance(error, str):
        return bool(error.strip())
    return bool(error) and (isinstance(error, dict) or is_failure_json(reply))


def _texts_unlike(texts: list[JsonText], data: Any) -> list[JsonText]:
    if not texts or not isinstance(data, dict):
        return []
    result = data["result"] if len(data) == 1 and "result" in data else data
    for _, text, value in texts:
        # A file's content is often JSON, and is itself a member of the data.
        if value in (data, result) or text in data.values():
            return []
    return texts


def _encoded(value: Any) -> str:
    try:
        return _encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        # A value that JSON cannot express (a lone surrogate, a cycle) can still hold a secret.
        return repr(value)
