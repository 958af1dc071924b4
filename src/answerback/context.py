"""What a running tool knows about its call, and its line to the other end."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

from .peer import Abilities, Level, Log, NeedsInput, Progress, Question

if TYPE_CHECKING:
    from .calls.pipeline import Call

T = TypeVar("T")


class Root(msgspec.Struct, frozen=True):
    """A place that the client lets the tool work in."""

    uri: str
    name: str | None = None


class Sample(msgspec.Struct, frozen=True):
    """What the client's model said; `text` is empty if it said it otherwise than in words."""

    text: str
    content: Any
    model: str = ""
    stop_reason: str | None = None


class Context:
    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    @property
    def tool(self) -> str:
        return self._call.name

    @property
    def wire(self) -> str:
        return self._call.wire

    @property
    def cancelled(self) -> bool:
        """Whether the caller no longer waits; a long tool looks now and then, and stops."""
        call = self._call
        return call.cancelled or (call.is_gone is not None and call.is_gone())

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the tool has come; may be called from any thread."""
        self._call.peer.notify(Progress(progress, total, message))

    def log(self, data: Any, level: Level = "info", *, logger: str | None = None) -> None:
        """Say something beside the reply; may be called from any thread."""
        self._call.peer.notify(Log(level, data, logger or self._call.name))

    @property
    def can(self) -> Abilities:
        """What the other end can be asked."""
        return self._call.peer.can

    @overload
    async def elicit(self, message: str, form: type[T], *, key: str | None = None) -> T: ...
    @overload
    async def elicit(
        self, message: str, form: dict[str, Any], *, key: str | None = None
    ) -> dict[str, Any]: ...
    async def elicit(self, message: str, form: Any, *, key: str | None = None) -> Any:
        """Ask the user; raises Declined if there is no answer.

        *form* is the type of the answer, or a JSON Schema for a form of your own.
        In modern MCP the function is run again from its start once there is an answer:
        what stands before the question runs twice. *key* names the question there.
        """
        from .elicitation import Form

        asked = Form(message, form, key=key)
        return await asked.ask(self._call.peer)

    async def sample(
        self,
        prompt: str,
        *,
        max_tokens: int = 1000,
        system: str | None = None,
        key: str | None = None,
        **more: Any,
    ) -> Sample:
        """Have the client's model say something; *more* goes into the request as it is."""
        params: dict[str, Any] = {
            "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
            "maxTokens": max_tokens,
        }
        params |= more if system is None else {"systemPrompt": system, **more}
        said = await self._call.peer.ask(Question("sampling/createMessage", params, key))
        content = said.get("content")
        text = content.get("text", "") if isinstance(content, dict) else ""
        return Sample(text, content, said.get("model", ""), said.get("stopReason"))

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """The places that the client lets the tool work in."""
        said = await self._call.peer.ask(Question("roots/list", {}, key))
        return msgspec.convert(said.get("roots", []), list[Root])

    def hang_up(self) -> None:
        """Close the line to a client that can come back for the answer; else do nothing."""
        self._call.peer.hang_up()

    async def together(self, *questions: Awaitable[Any]) -> tuple[Any, ...]:
        """Ask several at once: `await ctx.together(ctx.elicit(…), ctx.roots())`."""
        answers: list[Any] = []
        open_questions: dict[str, Question] = {}
        for question in questions:
            try:
                answers.append(await question)
            except NeedsInput as later:
                open_questions |= later.questions
        if open_questions:
            raise NeedsInput(open_questions)
        return tuple(answers)
