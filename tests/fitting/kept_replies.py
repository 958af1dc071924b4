"""Keeps whole replies in a dict, and checks what a reply says against its whole."""

from __future__ import annotations

from typing import Any

import msgspec

from answerback import App, Link, Reply, Text
from answerback.calls.reply_check import reply_to
from answerback.core.content import Embedded
from answerback.core.reply import Cut
from answerback.core.shape import Shape
from answerback.dialects import mcp
from answerback.fitting.fit import fit
from answerback.registry.declarations import registry_of
from answerback.tools.tool import Tool


class Kept:
    """Whole replies by URI."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    async def keep(self, body: bytes) -> str | None:
        uri = f"answerback://replies/{len(self.bodies):027}"
        self.bodies[uri] = body
        return uri


class Fitted(msgspec.Struct, frozen=True):
    """A reply before and after it was fitted."""

    tool: Tool
    shape: Shape
    whole: Reply[Any]
    reply: Reply[Any]
    kept: dict[str, bytes]

    @property
    def result(self) -> dict[str, Any]:
        """The result that MCP sends."""
        sent: dict[str, Any] = msgspec.json.decode(
            mcp.write(self.reply, self.shape, self.tool.contract)
        )
        return sent

    @property
    def halves(self) -> tuple[int, int]:
        """The characters of the texts, and those of the structured content."""
        texts = 0
        for block in self.reply.content if self.reply.ok else ():
            if isinstance(block, Link | Embedded):
                texts += (
                    len(block.uri)
                    + len(getattr(block, "name", ""))
                    + len(getattr(block, "text", ""))
                )
        texts += sum(len(block.get("text", "")) for block in self.result["content"])
        structured = self.result.get("structuredContent")
        return texts, 0 if structured is None else len(msgspec.json.encode(structured).decode())


async def fitted(app: App, name: str, value: object) -> Fitted:
    """Return the reply of a tool that returned *value*, before and after it was fitted."""
    tool = registry_of(app).tools[name]
    whole = reply_to(tool, value)
    shape = whole.shape or tool.shape
    kept = Kept()
    reply = await fit(whole, tool, shape, kept.keep)
    return Fitted(tool, shape, whole, reply, kept.bodies)


def difference(whole: Any, sent: Any, cuts: tuple[Cut, ...], path: str = "") -> list[Cut]:
    """Return the cuts that explain how *sent* differs from *whole*; fail at any other change."""
    if type(whole) is type(sent) is dict:
        assert list(whole) == list(sent), path
        steps = [(name, whole[name], sent[name]) for name in whole]
    elif type(whole) is type(sent) is list:
        assert len(sent) <= len(whole), path
        steps = [(n, whole[n], sent[n]) for n in range(len(sent))]
    else:
        assert type(whole) is type(sent), path
        steps = []
    found = []
    if whole != sent and (len(steps) < len(whole) if steps or whole == [] else True):
        found = [_cut_at(path, whole, sent, cuts)] if not isinstance(whole, dict) else []
    for step, before, after in steps:
        below = f"{path}.{step}" if path else str(step)
        found += difference(before, after, cuts, below)
    return found


def _cut_at(path: str, whole: Any, sent: Any, cuts: tuple[Cut, ...]) -> Cut:
    cut = next(each for each in cuts if each.path == path)
    if isinstance(whole, list):
        assert (cut.unit, cut.returned, cut.total) == ("items", len(sent), len(whole))
        assert sent
    else:
        assert isinstance(whole, str)
        assert whole.startswith(sent)
        if cut.unit == "lines":
            assert sent.endswith("\n")
            assert cut.returned == len(sent.split("\n")) - 1
            assert cut.total == len(whole.removesuffix("\n").split("\n"))
        else:
            assert (cut.returned, cut.total) == (len(sent), len(whole))
    assert 0 < cut.returned < cut.total
    return cut


def said(reply: Reply[Any]) -> str:
    """Return the texts of a reply."""
    return "\n".join(block.text for block in reply.content if isinstance(block, Text))
