"""What a running tool knows about its call, and its line to the other end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from .peer import Level, Log, Progress, Question

if TYPE_CHECKING:
    from .call import Call

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
        return self._call.cancelled

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the tool has come; may be called from any thread."""
        self._call.peer.notify(Progress(progress, total, message))

    def log(self, data: Any, level: Level = "info", *, logger: str | None = None) -> None:
        """Say something beside the reply; may be called from any thread."""
        self._call.peer.notify(Log(level, data, logger or self._call.name))

    async def elicit(self, message: str, type: type[T]) -> T:
        """Ask the user; raises Declined if there is no answer.

        In modern MCP the function is run again from its start once there is one:
        what stands before the question runs twice.
        """
        from .questions import Form

        form = Form(message, type)
        answer: T = form.answer(await self._call.peer.ask(form.question()))
        return answer

    async def sample(
        self, prompt: str, *, max_tokens: int = 1000, system: str | None = None, **more: Any
    ) -> Sample:
        """Have the client's model say something; *more* goes into the request as it is."""
        params: dict[str, Any] = {
            "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
            "maxTokens": max_tokens,
        }
        params |= more if system is None else {"systemPrompt": system, **more}
        said = await self._call.peer.ask(Question("sampling/createMessage", params))
        content = said.get("content")
        text = content.get("text", "") if isinstance(content, dict) else ""
        return Sample(text, content, said.get("model", ""), said.get("stopReason"))

    async def roots(self) -> list[Root]:
        """The places that the client lets the tool work in."""
        said = await self._call.peer.ask(Question("roots/list", {}))
        return msgspec.convert(said.get("roots", []), list[Root])
