"""InputRounds: the requests of one call, until the server needs no more input from the user.

A stateless server answers with `input_required`, and gets the request again with the answers. A
2025-11-25 server refuses with the error -32042 until the user has visited a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.json_value import Json, JsonObject
from ..core.stopped_clocks import RUNNING, clocks_stopped
from ..error_codes import INPUT_REQUIRED
from ..protocol.jsonrpc import URL_ELICITATION_REQUIRED, RpcError
from .faults import NoAnswer

if TYPE_CHECKING:
    from .client_connection import ClientConnection, ClientRequest

_ROUNDS = 10
"""How often a server may ask for input before it gives a result."""
_VISIT_SECONDS = 300.0
"""Seconds that one call waits for the pages that the user has agreed to visit."""
_MAX_PAUSE = 2.0


class InputRounds:
    """Resends a request with the answers from the user's handlers.

    The deadline is for all requests together, without the time that the user takes.
    """

    def __init__(self, connection: ClientConnection, asked: ClientRequest) -> None:
        self._connection = connection
        self._asked = asked
        self._loop = asyncio.get_running_loop()
        self._user_seconds = 0.0
        """The seconds that the user took."""
        self._visited: set[str] = set()
        """The pages that the user has agreed to visit in this call."""
        self._visits = 0

    async def result(self, found: JsonObject | RpcError) -> JsonObject:
        """Return the result, if the first request got *found*; raises RpcError or NoAnswer."""
        asked, rounds = self._asked, 0
        while True:
            if isinstance(found, RpcError):
                if found.code != URL_ELICITATION_REQUIRED or not await self._visit(found):
                    raise found
            elif found.get("resultType") == "input_required":
                params = await self._with_answers(asked.params, found, rounds)
                asked = msgspec.structs.replace(asked, params=params)
            else:
                return found
            rounds += 1
            if rounds - self._visits >= _ROUNDS:
                text = f"the server asked for input more than {_ROUNDS} times"
                raise NoAnswer(text, code=INPUT_REQUIRED, may_have_run=False)
            try:
                found = await self._connection.request(asked)
            except RpcError as error:
                found = error

    @contextmanager
    def _users_time(self) -> Iterator[None]:
        """Stop the call's deadlines while the user is asked."""
        began = self._loop.time()
        try:
            with clocks_stopped((self._asked.deadline, *RUNNING.get())):
                yield
        finally:
            self._user_seconds += self._loop.time() - began

    async def _with_answers(
        self, params: Mapping[str, Any], result: JsonObject, round: int
    ) -> JsonObject:
        """Return the next request's parameters, with the answers to the server's questions."""
        found = result.get("inputRequests")
        questions = found if isinstance(found, dict) else {}
        answers = {key: await self._answer(each, questions) for key, each in questions.items()}
        if not questions:
            await asyncio.sleep(min(0.05 * 2**round, 0.25))
        again = {name: value for name, value in params.items() if name != "requestState"}
        if answers:
            again["inputResponses"] = answers
        else:
            again.pop("inputResponses", None)
        if "requestState" in result:
            again["requestState"] = result["requestState"]
        return again

    async def _answer(self, question: Json, questions: JsonObject) -> JsonObject:
        match question:
            case {"method": str(method), **others}:
                asked = others.get("params")
                params = asked if isinstance(asked, dict) else {}
            case _:
                raise NoAnswer("the server asks a question without a method", code=INPUT_REQUIRED)
        url = params.get("url") if params.get("mode") == "url" else None
        if isinstance(url, str) and url in self._visited and await self._waits(None):
            return {"action": "accept"}
        try:
            answer = await self._ask(method, params)
        except RpcError as error:
            text = f"the server asks {method}, and there is no answer: {error}"
            details = {"questions": questions}
            raise NoAnswer(text, code=INPUT_REQUIRED, may_have_run=False, details=details) from None
        if isinstance(url, str) and answer.get("action") == "accept":
            self._visited.add(url)
        return answer

    async def _visit(self, error: RpcError) -> bool:
        """Ask the user to visit an error's pages; return False if the error stays.

        A user who has agreed is not asked again; the server is given time to notice the visit.
        """
        found = error.data.get("elicitations") if isinstance(error.data, dict) else None
        pages = [each for each in found or () if isinstance(each, dict)]
        new = [each for each in pages if str(each.get("url")) not in self._visited]
        if pages and not new:
            return await self._waits(str(pages[0].get("elicitationId")))
        for page in new:
            try:
                answer = await self._ask("elicitation/create", {**page, "mode": "url"})
            except RpcError:
                return False
            if answer.get("action") != "accept":
                return False
            self._visited.add(str(page.get("url")))
        return bool(new)

    async def _ask(self, method: str, params: JsonObject) -> JsonObject:
        with self._users_time():
            return await self._connection.ask_user(method, params)

    async def _waits(self, visit: str | None) -> bool:
        """Wait a moment for a page to be completed; return False if the user took too long."""
        if self._user_seconds >= _VISIT_SECONDS:
            return False
        self._visits += 1
        seconds = min(0.1 * 2**self._visits, _MAX_PAUSE)
        with self._users_time():
            if visit is None:
                await asyncio.sleep(seconds)
            else:
                await self._connection.messages.visits.wait(visit, seconds)
        return True
