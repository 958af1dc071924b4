"""The wire in memory: a call from the same process, through the whole pipeline."""

from __future__ import annotations

from typing import Any

from ..calls.call import Call, reply_or_refusal
from ..calls.handlers import Handlers
from ..peer import NO_PEER, Peer
from ..reply import Reply


async def call(handlers: Handlers, name: str, arguments: bytes, peer: Peer = NO_PEER) -> Reply[Any]:
    return reply_or_refusal(await handlers.tools(Call(name, arguments, peer)))
