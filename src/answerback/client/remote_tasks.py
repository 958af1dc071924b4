"""Tasks of a server: a call that the server answers with a task waits here for its result."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from ..mcp.jsonrpc import METHOD_NOT_FOUND, MISSING_CAPABILITY, RpcError
from ..mcp.params import TASKS
from ..stopped_clocks import clocks_stopped, stoppable
from .eras import ServerFacts
from .exchange import RequestOptions
from .faults import INVALID_RESPONSE, TIMED_OUT, NoAnswer
from .link import ServerLink

_POLL_SECONDS, _MIN_POLL, _MAX_POLL = 0.5, 0.02, 60.0
"""The seconds between two looks if the server names none, and the bounds of those that it names."""
_LOOK_TIMEOUT = 30.0
_FAILURES = 5
"""How many looks in a row may fail, such as while the server is started again."""
_FINAL = ("completed", "failed", "cancelled")


def needs_task(error: RpcError, facts: ServerFacts) -> bool:
    """Whether the server refused a call because it runs only as a task; it did not run then."""
    if facts.version.stateless:
        wanted = error.data.get("requiredCapabilities") if isinstance(error.data, dict) else None
        found = wanted.get("extensions") if isinstance(wanted, dict) else None
        return error.code == MISSING_CAPABILITY and isinstance(found, dict) and TASKS in found
    return error.code == METHOD_NOT_FOUND and facts.version.tasks and facts.offers("tasks")


def task_in(result: dict[str, Any]) -> dict[str, Any] | None:
    """The task that a result of `tools/call` names; None for any other result."""
    found = result if result.get("resultType") == "task" else result.get("task")
    is_task = isinstance(found, dict) and isinstance(found.get("taskId"), str)
    return found if is_task and "content" not in result else None


async def create_task(link: ServerLink, creation: Coroutine[Any, Any, Any]) -> dict[str, Any]:
    """The result of a call that creates a task; raises RpcError or NoAnswer.

    If the caller is cancelled meanwhile, the task is cancelled as soon as its id is known.
    """
    creating = asyncio.ensure_future(creation)
    try:
        found: dict[str, Any] = await asyncio.shield(creating)
    except asyncio.CancelledError:
        exchange = link.current
        if exchange is not None:
            exchange.spawn(_cancel_when_made(link, creating))
        else:
            creating.cancel()
        raise
    return found


async def _cancel_when_made(link: ServerLink, creating: asyncio.Future[Any]) -> None:
    try:
        task = task_in(await creating)
    except (NoAnswer, RpcError):
        return
    if task is not None:
        await RemoteTask(link, task).give_up()


class RemoteTask:
    """A task of a server, from its creation to its result."""

    def __init__(self, link: ServerLink, task: dict[str, Any]) -> None:
        self._link = link
        self._params = {"taskId": task["taskId"]}
        self._answered: set[str] = set()
        self._pause = _MIN_POLL
        self.shown = task
        """The task as the server showed it last."""

    async def wait(self, timeout: float | None) -> dict[str, Any]:
        """The result of the call; raises RpcError or NoAnswer.

        A task that takes longer than *timeout*, or whose caller is cancelled, is cancelled. The
        time in which the user is asked does not count.
        """
        try:
            async with asyncio.timeout(timeout) as clock:
                with stoppable(clock):
                    return await self._wait()
        except TimeoutError:
            await self.give_up()
            text = f"the task did not end within {timeout:g} seconds, and was cancelled"
            raise NoAnswer(text, code=TIMED_OUT, details=self._params) from None
        except asyncio.CancelledError:
            # Beside this coroutine, which must end now.
            exchange = self._link.current
            if exchange is not None:
                exchange.spawn(self.give_up())
            raise

    async def _wait(self) -> dict[str, Any]:
        is_stateless = self._link.facts.version.stateless
        while (status := self.shown.get("status")) not in _FINAL:
            if status == "input_required":
                if not is_stateless:
                    break  # The server asks while it is asked for the result.
                if await self._answer():
                    continue
            await asyncio.sleep(self._next_pause())
            await self._look()
        if not is_stateless:
            return await self._request("tasks/result", None)
        result = self.shown.get("result")
        if status == "completed" and isinstance(result, dict):
            return result
        if status == "completed":
            raise NoAnswer("the task ended without a result", code=INVALID_RESPONSE)
        return self.shown  # `read` knows failed and cancelled tasks.

    async def _look(self) -> None:
        failures = 0
        while True:
            try:
                self.shown = await self._request("tasks/get", _LOOK_TIMEOUT)
            except NoAnswer:
                failures += 1
                if failures >= _FAILURES:
                    raise
                await asyncio.sleep(self._next_pause())
            else:
                return

    async def _answer(self) -> bool:
        """Answer the new questions of the task; False if there are none."""
        found = self.shown.get("inputRequests")
        questions = found if isinstance(found, dict) else {}
        new = {key: each for key, each in questions.items() if key not in self._answered}
        exchange = await self._link.open()
        for key, each in new.items():
            self._answered.add(key)
            asked = each if isinstance(each, dict) else {}
            params = asked.get("params")
            method = str(asked.get("method"))
            try:
                with clocks_stopped():
                    answer = await exchange.ask_user(
                        method, params if isinstance(params, dict) else {}
                    )
            except RpcError as error:
                await self.give_up()
                text = f"the task asks {method}, and there is no answer: {error}"
                raise NoAnswer(text, code="INPUT_REQUIRED", details={"questions": found}) from None
            answers = {**self._params, "inputResponses": {key: answer}}
            await self._link.request("tasks/update", answers, RequestOptions(_LOOK_TIMEOUT))
        if new:
            await self._look()
        return bool(new)

    async def _request(self, method: str, timeout: float | None) -> dict[str, Any]:
        return await self._link.request(method, self._params, RequestOptions(timeout))

    async def give_up(self) -> None:
        """Cancel the task, as far as the server can be reached."""
        # If it cannot be cancelled, it has ended, or it expires by itself.
        with suppress(NoAnswer, RpcError):
            await self._link.request("tasks/cancel", self._params, RequestOptions(1.0))

    def _next_pause(self) -> float:
        """Short at first, because many tasks end soon; then as long as the server wants."""
        named = self.shown.get("pollIntervalMs", self.shown.get("pollInterval"))
        is_number = isinstance(named, int | float) and named == named
        wanted = float(named) / 1000 if is_number and named is not None else _POLL_SECONDS
        pause = min(self._pause, max(wanted, _MIN_POLL), _MAX_POLL)
        self._pause = self._pause * 2
        return pause
