"""Modelled frameworks: what an agent framework's MCP client gives its model of a result.

`tests/matrix` runs the frameworks themselves; a test compares these models with its table.
"""

from __future__ import annotations

from typing import Any

from .hosts import (
    CutByHost,
    Describe,
    Host,
    HostOutput,
    Json,
    OutputPart,
    OutputParts,
    content_blocks,
    content_parts,
    data_part,
    has_data,
    is_failed,
    json_text,
    resource_text,
)


def _uri(block: Json) -> str:
    return str(block.get("uri"))


def _langchain(result: Json) -> HostOutput:
    if _has_audio(result):
        return HostOutput("content", [], failed=False)
    others: dict[str, Describe] = {"resource": resource_text, "resource_link": _uri}
    return HostOutput("content", content_parts(result, others, ("image",)), is_failed(result))


def _has_audio(result: Json) -> bool:
    return any(block.get("type") == "audio" for _, block in content_blocks(result))


def _raised_by_langchain(texts: list[str], result: Json, max_chars: int | None) -> CutByHost | None:
    if not _has_audio(result):
        return None
    return CutByHost([], "nothing: it raises NotImplementedError for audio")


def _openai_agents(result: Json) -> HostOutput:
    others = dict.fromkeys(("audio", "resource", "resource_link"), json_text)
    # The model gets no flag for a failure, only its text.
    return HostOutput("content", content_parts(result, {**others}, ("image",)), failed=False)


def _pydantic_ai(result: Json) -> HostOutput:
    is_text = all(block.get("type") == "text" for _, block in content_blocks(result))
    if has_data(result) and (is_text or is_failed(result)):
        return HostOutput("structuredContent", [_unwrapped(result)], is_failed(result))
    others: dict[str, Describe] = {"resource": resource_text, "resource_link": _uri}
    parts = content_parts(result, others, ("image", "audio"))
    return HostOutput("content", parts, is_failed(result))


def _unwrapped(result: Json) -> OutputPart:
    """Return the data; of `{"result": …}` only the value."""
    data = result["structuredContent"]
    if not isinstance(data, dict) or data.keys() != {"result"}:
        return data_part(result)
    value = data["result"]
    text = value if isinstance(value, str) else json_text(value)
    return OutputPart(("/structuredContent",), text)


def _mcp_use(result: Json) -> HostOutput:
    # Other blocks are written as Python writes them.
    others: dict[str, Describe] = {"resource": resource_text, "resource_link": repr}
    # A failure is an object like any other for the model.
    return HostOutput("content", content_parts(result, others, ("image", "audio")), failed=False)


def _llama_index(result: Json) -> HostOutput:
    """Return the whole result as Python writes it, `_meta` and the bytes of images too."""
    names = {"_meta": "meta", "content": "content", "structuredContent": "structured_content"}
    members = [f"{shown}={result.get(name)!r}" for name, shown in names.items()]
    text = " ".join([*members, f"is_error={is_failed(result)}"])
    return HostOutput("both", _whole(result, text), is_failed(result))


def _google_genai(result: Json) -> HostOutput:
    """Return the whole result as JSON, `_meta` and the bytes of images too."""
    name = "error" if is_failed(result) else "result"
    return HostOutput("both", _whole(result, json_text({name: result})), is_failed(result))


def _whole(result: Json, text: str) -> OutputParts:
    pointers = [at for at, _ in content_blocks(result)]
    return [OutputPart((*pointers, "/structuredContent", "/_meta"), text)]


def _framework(package: str, **members: Any) -> Host:
    return Host(title=package, date="2026-11-17", source=f"the package {package}", **members)


FRAMEWORKS: dict[str, Host] = {
    "langchain": _framework(
        "langchain-mcp-adapters 0.3.2",
        half="content",
        show=_langchain,
        cut=_raised_by_langchain,
    ),
    "openai-agents": _framework("openai-agents 0.24.0", half="content", show=_openai_agents),
    "pydantic-ai": _framework(
        "pydantic-ai-slim 2.66.0", half="structuredContent", show=_pydantic_ai
    ),
    "llama-index": _framework(
        "llama-index-tools-mcp 0.6.0", half="both", show=_llama_index, images="as base64 text"
    ),
    "mcp-use": _framework("mcp-use 1.7.1", half="content", show=_mcp_use),
    "google-genai": _framework(
        "google-genai 3.1.0", half="both", show=_google_genai, images="as base64 text"
    ),
}
"""The modelled frameworks by name."""
