"""What is checked: a reply in a dialect, with all that several rules want to know of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    from ..contract import Dialect
    from ..versions import Version

MEDIA = ("image", "audio")
_LONG = 2_000
_decode = msgspec.json.decode
_encode = msgspec.json.Encoder(enc_hook=repr).encode


class Circumstances(msgspec.Struct, frozen=True):
    """What is known beside the reply itself."""

    version: Version | None = None
    schema: dict[str, Any] | None = None
    """The tool's output schema."""
    method: str | None = None
    """Which JSON-RPC request it answers."""
    listed: bool = False
    """Whether the tool's listing was seen, so that a schema which is not there is missing."""


NOTHING_KNOWN = Circumstances()

Parsed: TypeAlias = tuple[int, str, Any]
"""A text block that is JSON: where it stands, its text, and the value that it is."""


class Subject:
    """One reply; it is never changed by a check."""

    __slots__ = (
        "_nulls",
        "_parsed",
        "_raw",
        "_told",
        "_unequal",
        "blocks",
        "data",
        "dialect",
        "failed",
        "found",
        "given",
        "media",
        "texts",
        "version",
    )

    def __init__(
        self, found: Any, dialect: Dialect, given: Circumstances, raw: str | None = None
    ) -> None:
        self.found: dict[str, Any] = found
        self.dialect = dialect
        self.given = given
        self.version = given.version
        if dialect == "mcp":
            self.failed = found.get("isError") is True
            self.data = found.get("structuredContent", msgspec.UNSET)
        else:
            self.failed, self.data = _others(found, dialect)
        content = found.get("content")
        self.blocks: list[tuple[int, dict[str, Any]]] = []
        self.texts: list[tuple[int, str]] = []
        self.media: list[tuple[int, str]] = []
        for index, block in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(block, dict):
                continue
            self.blocks.append((index, block))
            noun = block.get("type")
            if noun == "text" and isinstance(block.get("text"), str):
                self.texts.append((index, block["text"]))
            elif noun in MEDIA and isinstance(block.get("data"), str):
                self.media.append((index, block["data"]))
        self._parsed: list[Parsed] | None = None
        self._unequal: list[Parsed] | None = None
        self._raw = raw
        self._nulls: bool | None = None
        self._told: list[tuple[str, str]] | None = None

    @property
    def parsed(self) -> list[Parsed]:
        """The texts that are JSON objects or arrays."""
        if self._parsed is None:
            self._parsed = []
            for index, text in self.texts:
                value = parse(text)
                if value is not None:
                    self._parsed.append((index, text, value))
        return self._parsed

    @property
    def unequal(self) -> list[Parsed]:
        """The texts that are JSON, if there is data and none of them says just that."""
        if self._unequal is None:
            self._unequal = _unequal(self.parsed, self.data)
        return self._unequal

    @property
    def raw(self) -> str:
        """The reply as JSON, without the bytes of pictures and sounds."""
        if self._raw is None:
            self._raw = _as_text(self._without_media() if self.media else self.found)
        return self._raw

    @property
    def has_nulls(self) -> bool:
        """Whether there may be a null, or what is written as one: NaN."""
        if self._nulls is None:
            self._nulls = "null" in self.raw
        return self._nulls

    @property
    def worth_reading(self) -> str:
        """The JSON without the data, where a text says the same, so that nothing is read twice."""
        raw = self.raw
        if len(raw) < _LONG or self.media or not self.parsed or self.unequal:
            return raw
        return _as_text({name: each for name, each in self.found.items() if each is not self.data})

    def error_texts(self) -> list[tuple[str, str]]:
        """Where a failure says what went wrong, and what it says."""
        if self._told is None:
            self._told = self._error_texts()
        return self._told

    def _error_texts(self) -> list[tuple[str, str]]:
        if self.dialect in ("rest", "problem"):
            pairs = [(f"/{name}", self.found.get(name)) for name in ("error", "detail")]
        else:
            pairs = [(f"/content/{index}/text", text) for index, text in self.texts]
            error = self.found.get("error")
            if self.dialect == "envelope" and isinstance(error, dict):
                pairs.append(("/error/message", error.get("message")))
        return [(pointer, text) for pointer, text in pairs if isinstance(text, str)]

    def strings(self) -> Iterator[tuple[str, str]]:
        """Every string in the reply with its pointer, but for the bytes of blocks."""
        for name, value in self.found.items():
            if name != "content":
                yield from walk(value, f"/{escape(name)}")
        for index, block in self.blocks:
            for name, value in block.items():
                if name != "data" or block.get("type") not in MEDIA:
                    yield from walk(value, f"/content/{index}/{escape(name)}")

    def _without_media(self) -> dict[str, Any]:
        kept = [block for _, block in self.blocks if block.get("type") not in MEDIA]
        return {**self.found, "content": kept}


def walk(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Every string in *value* with its pointer, but for the bytes of a resource."""
    for at, each in visited(value, pointer):
        if isinstance(each, str):
            yield at, each


def visited(value: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    """Every value within *value* with its pointer, but for the bytes of a resource."""
    waiting, seen = [(pointer, value)], set[int]()
    while waiting:
        pointer, value = waiting.pop()
        yield pointer, value
        # What comes from Python, and not from JSON, may hold itself.
        if id(value) in seen:
            continue
        if isinstance(value, dict | list | tuple):
            seen.add(id(value))
        if isinstance(value, dict):
            waiting += [
                (f"{pointer}/{escape(str(name))}", each)
                for name, each in value.items()
                if name != "blob"
            ]
        elif isinstance(value, list | tuple):
            waiting += [(f"{pointer}/{index}", each) for index, each in enumerate(value)]


def escape(name: str) -> str:
    """A member's name as a JSON pointer has it."""
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def _others(found: dict[str, Any], dialect: Dialect) -> tuple[bool, Any]:
    """Whether it is a failure, and the data, or UNSET; of a REST reply it is the whole."""
    match dialect:
        case "envelope":
            return found.get("success") is False, found.get("data", msgspec.UNSET)
        case "rest":
            return found.keys() == {"error"}, found
    return True, msgspec.UNSET


def parse(text: str) -> Any:
    """The object or array that a text is the JSON of, or None."""
    start = text[:1]
    if start.isspace():
        text = text.lstrip()
        start = text[:1]
    if start not in ("{", "["):
        return None
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return None


def _unequal(texts: list[Parsed], data: Any) -> list[Parsed]:
    if not texts or not isinstance(data, dict):
        return []
    result = data["result"] if len(data) == 1 and "result" in data else data
    for _, text, value in texts:
        # A file's content is often JSON, and is itself a member of the data.
        if value in (data, result) or text in data.values():
            return []
    return texts


def _as_text(found: Any) -> str:
    try:
        return _encode(found).decode()
    except (TypeError, ValueError, RecursionError):
        # What JSON cannot say (a lone surrogate, a cycle) can still hold a secret.
        return repr(found)
