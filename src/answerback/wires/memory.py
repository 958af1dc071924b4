"""No wire at all: a call from the same process, through the whole pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..calls.pipeline import Call, settled
from ..peer import NO_PEER, Peer

if TYPE_CHECKING:
    from ..app import App
    from ..reply import Reply


async def call(app: App, name: str, arguments: bytes, peer: Peer = NO_PEER) -> Reply[Any]:
    return settled(await app.paths.tools(Call(name, arguments, peer)))
