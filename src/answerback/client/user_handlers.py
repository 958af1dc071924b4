"""User functions that answer a server's questions and receive its notifications.

`InputRounds` resends a request with their answers.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..core.clocks import RUNNING, clocks_paused
from ..core.json_value import Json, JsonObject
from ..core.log import logger
from ..core.peer import Level, Log, Progress
from ..errors import INPUT_REQUIRED
from ..protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    RpcError,
)
from ..registry.declarations import Change
from .faults import NoAnswer

if TYPE_CHECKING:
    from .client_connection import ClientConnection, ClientRequest


OnProgress: TypeAlias = Callable[[Progress], object]
Roots: TypeAlias = Sequence[str | Path] | Callable[[], Any]


class ElicitationRequest(msgspec.Struct, frozen=True):
    """A server's question for the user: a form, or a page to visit (`url`)."""

    message: str
    """The question."""
    mode: str = "form"
    """"form", or "url" for a page to visit."""
    schema: dict[str, Any] = {}
    """The JSON Schema for the answer to a form."""
    url: str = ""
    """The page to visit."""
    id: str = ""
    """The id of a page visit, which the server uses to report that it is complete."""


class UserHandlers(msgspec.Struct, frozen=True, kw_only=True):
    """The handlers given to `connect`; only these are declared to the server as capabilities."""

    elicit: Callable[[ElicitationRequest], Any] | None = None
    elicit_url: bool = True
    """Whether `elicit` also handles pages to visit."""
    sample: Callable[[dict[str, Any]], Any] | None = None
    roots: Roots | None = None
    on_log: Callable[[Log], object] | None = None
    log_level: Level | None = None
    on_change: Callable[[Change], object] | None = None
    on_notification: Callable[[str, dict[str, Any]], object] | None = None

    @property
    def capabilities(self) -> JsonObject:
        """The capabilities that the client declares."""
        found: JsonObject = {}
        if self.elicit is not None:
            found["elicitation"] = {"form": {}, "url": {}} if self.elicit_url else {"form": {}}
        if self.sample is not None:
            found["sampling"] = {}
        if self.roots is not None:
            found["roots"] = {}
        return found

    def asks_user(self, method: str) -> bool:
        """Return whether a handler answers the request, which may mean waiting for a person."""
        handler = {"elicitation/create": self.elicit, "sampling/createMessage": self.sample}
        return handler.get(method) is not None or (method == "roots/list" and callable(self.roots))

    async def answer(self, method: str, params: JsonObject) -> JsonObject:
        """Return the result for a server's request; raises RpcError."""
        match method:
            case "ping":
                return {}
            case "elicitation/create" if self.elicit is not None:
                return await self._elicited(self.elicit, params)
            case "sampling/createMessage" if self.sample is not None:
                sampled = await _run(self.sample, params)
                if not isinstance(sampled, str):
                    return dict(sampled)
                content = {"type": "text", "text": sampled}
                return {"role": "assistant", "content": content, "model": "unknown"}
            case "roots/list" if self.roots is not None:
                given = await _run(self.roots) if callable(self.roots) else self.roots
                return {"roots": [_root(each) for each in given]}
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")

    async def _elicited(self, handler: Callable[..., Any], params: JsonObject) -> JsonObject:
        # The handler may not support pages, and only web pages are allowed.
        mode, url = params.get("mode", "form"), params.get("url", "")
        if mode not in ("form", "url") or (mode == "url" and not self.elicit_url):
            text = f"Invalid params: the mode {mode!r} is not supported"
            raise RpcError(INVALID_PARAMS, text)
        if mode == "url" and not re.match(r"https?://[^\s/]", str(url), re.IGNORECASE):
            text = "Invalid params: url is not the address of a web page"
            raise RpcError(INVALID_PARAMS, text)
        schema = params.get("requestedSchema") or {}
        try:
            form = msgspec.convert(schema, _Form)
            request = ElicitationRequest(
                message=str(params.get("message", "")),
                mode=mode,
                schema=schema,
                url=url,
                id=params.get("elicitationId", ""),
            )
            given = await _run(handler, request)
        except (TypeError, msgspec.ValidationError) as exc:
            raise RpcError(INVALID_PARAMS, f"Invalid params: {exc}") from None
        answer = _as_answer(given)
        if mode == "form" and answer["action"] == "accept":
            answer["content"] = form.with_defaults(answer.get("content") or {})
        return answer


async def _run(handler: Callable[..., Any], *arguments: object) -> Any:
    """Call a handler; a plain function runs in a thread, because it may wait for a user."""
    try:
        if inspect.iscoroutinefunction(handler):
            return await handler(*arguments)
        found = await asyncio.to_thread(handler, *arguments)
        return await found if inspect.isawaitable(found) else found
    except RpcError:
        raise
    except Exception as exc:
        logger("answerback.client").exception("a handler failed")
        raise RpcError(INTERNAL_ERROR, f"the handler failed: {type(exc).__name__}") from exc


class _Form(msgspec.Struct):
    """A form's schema: a flat object."""

    properties: dict[str, Any] = {}
    required: list[str] = []

    def with_defaults(self, content: JsonObject) -> JsonObject:
        """Return the content with default values filled in; raises RpcError if it is invalid."""
        fields = {key: each for key, each in self.properties.items() if isinstance(each, dict)}
        defaults = {key: field["default"] for key, field in fields.items() if "default" in field}
        filled = defaults | content
        faults = [f"the field {key!r} is missing" for key in self.required if key not in filled]
        for key, value in filled.items():
            if key in fields and not _fits(value, fields[key]):
                kind = fields[key].get("type")
                wanted = "one of its choices" if "enum" in fields[key] else f"of type {kind}"
                faults.append(f"the field {key!r} should be {wanted}")
        if faults:
            text = f"the handler's answer does not fit the form: {'; '.join(faults)}"
            logger("answerback.client").error(text)
            raise RpcError(INTERNAL_ERROR, text)
        return filled


def _as_answer(given: object) -> JsonObject:
    """Convert an answer: a dict accepts with that content, True accepts, None and False decline."""
    if given is None or given is False:
        return {"action": "decline"}
    if given is True:
        return {"action": "accept"}
    if given in ("accept", "decline", "cancel"):
        return {"action": given}
    if isinstance(given, Mapping):
        if given.get("action") in ("accept", "decline", "cancel"):
            return dict(given)
        return {"action": "accept", "content": dict(given)}
    return {"action": "accept", "content": msgspec.to_builtins(given)}


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
}


def _fits(value: Json, field: JsonObject) -> bool:
    kind = str(field.get("type"))
    if isinstance(value, float) and value.is_integer() and kind == "integer":
        return True
    if kind in _TYPES and not isinstance(value, _TYPES[kind]):
        return False
    if isinstance(value, bool) and kind in ("integer", "number"):
        return False
    choices = field.get("enum")
    return not isinstance(choices, list) or value in choices


def _root(given: object) -> JsonObject:
    if isinstance(given, Mapping):
        return dict(given)
    text = str(given)
    return {"uri": text if "://" in text else Path(text).absolute().as_uri()}


_ROUNDS = 10
"""How many times a server may ask for input before it returns a result."""
_VISIT_SECONDS = 300.0
"""How many seconds one call waits for pages that the user has agreed to visit."""
_MAX_PAUSE = 2.0


class InputRounds:
    """Resends a request with the answers from the user's handlers.

    The deadline covers all requests together, but not the time that the user takes.
    """

    def __init__(self, connection: ClientConnection, asked: ClientRequest) -> None:
        self._connection = connection
        self._asked = asked
        self._loop = asyncio.get_running_loop()
        self._user_seconds = 0.0
        """How many seconds the user has taken."""
        self._visited: set[str] = set()
        """The pages that the user has agreed to visit in this call."""
        self._visits = 0

    async def result(self, found: JsonObject | RpcError) -> JsonObject:
        """Return the result; *found* is the first response. Raises RpcError or NoAnswer."""
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
        """Pause the call's deadlines while waiting for the user."""
        began = self._loop.time()
        try:
            with clocks_paused((self._asked.deadline, *RUNNING.get())):
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
        last = ("requestState", "inputResponses")
        again = {name: value for name, value in params.items() if name not in last}
        if answers:
            again["inputResponses"] = answers
        if "requestState" in result:
            again["requestState"] = result["requestState"]
        return again

    async def _answer(self, question: Json, questions: JsonObject) -> JsonObject:
        match question:
            case {"method": str(method), **others}:
                asked = others.get("params")
                params = asked if isinstance(asked, dict) else {}
            case _:
                raise NoAnswer("the server asked a question without a method", code=INPUT_REQUIRED)
        url = params.get("url") if params.get("mode") == "url" else None
        if isinstance(url, str) and url in self._visited and await self._wait_for_visit(None):
            return {"action": "accept"}
        try:
            answer = await self._ask(method, params)
        except RpcError as error:
            text = f"the server sent {method}, which could not be answered: {error}"
            details = {"questions": questions}
            raise NoAnswer(text, code=INPUT_REQUIRED, may_have_run=False, details=details) from None
        if isinstance(url, str) and answer.get("action") == "accept":
            self._visited.add(url)
        return answer

    async def _visit(self, error: RpcError) -> bool:
        """Ask the user to visit the pages in an error; return False if the error is final.

        A user who has agreed is not asked again; the server is given time to notice the visit.
        """
        found = error.data.get("elicitations") if isinstance(error.data, dict) else None
        pages = [each for each in found or () if isinstance(each, dict)]
        new = [each for each in pages if str(each.get("url")) not in self._visited]
        if pages and not new:
            return await self._wait_for_visit(str(pages[0].get("elicitationId")))
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

    async def _wait_for_visit(self, visit: str | None) -> bool:
        """Wait briefly for a page visit to complete; return False if the user took too long."""
        if self._user_seconds >= _VISIT_SECONDS:
            return False
        self._visits += 1
        seconds = min(0.1 * 2**self._visits, _MAX_PAUSE)
        with self._users_time():
            if visit is None:
                await asyncio.sleep(seconds)
            else:
                await self._connection.messages.page_visited(visit, seconds)
        return True
