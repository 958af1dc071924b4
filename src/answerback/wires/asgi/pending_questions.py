"""Questions in the stateful era: sent on a stream, answered by another POST."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import msgspec

from ...elicitation import Declined
from ...mcp.input_required import LIFETIME
from ...mcp.jsonrpc import request_frame
from ...mcp.params import Id
from .sse import EventStream
from .worker_bus import QuestionAnswered


class PendingQuestions:
    """The questions that wait for an answer, by session and request id."""

    def __init__(self) -> None:
        self._open: dict[tuple[bytes, Id], asyncio.Future[msgspec.Raw]] = {}

    async def ask(self, nonce: bytes, stream: EventStream, method: str, params: Any) -> msgspec.Raw:
        """Ask the client of a session, and wait for its answer."""
        id = f"ask-{os.urandom(8).hex()}"
        answer = asyncio.get_running_loop().create_future()
        self._open[nonce, id] = answer
        stream.append(request_frame(id, method, params))
        try:
            async with asyncio.timeout(LIFETIME):
                result: msgspec.Raw = await answer
            return result
        except TimeoutError:
            raise Declined("The client did not answer") from None
        finally:
            self._open.pop((nonce, id), None)

    def resolve(self, message: QuestionAnswered) -> None:
        """Give an answer to the call that waits for it, if it waits in this worker."""
        answer = self._open.get((message.nonce, message.id))
        if answer is None or answer.done():
            return
        if message.result is not None:
            answer.set_result(msgspec.Raw(message.result))
        else:
            answer.set_exception(Declined("The client did not answer"))

    def decline_all(self, nonce: bytes) -> None:
        """The session has ended, so its questions get no answer."""
        for owner, id in list(self._open):
            if owner == nonce:
                self.resolve(QuestionAnswered(nonce, id, None))
