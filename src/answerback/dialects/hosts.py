"""Modelled hosts: what the model behind each host is shown of an MCP result.

Each host is a small function of a result, with the date and the source of what it does. Nothing
here runs a host. A block that no source describes counts as not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from .common import NOT_JSON, encode

CHARACTERS_PER_TOKEN = 4
"""An estimate, which several hosts use too."""
Half: TypeAlias = Literal["structuredContent", "content", "both"]
"""The half of a result that a host shows."""
Json: TypeAlias = dict[str, Any]
_KB = 1024
_MB = 1024 * _KB


class OutputPart(NamedTuple):
    """A text or a media block that a model is shown, and the parts of the result in it."""

    pointers: tuple[str, ...]
    text: str = ""
    media: Json | None = None
    """An image or audio, as MCP's block."""


OutputParts: TypeAlias = list[OutputPart]
Describe: TypeAlias = Callable[[Json], str | None]
"""Returns the text in place of a block; None if nothing is shown."""


class HostOutput(NamedTuple):
    """The parts that a model is shown, before the host cuts them."""

    half: Half
    parts: OutputParts
    failed: bool
    """Whether the model is told that the call failed."""


class CutByHost(NamedTuple):
    """The texts that are left of a reply that is too large, and what happened to the rest."""

    texts: list[str]
    note: str


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A host: how it shows a result, with the date and the source of that."""

    title: str
    half: Half
    """What it shows of a result whose halves differ."""
    show: Callable[[Json], HostOutput]
    date: str
    source: str
    size: str = "not known"
    """What it does with a large reply."""
    cut: Callable[[list[str], Json, int | None], CutByHost | None] | None = None
    """Cuts texts that are too large; None if nothing is cut."""
    images: str = "shown"


def has_data(result: Json) -> bool:
    return result.get("structuredContent") is not None


def is_failed(result: Json) -> bool:
    return result.get("isError") is True


def json_text(value: object) -> str:
    """Return the value as JSON, or a line if it cannot be written as JSON."""
    try:
        return encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return NOT_JSON


def data_part(result: Json) -> OutputPart:
    return OutputPart(("/structuredContent",), json_text(result["structuredContent"]))


def content_blocks(result: Json) -> Iterator[tuple[str, Json]]:
    """Yield the blocks of the content, each with its pointer."""
    content = result.get("content")
    for index, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict):
            yield f"/content/{index}", block


def content_parts(
    result: Json, others: Mapping[str, Describe], media: tuple[str, ...]
) -> OutputParts:
    """Return the parts for the content: texts, *media* as they are, *others* as a line."""
    parts: OutputParts = []
    for pointer, block in content_blocks(result):
        kind = str(block.get("type"))
        if kind == "text":
            parts.append(OutputPart((pointer,), str(block.get("text", ""))))
        elif kind in media:
            parts.append(OutputPart((pointer,), media=block))
        elif kind == "resource" and "image" in media and (image := _embedded_image(block)):
            parts.append(OutputPart((pointer,), media=image))
        elif kind in others and (text := others[kind](block)) is not None:
            parts.append(OutputPart((pointer,), text))
    return parts


def _resource(block: Json) -> Json:
    found = block.get("resource")
    return found if isinstance(found, dict) else {}


def _embedded_image(block: Json) -> Json | None:
    resource = _resource(block)
    mime = str(resource.get("mimeType", ""))
    if not mime.startswith("image/") or not isinstance(resource.get("blob"), str):
        return None
    return {"type": "image", "data": resource["blob"], "mimeType": mime}


def resource_text(block: Json) -> str | None:
    """Return an embedded text; None for bytes."""
    text = _resource(block).get("text")
    return text if isinstance(text, str) else None


def _resource_line(block: Json) -> str:
    """Return an embedded text, or a line about the bytes that are not shown."""
    resource = _resource(block)
    named = f"[resource: {resource.get('uri')}, {resource.get('mimeType')}]"
    return resource_text(block) or named


def _link_line(block: Json) -> str:
    return f"[resource link: {block.get('name')}] {block.get('uri')}"


def _saved_line(block: Json) -> str:
    return f"[{block.get('type')}: {block.get('mimeType')}, saved to a file]"


_TEXT_OF_RESOURCES: dict[str, Describe] = {"resource": resource_text}
_LINES: dict[str, Describe] = {"resource": _resource_line, "resource_link": _link_line}


def _claude_code(result: Json) -> HostOutput:
    if has_data(result):
        return HostOutput("structuredContent", [data_part(result)], is_failed(result))
    others = {**_LINES, "audio": _saved_line}
    return HostOutput("content", content_parts(result, others, ("image",)), is_failed(result))


def _codex(result: Json) -> HostOutput:
    # The model gets no flag for a failure, only its text.
    if has_data(result):
        return HostOutput("structuredContent", [data_part(result)], failed=False)
    blocks = list(content_blocks(result))
    if not any(block.get("type") in ("image", "audio") for _, block in blocks):
        whole = json_text([block for _, block in blocks])
        return HostOutput(
            "content", [OutputPart(tuple(at for at, _ in blocks), whole)], failed=False
        )
    others: dict[str, Describe] = {"resource": json_text, "resource_link": json_text}
    return HostOutput("content", content_parts(result, others, ("image", "audio")), failed=False)


def _both(result: Json) -> HostOutput:
    parts = content_parts(result, _LINES, ("image",))
    if has_data(result):
        parts.append(data_part(result))
    return HostOutput("both" if has_data(result) else "content", parts, is_failed(result))


def _cursor(result: Json) -> HostOutput:
    return HostOutput(
        "content", content_parts(result, _TEXT_OF_RESOURCES, ("image",)), is_failed(result)
    )


def _kimi_code(result: Json) -> HostOutput:
    parts: OutputParts = []
    for pointer, block in content_blocks(result):
        mime = str(block.get("mimeType", ""))
        is_media = mime.startswith(("image/", "audio/"))
        if block.get("type") == "resource_link" and is_media:
            # The provider fetches the link itself.
            parts.append(OutputPart((pointer,), media=block))
        elif block.get("type") == "resource_link":
            parts.append(
                OutputPart((pointer,), f"[not delivered: {mime}; fetch {block.get('uri')}]")
            )
        else:
            alone = {"content": [block]}
            found = content_parts(alone, {"resource": _resource_line}, ("image", "audio"))
            parts += [each._replace(pointers=(pointer,)) for each in found]
    extras: Json = {}
    if has_data(result) and not _repeats_data(result):
        extras["structuredContent"] = result["structuredContent"]
    if meta := _vendor_meta(result.get("_meta")):
        extras["_meta"] = meta
    if extras:
        pointers = tuple(f"/{name}" for name in extras)
        parts.append(
            OutputPart(pointers, f"<mcp-result-extras>{json_text(extras)}</mcp-result-extras>")
        )
    half: Half = "both" if "structuredContent" in extras else "content"
    return HostOutput(half, parts, is_failed(result))


def _vendor_meta(meta: object) -> Json:
    """Return the keys of a `_meta` that are not reserved for the protocol."""
    found = meta if isinstance(meta, dict) else {}
    return {key: value for key, value in found.items() if not _is_reserved(str(key))}


def _is_reserved(key: str) -> bool:
    labels = key.partition("/")[0].split(".")
    return any(label in ("modelcontextprotocol", "mcp") for label in labels[:-1])


def _repeats_data(result: Json) -> bool:
    """Return whether a text is the JSON of the data."""
    return any(
        decoded(block.get("text")) == result["structuredContent"]
        for _, block in content_blocks(result)
        if block.get("type") == "text"
    )


def decoded(text: object) -> object:
    """Return the value of a text that is a JSON object or array; any other value unchanged."""
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text


def _opencode(result: Json) -> HostOutput:
    if is_failed(result):
        return HostOutput("content", content_parts(result, {}, ()), failed=True)
    if not result.get("content") and has_data(result):
        return HostOutput("structuredContent", [data_part(result)], failed=False)
    return HostOutput(
        "content", content_parts(result, {"resource": _resource_line}, ("image",)), failed=False
    )


def _open_webui(result: Json) -> HostOutput:
    if is_failed(result):
        return HostOutput("content", content_parts(result, {}, ()), failed=True)
    # Audio is a file for the user; the model is not shown it.
    parts = content_parts(result, {"resource": _resource_line}, ("image",))
    if not has_data(result) or _repeats_data(result) or _repeats_result(result):
        return HostOutput("content", parts, failed=False)
    return HostOutput("both", [*parts, data_part(result)], failed=False)


def _repeats_result(result: Json) -> bool:
    """Return whether the only text is the value in `{"result": …}`."""
    data = result["structuredContent"]
    texts = [
        block.get("text") for _, block in content_blocks(result) if block.get("type") == "text"
    ]
    is_wrapped = isinstance(data, dict) and data.keys() == {"result"}
    return is_wrapped and len(texts) == 1 and decoded(texts[0]) == data["result"]


def _cut_by_claude_code(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    size = sum(map(len, texts))
    if is_failed(result):
        kept = 11_000
        if size <= kept:
            return None
        return CutByHost(
            [_middle_cut("\n".join(texts), kept)], f"about {kept:,} of {size:,} characters"
        )
    if size <= (max_chars or 50_000):
        return None
    preview = "\n".join(texts)[: 2 * _KB]
    return CutByHost([preview], f"the first 2 KB of {size:,} characters; a file has the rest")


def _cut_by_codex(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    kept = 10_000 * CHARACTERS_PER_TOKEN
    size = sum(map(len, texts))
    if size <= kept:
        return None
    note = f"about {kept:,} of {size:,} characters, without the middle"
    return CutByHost([_middle_cut("\n".join(texts), kept)], note)


def _cut_by_kimi_code(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    whole = "\n".join(texts)
    if len(whole) <= 50_000:
        return None
    note = f"the first 4,096 and the last 1,024 of {len(whole):,} characters; a file has the rest"
    return CutByHost([f"{whole[:4_096]}…{whole[-1_024:]}"], note)


def _cut_by_opencode(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    whole = "\n\n".join(texts)
    lines, kept = whole.split("\n"), 50 * _KB
    if len(lines) <= 2_000 and len(whole.encode()) <= kept:
        return None
    shown: list[str] = []
    for line in lines[:2_000]:
        kept -= len(line.encode()) + 1
        if kept < 0:
            break
        shown.append(line)
    note = f"the first {len(shown):,} of {len(lines):,} lines; a file has the rest"
    return CutByHost(["\n".join(shown)], note)


def _cut_by_claude_ai(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    if len(json_text(result)) <= _MB:
        return None
    return CutByHost(
        ["Tool result is too large. Maximum size is 1MB."], "nothing: it is larger than 1 MB"
    )


def _middle_cut(text: str, kept: int) -> str:
    return f"{text[: kept // 2]}…{text[-kept // 2 :]}"


HOSTS: dict[str, Host] = {
    "claude-code": Host(
        title="Claude Code 2.1.280",
        half="structuredContent",
        show=_claude_code,
        date="2026-10-05",
        source="anthropics/claude-code #79944, #54737, #72271, #53453; code.claude.com/docs/en/mcp",
        size="warns at 10,000 tokens; from 50,000 characters or 25,000 tokens a file and a preview "
        'of 2 KB, unless the tool has `_meta["anthropic/maxResultSizeChars"]`; '
        "an error is cut at about 11,000 characters",
        cut=_cut_by_claude_code,
        images="shown if the reply has no data",
    ),
    "codex": Host(
        title="Codex",
        half="structuredContent",
        show=_codex,
        date="2026-08-22",
        source="openai/codex codex-rs/protocol/src/models.rs; #38287",
        size="cuts the middle out at 10,000 tokens",
        cut=_cut_by_codex,
        images="shown if the reply has no data",
    ),
    "copilot-cli": Host(
        title="Copilot CLI",
        half="both",
        show=_both,
        date="2026-08-17",
        source="github/copilot-cli #4515; until May 2026 only structuredContent, #3258",
    ),
    "cursor": Host(
        title="Cursor",
        half="content",
        show=_cursor,
        date="2026-09-07",
        source="Kashkovsky/threadnote PR 390; cursor/cursor #3400",
    ),
    "kimi-code": Host(
        title="kimi-code 2.1.0",
        half="both",
        show=_kimi_code,
        date="2026-11-17",
        source="the package @moonshot-ai/kimi-code 2.1.0",
        size="from 50,000 characters a file, the first 4,096 and the last 1,024",
        cut=_cut_by_kimi_code,
        images="shown, links to images too; at most 10 MB each",
    ),
    "opencode": Host(
        title="opencode 1.18.34",
        half="content",
        show=_opencode,
        date="2026-11-17",
        source="the package opencode-ai 1.18.34; anomalyco/opencode #38923",
        size="from 2,000 lines or 50 KB a file and the first lines",
        cut=_cut_by_opencode,
        images="shown, links to images are not",
    ),
    "open-webui": Host(
        title="open-webui 0.12.4",
        half="both",
        show=_open_webui,
        date="2026-11-17",
        source="the package open-webui 0.12.4",
        images="shown, links to images are not",
    ),
    "chatgpt": Host(
        title="ChatGPT",
        half="both",
        show=_both,
        date="2026-05-02",
        source="developers.openai.com/apps-sdk/reference; anthropics/claude-code #55677",
    ),
    "claude-ai": Host(
        title="claude.ai",
        half="both",
        show=_both,
        date="2026-06-09",
        source="reported in anthropics/claude-code #55677, #54737; the size in #66519",
        size="nothing is shown of more than 1 MB in Claude Desktop",
        cut=_cut_by_claude_ai,
    ),
}
"""The modelled hosts by name."""
