"""The wire in memory: a call from the same process, through the whole pipeline."""

from __future__ import annotations

from typing import Any

import msgspec

from ..calls.call import Call, reply_or_refusal
from ..calls.handlers import Handlers
from ..contract import STANDARD, Contract
from ..dialects.contract_text import content_with_text
from ..peer import NO_PEER, Peer
from ..reply import Reply


async def call(
    handlers: Handlers,
    name: str,
    arguments: bytes,
    peer: Peer = NO_PEER,
    *,
    contract: Contract = STANDARD,
) -> Reply[Any]:
    """The reply, with the texts that *contract* adds to it."""
    call = Call(name, arguments, peer)
    reply = reply_or_refusal(await handlers.tools(call))
    return msgspec.structs.replace(
        reply,
        content=content_with_text(reply, call.shape, contract),
        shape=call.shape,
        contract=contract,
    )
