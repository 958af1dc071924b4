"""Tools for language models, converted to and from the OpenAI, Anthropic and Gemini formats.

kit = to_openai(app)
kit.tools                           # the JSON to send
result = kit.run(server, call)      # makes a call that the model requested
kit.messages([result])              # the messages for the model
"""

from __future__ import annotations

from functools import partial
from typing import Any

from .provider_rules import ANTHROPIC, GEMINI, OPENAI, OPENAI_RESPONSES
from .provider_tools import ConversionReport, ModelTools, Strict, ToolEntry, ToolReport
from .schema_conversion import Converted

__all__ = [
    "ConversionReport",
    "ModelTools",
    "ToolReport",
    "to_anthropic",
    "to_gemini",
    "to_openai",
    "to_openai_responses",
]


def to_openai(tools: Any, *, strict: Strict = False, functions: bool = False) -> ModelTools:
    """Convert a set of tools for Chat Completions.

    *tools* is an App, a list of any library's MCP tools, or the result of `tools/list`. *strict*
    asks for strict schemas, for all tools or the named ones, wherever nothing is lost. *functions*
    uses the API's original form, with `functions` and the "function" role.
    """
    write = _function if functions else _openai_tool
    return ModelTools(tools, OPENAI, write, strict=strict, functions=functions)


def to_openai_responses(tools: Any, *, strict: Strict = False) -> ModelTools:
    """Convert a set of tools for OpenAI's Responses API; *strict* works as in `to_openai`."""
    return ModelTools(tools, OPENAI_RESPONSES, _responses_tool, strict=strict)


def to_anthropic(tools: Any, *, strict: Strict = False) -> ModelTools:
    """Convert a set of tools for Anthropic's Messages API; *strict* works as in `to_openai`."""
    return ModelTools(tools, ANTHROPIC, partial(_function, schema="input_schema"), strict=strict)


def to_gemini(tools: Any) -> ModelTools:
    """Convert a set of tools into function declarations for the Gemini API.

    Gemini has no strict tools; the VALIDATED request mode comes closest.
    """
    return ModelTools(tools, GEMINI, _gemini_declaration)


def _function(
    name: str, tool: ToolEntry, converted: Converted, strict: bool, schema: str = "parameters"
) -> dict[str, Any]:
    about = {"description": tool.description} if tool.description else {}
    function = {"name": name, **about, schema: converted.schema}
    return function | {"strict": True} if strict else function


def _openai_tool(name: str, tool: ToolEntry, converted: Converted, strict: bool) -> dict[str, Any]:
    return {"type": "function", "function": _function(name, tool, converted, strict)}


def _responses_tool(
    name: str, tool: ToolEntry, converted: Converted, strict: bool
) -> dict[str, Any]:
    # Without this member, the API makes the schema strict by default.
    return {"type": "function", **_function(name, tool, converted, strict), "strict": strict}


def _gemini_declaration(
    name: str, tool: ToolEntry, converted: Converted, strict: bool
) -> dict[str, Any]:
    # The API requires a description.
    declaration = {"name": name, "description": tool.description or tool.name}
    return declaration | {"parametersJsonSchema": converted.schema}
