"""A server's tools for the agent frameworks of others, which make the calls themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from inspect import iscoroutinefunction
from typing import Any, cast

from ..core.content import Block, Text
from ..core.reply import Reply
from . import to_openai
from .model_calls import AsyncCalls, BlockingCalls
from .provider_tools import ModelTools
from .reply_parts import TextOptions


class FrameworkTool:
    """A tool whose name and schema any provider takes; a call returns a reply in every case."""

    def __init__(
        self,
        server: AsyncCalls | BlockingCalls,
        kit: ModelTools,
        function: Mapping[str, Any],
        options: TextOptions,
    ) -> None:
        self.name: str = function["name"]
        self.description: str = function.get("description", "")
        self.schema: dict[str, Any] = function["parameters"]
        self._server = server
        self._kit = kit
        self._options = options

    async def call(self, arguments: str | Mapping[str, Any]) -> Reply[Any]:
        if not iscoroutinefunction(self._server.call):
            return await asyncio.to_thread(self.call_blocking, arguments)
        server = cast("AsyncCalls", self._server)
        _, reply, _ = await self._kit.run(server, self._call(arguments))
        return reply

    def call_blocking(self, arguments: str | Mapping[str, Any]) -> Reply[Any]:
        if iscoroutinefunction(self._server.call):
            raise NotImplementedError("the server is async: await the tool, or use `with connect`")
        server = cast("BlockingCalls", self._server)
        _, reply, _ = self._kit.run(server, self._call(arguments))
        return reply

    def _call(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        return {"function": {"name": self.name, "arguments": arguments}}

    def text(self, reply: Reply[Any]) -> str:
        return reply.for_model(self._options.budget, untrusted=self._options.untrusted)

    def result(self, reply: Reply[Any]) -> dict[str, Any] | None:
        """Return the server's whole result, which frameworks can store as JSON."""
        return reply.raw if isinstance(reply.raw, dict) else None

    def blocks(self, reply: Reply[Any]) -> tuple[Block, ...]:
        """Return the texts, and images and audio as they are."""
        return reply.blocks_for_model(self._options.budget, untrusted=self._options.untrusted)


def framework_tools(
    server: AsyncCalls | BlockingCalls, tools: Any, options: TextOptions
) -> list[FrameworkTool]:
    kit = to_openai(tools)
    return [FrameworkTool(server, kit, each["function"], options) for each in kit.tools]


def text_of(block: Block) -> str:
    """Return a text, or the line that describes a block of another kind."""
    return block.text if isinstance(block, Text) else Reply(content=(block,)).for_model()
