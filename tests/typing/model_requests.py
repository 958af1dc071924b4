"""The providers' packages take what a kit has. Type-checked, not run.

The types of their parameters are written here as the packages of OpenAI, Anthropic and Google have
them: typed dicts, and unions of them.
"""

from collections.abc import Iterable
from typing import Any, Literal, Required, TypeAlias, TypedDict

from answerback import Reply
from answerback.models import to_anthropic, to_gemini, to_openai


class FunctionTool(TypedDict, total=False):
    type: Required[Literal["function"]]
    function: Required[dict[str, object]]


class OtherTool(TypedDict, total=False):
    type: Required[Literal["custom"]]


class UserMessage(TypedDict, total=False):
    role: Required[Literal["user"]]
    content: Required[str | Iterable[dict[str, object]]]


class ToolMessage(TypedDict, total=False):
    role: Required[Literal["tool"]]
    tool_call_id: Required[str]


class Content:
    """Google's parameters are classes, or dicts with the same members."""


Message: TypeAlias = UserMessage | ToolMessage


def chat(*, messages: Iterable[Message], tools: Iterable[FunctionTool | OtherTool]) -> None: ...


def generate(*, contents: list[Content] | list[Message] | str, tools: list[Content]) -> None: ...


def ask(tools: list[Any], reply: Reply[Any]) -> None:
    question: UserMessage = {"role": "user", "content": "Will it rain?"}
    kit = to_openai(tools, strict=True)
    chat(messages=[question, *kit.messages([("call_1", reply)])], tools=kit.tools)
    chat(messages=[question, kit.message("call_1", reply)], tools=kit.tools)
    other = to_anthropic(tools)
    conversation: list[Message] = [question]
    conversation += other.messages([("call_1", reply)])
    chat(messages=conversation, tools=other.tools)
    third = to_gemini(tools)
    generate(contents=third.messages([("1", reply, "rain")]), tools=third.tools)
