"""Questions of the legacy era: asked on a stream, answered by another POST."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import msgspec

from ...elicitation import Declined
from ...mcp.input_required import LIFETIME
from ...mcp.messages import Id, request_frame
from .sse import Log
from .worker_bus import Answered


class Questions:
    """Those that are open, by who was asked."""

    def __init__(self) -> None:
        self._open: dict[tuple[bytes, Id], asyncio.Future[msgspec.Raw]] = {}

    async def ask(self, nonce: bytes, log: Log, method: str, params: Any) -> msgspec.Raw:
        """Ask the client of a session, and wait for what it says."""
        id = f"ask-{os.urandom(8).hex()}"
        answer = asyncio.get_running_loop().create_future()
        self._open[nonce, id] = answer
        log.append(request_frame(id, method, params))
        try:
            async with asyncio.timeout(LIFETIME):
                result: msgspec.Raw = await answer
            return result
        except TimeoutError:
            raise Declined("The client did not answer") from None
        finally:
            self._open.pop((nonce, id), None)

    def settle(self, note: Answered) -> None:
        answer = self._open.get((note.nonce, note.id))
        if answer is None or answer.done():
            return
        if note.result is not None:
            answer.set_result(msgspec.Raw(note.result))
        else:
            answer.set_exception(Declined("The client did not answer"))

    def give_up(self, nonce: bytes) -> None:
        """Nobody of that session will answer any more."""
        for owner, id in list(self._open):
            if owner == nonce:
                self.settle(Answered(nonce, id, None, None))
