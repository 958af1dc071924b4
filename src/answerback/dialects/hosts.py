"""Modelled hosts and frameworks: how much of an MCP result each shows its model.

The tables give a date and a source for each entry. Nothing here runs a host or a framework;
`tests/matrix` runs the frameworks, and a test compares these models with its table. A block that no
source describes counts as not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from .common import NOT_JSON, encode

CHARACTERS_PER_TOKEN = 4
"""An estimate that several hosts also use."""
Half: TypeAlias = Literal["structuredContent", "content", "both"]
"""The half of a result that a host shows."""
Json: TypeAlias = dict[str, Any]
Describe: TypeAlias = Callable[[Json], str | None]
"""Returns the text that replaces a block; None if nothing is shown."""


class OutputPart(NamedTuple):
    """Text or a media block shown to the model, with pointers to the parts of the result in it."""

    pointers: tuple[str, ...]
    text: str = ""
    media: Json | None = None
    """An MCP image or audio block."""


class HostOutput(NamedTuple):
    """The parts shown to the model, before the host cuts them."""

    half: Half
    parts: list[OutputPart]
    failed: bool
    """Whether the model is told that the call failed."""


class CutByHost(NamedTuple):
    """The text left of an oversized reply, and what happened to the rest."""

    texts: list[str]
    note: str


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """How a host or framework shows a result, with the date and source of that information."""

    title: str
    half: Half
    """What it shows when a result's halves differ."""
    date: str
    source: str
    size: str = "not known"
    """What it does with a large reply."""
    images: str = "shown"
    lines: Mapping[str, Describe] = {}
    """Functions that return the text that replaces a block, by block type."""
    media: tuple[str, ...] = ("image",)
    """The block types that are passed to the model unchanged."""
    flags_failure: bool = True
    """False if the model sees only a failure's text, without the flag."""
    custom_show: Callable[[Json], HostOutput] | None = None
    """For hosts that the members above cannot describe."""
    cut: Callable[[list[str], Json, int | None], CutByHost | None] | None = None
    """Cuts oversized text; returns None if nothing is cut."""

    def show(self, result: Json) -> HostOutput:
        """Return the parts of a result that are shown to the model."""
        if self.custom_show is not None:
            return self.custom_show(result)
        failed = self.flags_failure and is_failed(result)
        if self.half == "structuredContent" and has_data(result):
            return HostOutput("structuredContent", [_data(result)], failed)
        parts = _content(result, self.lines, self.media)
        if self.half == "both" and has_data(result):
            return HostOutput("both", [*parts, _data(result)], failed)
        return HostOutput("content", parts, failed)


def has_data(result: Json) -> bool:
    return result.get("structuredContent") is not None


def is_failed(result: Json) -> bool:
    return result.get("isError") is True


def json_text(value: object) -> str:
    """Return the value as JSON, or a note if it cannot be written as JSON."""
    try:
        return encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return NOT_JSON


def decoded(text: object) -> object:
    """Decode a string that is a JSON object or array; return any other value unchanged."""
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text


def content_blocks(result: Json) -> Iterator[tuple[str, Json]]:
    """Yield the content's blocks, each with its pointer."""
    content = result.get("content")
    for index, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict):
            yield f"/content/{index}", block


def resource_in(block: Json) -> Json:
    """Return an embedded block's resource, or an empty dict if it has none."""
    found = block.get("resource")
    return found if isinstance(found, dict) else {}


def _data(result: Json) -> OutputPart:
    return OutputPart(("/structuredContent",), json_text(result["structuredContent"]))


def _content(
    result: Json, lines: Mapping[str, Describe], media: tuple[str, ...]
) -> list[OutputPart]:
    """Return the content's parts: text, *media* blocks unchanged, and *lines* for the others."""
    found = (_part(at, block, lines, media) for at, block in content_blocks(result))
    return [each for each in found if each is not None]


def _part(
    pointer: str, block: Json, lines: Mapping[str, Describe], media: tuple[str, ...]
) -> OutputPart | None:
    kind = str(block.get("type"))
    if kind == "text":
        return OutputPart((pointer,), str(block.get("text", "")))
    if kind in media:
        return OutputPart((pointer,), media=block)
    if kind == "resource" and "image" in media:
        resource = resource_in(block)
        mime, blob = str(resource.get("mimeType", "")), resource.get("blob")
        if mime.startswith("image/") and isinstance(blob, str):
            image = {"type": "image", "data": blob, "mimeType": mime}
            return OutputPart((pointer,), media=image)
    text = lines[kind](block) if kind in lines else None
    return None if text is None else OutputPart((pointer,), text)


def _resource_text(block: Json) -> str | None:
    text = resource_in(block).get("text")
    return text if isinstance(text, str) else None


def _resource_line(block: Json) -> str:
    resource = resource_in(block)
    named = f"[resource: {resource.get('uri')}, {resource.get('mimeType')}]"
    return _resource_text(block) or named


def _link_line(block: Json) -> str:
    return f"[resource link: {block.get('name')}] {block.get('uri')}"


def _saved_line(block: Json) -> str:
    return f"[{block.get('type')}: {block.get('mimeType')}, saved to a file]"


def _uri(block: Json) -> str:
    return str(block.get("uri"))


_RESOURCES: dict[str, Describe] = {"resource": _resource_line}
_RESOURCES_AND_LINKS: dict[str, Describe] = {**_RESOURCES, "resource_link": _link_line}
_TEXTS_AND_URIS: dict[str, Describe] = {"resource": _resource_text, "resource_link": _uri}


def _codex(result: Json) -> HostOutput:
    # The model sees no flag for a failure, only its text.
    if has_data(result):
        return HostOutput("structuredContent", [_data(result)], failed=False)
    blocks = list(content_blocks(result))
    if any(block.get("type") in ("image", "audio") for _, block in blocks):
        lines: dict[str, Describe] = {"resource": json_text, "resource_link": json_text}
        return HostOutput("content", _content(result, lines, ("image", "audio")), failed=False)
    text = json_text([block for _, block in blocks])
    return HostOutput("content", [OutputPart(tuple(at for at, _ in blocks), text)], failed=False)


def _kimi_code(result: Json) -> HostOutput:
    parts: list[OutputPart] = []
    for at, block in content_blocks(result):
        mime = str(block.get("mimeType", ""))
        if block.get("type") != "resource_link":
            part = _part(at, block, _RESOURCES, ("image", "audio"))
            parts += [] if part is None else [part]
        elif mime.startswith(("image/", "audio/")):
            # The provider fetches the link itself.
            parts.append(OutputPart((at,), media=block))
        else:
            parts.append(OutputPart((at,), f"[not delivered: {mime}; fetch {_uri(block)}]"))
    extras: Json = {}
    if has_data(result) and not _repeats_data(result):
        extras["structuredContent"] = result["structuredContent"]
    meta = result.get("_meta")
    members = meta.items() if isinstance(meta, dict) else ()
    if vendors := {key: value for key, value in members if not _is_reserved(str(key))}:
        extras["_meta"] = vendors
    if extras:
        text = f"<mcp-result-extras>{json_text(extras)}</mcp-result-extras>"
        parts.append(OutputPart(tuple(f"/{name}" for name in extras), text))
    half: Half = "both" if "structuredContent" in extras else "content"
    return HostOutput(half, parts, is_failed(result))


def _is_reserved(key: str) -> bool:
    labels = key.partition("/")[0].split(".")
    return any(label in ("modelcontextprotocol", "mcp") for label in labels[:-1])


def _texts(result: Json) -> list[object]:
    return [
        decoded(block.get("text"))
        for _, block in content_blocks(result)
        if block.get("type") == "text"
    ]


def _repeats_data(result: Json) -> bool:
    return any(text == result["structuredContent"] for text in _texts(result))


def _opencode(result: Json) -> HostOutput:
    if is_failed(result):
        return HostOutput("content", _content(result, {}, ()), failed=True)
    if not result.get("content") and has_data(result):
        return HostOutput("structuredContent", [_data(result)], failed=False)
    return HostOutput("content", _content(result, _RESOURCES, ("image",)), failed=False)


def _open_webui(result: Json) -> HostOutput:
    if is_failed(result):
        return HostOutput("content", _content(result, {}, ()), failed=True)
    # Audio becomes a file for the user; the model does not see it.
    parts = _content(result, _RESOURCES, ("image",))
    if not has_data(result) or _repeats_data(result):
        return HostOutput("content", parts, failed=False)
    data = result["structuredContent"]
    # The data is not shown either if the only text is the value in `{"result": …}`.
    if isinstance(data, dict) and data.keys() == {"result"} and _texts(result) == [data["result"]]:
        return HostOutput("content", parts, failed=False)
    return HostOutput("both", [*parts, _data(result)], failed=False)


def _langchain(result: Json) -> HostOutput:
    if _has_audio(result):
        return HostOutput("content", [], failed=False)
    return HostOutput("content", _content(result, _TEXTS_AND_URIS, ("image",)), is_failed(result))


def _has_audio(result: Json) -> bool:
    return any(block.get("type") == "audio" for _, block in content_blocks(result))


def _pydantic_ai(result: Json) -> HostOutput:
    is_text = all(block.get("type") == "text" for _, block in content_blocks(result))
    if not has_data(result) or not (is_text or is_failed(result)):
        parts = _content(result, _TEXTS_AND_URIS, ("image", "audio"))
        return HostOutput("content", parts, is_failed(result))
    data = result["structuredContent"]
    # Only the value in `{"result": …}` is shown.
    value = data["result"] if isinstance(data, dict) and data.keys() == {"result"} else data
    is_inner_text = isinstance(value, str) and value is not data
    part = OutputPart(("/structuredContent",), value if is_inner_text else json_text(value))
    return HostOutput("structuredContent", [part], is_failed(result))


def _llama_index(result: Json) -> HostOutput:
    """Show the repr of the complete result, including `_meta` and the bytes of images."""
    names = {"_meta": "meta", "content": "content", "structuredContent": "structured_content"}
    members = [f"{shown}={result.get(name)!r}" for name, shown in names.items()]
    return _one_text(result, " ".join([*members, f"is_error={is_failed(result)}"]))


def _google_genai(result: Json) -> HostOutput:
    """Show the complete result as JSON, including `_meta` and the bytes of images."""
    return _one_text(result, json_text({"error" if is_failed(result) else "result": result}))


def _one_text(result: Json, text: str) -> HostOutput:
    pointers = (*(at for at, _ in content_blocks(result)), "/structuredContent", "/_meta")
    return HostOutput("both", [OutputPart(pointers, text)], is_failed(result))


def _ends(texts: list[str], first: int, last: int, note: str) -> CutByHost:
    joined = "\n".join(texts)
    return CutByHost([f"{joined[:first]}…{joined[-last:]}" if last else joined[:first]], note)


def _cut_by_claude_code(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    size = sum(map(len, texts))
    if size <= (11_000 if is_failed(result) else max_chars or 50_000):
        return None
    if is_failed(result):
        return _ends(texts, 5_500, 5_500, f"about 11,000 of {size:,} characters")
    return _ends(texts, 2_048, 0, f"the first 2 KB of {size:,} characters; a file has the rest")


def _cut_by_codex(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    size = sum(map(len, texts))
    if size <= 10_000 * CHARACTERS_PER_TOKEN:
        return None
    note = f"about 40,000 of {size:,} characters, without the middle"
    return _ends(texts, 20_000, 20_000, note)


def _cut_by_kimi_code(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    size = len("\n".join(texts))
    if size <= 50_000:
        return None
    note = f"the first 4,096 and the last 1,024 of {size:,} characters; a file has the rest"
    return _ends(texts, 4_096, 1_024, note)


def _cut_by_opencode(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    joined = "\n\n".join(texts)
    lines, room = joined.split("\n"), 50 * 1024
    if len(lines) <= 2_000 and len(joined.encode()) <= room:
        return None
    shown: list[str] = []
    for line in lines[:2_000]:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        shown.append(line)
    note = f"the first {len(shown):,} of {len(lines):,} lines; a file has the rest"
    return CutByHost(["\n".join(shown)], note)


def _cut_by_claude_ai(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    if len(json_text(result)) <= 1024 * 1024:
        return None
    text = "Tool result is too large. Maximum size is 1MB."
    return CutByHost([text], "nothing: it is larger than 1 MB")


def _raised_by_langchain(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    if not _has_audio(result):
        return None
    return CutByHost([], "nothing: it raises NotImplementedError for audio")


HOSTS: dict[str, Host] = {
    "claude-code": Host(
        title="Claude Code 2.1.280",
        half="structuredContent",
        lines={**_RESOURCES_AND_LINKS, "audio": _saved_line},
        date="2026-10-05",
        source="anthropics/claude-code #79944, #54737, #72271, #53453; code.claude.com/docs/en/mcp",
        size="warns at 10,000 tokens; from 50,000 characters or 25,000 tokens, a file and a "
        '2 KB preview, unless the tool has `_meta["anthropic/maxResultSizeChars"]`; '
        "an error is cut at about 11,000 characters",
        cut=_cut_by_claude_code,
        images="shown if the reply has no data",
    ),
    "codex": Host(
        title="Codex",
        half="structuredContent",
        custom_show=_codex,
        date="2026-08-22",
        source="openai/codex codex-rs/protocol/src/models.rs; #38287",
        size="drops the middle at 10,000 tokens",
        cut=_cut_by_codex,
        images="shown if the reply has no data",
    ),
    "copilot-cli": Host(
        title="Copilot CLI",
        half="both",
        lines=_RESOURCES_AND_LINKS,
        date="2026-08-17",
        source="github/copilot-cli #4515; until May 2026 only structuredContent, #3258",
    ),
    "cursor": Host(
        title="Cursor",
        half="content",
        lines={"resource": _resource_text},
        date="2026-09-07",
        source="Kashkovsky/threadnote PR 390; cursor/cursor #3400",
    ),
    "kimi-code": Host(
        title="kimi-code 2.1.0",
        half="both",
        custom_show=_kimi_code,
        date="2026-11-17",
        source="the package @moonshot-ai/kimi-code 2.1.0",
        size="from 50,000 characters, a file, plus the first 4,096 and the last 1,024",
        cut=_cut_by_kimi_code,
        images="shown, including links to images; at most 10 MB each",
    ),
    "opencode": Host(
        title="opencode 1.18.34",
        half="content",
        custom_show=_opencode,
        date="2026-11-17",
        source="the package opencode-ai 1.18.34; anomalyco/opencode #38923",
        size="from 2,000 lines or 50 KB, a file and the first lines",
        cut=_cut_by_opencode,
        images="shown, but not links to images",
    ),
    "open-webui": Host(
        title="open-webui 0.12.4",
        half="both",
        custom_show=_open_webui,
        date="2026-11-17",
        source="the package open-webui 0.12.4",
        images="shown, but not links to images",
    ),
    "chatgpt": Host(
        title="ChatGPT",
        half="both",
        lines=_RESOURCES_AND_LINKS,
        date="2026-05-02",
        source="developers.openai.com/apps-sdk/reference; anthropics/claude-code #55677",
    ),
    "claude-ai": Host(
        title="claude.ai",
        half="both",
        lines=_RESOURCES_AND_LINKS,
        date="2026-06-09",
        source="reported in anthropics/claude-code #55677, #54737; the size in #66519",
        size="Claude Desktop shows nothing of a reply over 1 MB",
        cut=_cut_by_claude_ai,
    ),
}
"""The modelled hosts by name."""


def _framework(package: str, half: Half, **members: Any) -> Host:
    source = f"the package {package}"
    return Host(title=package, half=half, date="2026-11-17", source=source, **members)


_AS_BASE64 = "as base64 text"
FRAMEWORKS: dict[str, Host] = {
    "langchain": _framework(
        "langchain-mcp-adapters 0.3.2", "content", custom_show=_langchain, cut=_raised_by_langchain
    ),
    "openai-agents": _framework(
        "openai-agents 0.24.0",
        "content",
        lines=dict.fromkeys(("audio", "resource", "resource_link"), json_text),
        flags_failure=False,
    ),
    "pydantic-ai": _framework(
        "pydantic-ai-slim 2.66.0", "structuredContent", custom_show=_pydantic_ai
    ),
    "llama-index": _framework(
        "llama-index-tools-mcp 0.6.0", "both", custom_show=_llama_index, images=_AS_BASE64
    ),
    "mcp-use": _framework(
        "mcp-use 1.7.1",
        "content",
        # Links are written as their Python repr.
        lines={"resource": _resource_text, "resource_link": repr},
        media=("image", "audio"),
        flags_failure=False,
    ),
    "google-genai": _framework(
        "google-genai 3.1.0", "both", custom_show=_google_genai, images=_AS_BASE64
    ),
}
"""The modelled frameworks by name."""
