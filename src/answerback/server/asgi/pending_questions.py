"""Questions in the stateful era: sent on a stream, answered by another POST."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable

import msgspec

from ...core.json_value import Json
from ...protocol.jsonrpc import Id, request_frame
from ...protocol.refusals import LIFETIME
from ...tools.elicitation import Declined
from .sse import EventStream
from .worker_sockets import QuestionAnswered

_ASKED = re.compile(r"ask-([0-9]{1,5})_[0-9a-f]{16}")
_NO_ANSWER = "The client did not answer"
_SHUTTING_DOWN = "The server is shutting down, so the client cannot answer"


class PendingQuestions:
    """The questions that wait for an answer, by session and request id."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._open: dict[tuple[bytes, Id], asyncio.Future[msgspec.Raw]] = {}
        self._closed = False

    async def ask(
        self, nonce: bytes, stream: EventStream, method: str, params: Json
    ) -> msgspec.Raw:
        """Ask the client of a session, and wait for its answer."""
        if self._closed:
            raise Declined(_SHUTTING_DOWN)
        id = f"ask-{self._worker}_{os.urandom(8).hex()}"
        answer = asyncio.get_running_loop().create_future()
        self._open[nonce, id] = answer
        stream.append(request_frame(id, method, params))
        try:
            async with asyncio.timeout(LIFETIME):
                result: msgspec.Raw = await answer
            return result
        except TimeoutError:
            raise Declined(_NO_ANSWER) from None
        finally:
            self._open.pop((nonce, id), None)

    def resolve(self, message: QuestionAnswered) -> None:
        """Pass an answer to the waiting call, if it is in this worker."""
        answer = self._open.get((message.nonce, message.id))
        if answer is None or answer.done():
            return
        if message.result is not None:
            answer.set_result(msgspec.Raw(message.result))
        else:
            answer.set_exception(Declined("The client refused"))

    def worker_of(self, id: Id | None) -> int:
        """Return the worker that asked the question with this id."""
        found = _ASKED.fullmatch(id) if isinstance(id, str) else None
        return self._worker if found is None else int(found[1])

    def decline_all(self, nonce: bytes) -> None:
        """Decline all questions of a session that has ended."""
        self._decline([answer for key, answer in self._open.items() if key[0] == nonce], _NO_ANSWER)

    def open(self) -> None:
        """Allow questions, even after a shutdown."""
        self._closed = False

    def close(self) -> None:
        """Decline all questions, because the server is shutting down."""
        self._closed = True
        self._decline(self._open.values(), _SHUTTING_DOWN)

    def _decline(self, answers: Iterable[asyncio.Future[msgspec.Raw]], reason: str) -> None:
        for answer in answers:
            if not answer.done():
                answer.set_exception(Declined(reason))
