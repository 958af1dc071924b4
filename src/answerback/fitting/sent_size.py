"""The size of a reply as MCP sends it: the characters of its text, and those of its data.

Images, audio and other bytes are not counted, because hosts do not show them as text.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..contract import Contract
from ..core.reply import Reply
from ..core.shape import Shape
from ..dialects import mcp
from .pieces import characters

_WRAPPING = 20
"""More than the characters that a shape adds to the data, as in `{"result":…}`."""
_BYTES = 4
"""The most bytes of one character in UTF-8."""


class _Resource(msgspec.Struct):
    text: str = ""


class _Block(msgspec.Struct):
    """The members of a block that a model may read."""

    text: str = ""
    uri: str = ""
    name: str = ""
    title: str = ""
    description: str = ""
    resource: _Resource = msgspec.field(default_factory=_Resource)

    @property
    def size(self) -> int:
        own = (self.text, self.uri, self.name, self.title, self.description, self.resource.text)
        return sum(map(len, own))


class _Sent(msgspec.Struct):
    content: list[_Block]
    structured: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="structuredContent")


_decode = msgspec.json.Decoder(_Sent).decode


def sent_size(reply: Reply[Any], shape: Shape, contract: Contract) -> int:
    """Return the characters of the larger half."""
    sent = _decode(mcp.write(reply, shape, contract))
    return max(sum(block.size for block in sent.content), characters(bytes(sent.structured)))


def is_over(reply: Reply[Any], shape: Shape, contract: Contract, budget: int) -> bool:
    """Return whether a half of the reply has more than *budget* characters."""
    encoded = reply.encoded
    # Most replies need not be written to know their size.
    if encoded is not None and shape.structured:
        if len(encoded) > budget * _BYTES:
            return True
        is_bare = not reply.content and contract.text in ("json", "json_first")
        if is_bare and shape.wrapping != "spread" and len(encoded) + _WRAPPING <= budget:
            return False
    return sent_size(reply, shape, contract) > budget
