"""The user's functions that answer a server's questions and receive its notifications."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from ..core.json_value import Json, JsonObject
from ..core.log import logger
from ..core.peer import Level, Log, Progress
from ..protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from ..registry.declarations import Change

OnProgress: TypeAlias = Callable[[Progress], object]
Roots: TypeAlias = Sequence[str | Path] | Callable[[], Any]


class ElicitationRequest(msgspec.Struct, frozen=True):
    """A server's question to the user: a form, or a page to visit (`url`)."""

    message: str
    """The question."""
    mode: str = "form"
    """"form", or "url" for a page to visit."""
    schema: dict[str, Any] = {}
    """The JSON Schema of the answer to a form."""
    url: str = ""
    """The page to visit."""
    id: str = ""
    """The id of a page visit; the server later says that it is completed."""


class UserHandlers(msgspec.Struct, frozen=True, kw_only=True):
    """The handlers given to `connect`; only these are declared to the server as capabilities."""

    elicit: Callable[[ElicitationRequest], Any] | None = None
    elicit_url: bool = True
    """Whether `elicit` also takes pages to visit."""
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
        """Return whether a handler answers the request, which may take a person's time."""
        handler = {"elicitation/create": self.elicit, "sampling/createMessage": self.sample}
        return handler.get(method) is not None or (method == "roots/list" and callable(self.roots))

    async def answer(self, method: str, params: JsonObject) -> JsonObject:
        """Return the result of a server's request; raises RpcError."""
        match method:
            case "ping":
                return {}
            case "elicitation/create" if self.elicit is not None:
                _check_mode(params, pages=self.elicit_url)
                return await _elicited(self.elicit, params)
            case "sampling/createMessage" if self.sample is not None:
                return _sampled(await _run(self.sample, params))
            case "roots/list" if self.roots is not None:
                given = await _run(self.roots) if callable(self.roots) else self.roots
                return {"roots": [_root(each) for each in given]}
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")


def _check_mode(params: JsonObject, *, pages: bool) -> None:
    """Raise RpcError for a page that the handler cannot show, or that is not a web page."""
    mode, url = params.get("mode", "form"), params.get("url")
    if mode not in ("form", "url") or (mode == "url" and not pages):
        raise RpcError(INVALID_PARAMS, f"Invalid params: the mode {mode!r} is not supported")
    if mode == "url" and not re.match(r"https?://[^\s/]", str(url), re.IGNORECASE):
        raise RpcError(INVALID_PARAMS, "Invalid params: url is not the address of a web page")


async def _run(handler: Callable[..., Any], *arguments: object) -> Any:
    """Call a handler; a plain function runs in a thread, because it may wait for a user."""
    import asyncio

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
        """Return the content with the fields' defaults; raises RpcError if it does not fit."""
        fields = {key: each for key, each in self.properties.items() if isinstance(each, dict)}
        defaults = {key: field["default"] for key, field in fields.items() if "default" in field}
        whole = defaults | content
        faults = [f"the field {key!r} is missing" for key in self.required if key not in whole]
        for key, value in whole.items():
            if key in fields and not _fits(value, fields[key]):
                kind = fields[key].get("type")
                wanted = "one of its choices" if "enum" in fields[key] else f"of type {kind}"
                faults.append(f"the field {key!r} should be {wanted}")
        if faults:
            text = f"the handler's answer does not fit the form: {'; '.join(faults)}"
            logger("answerback.client").error(text)
            raise RpcError(INTERNAL_ERROR, text)
        return whole


async def _elicited(handler: Callable[..., Any], params: JsonObject) -> JsonObject:
    try:
        form = msgspec.convert(params.get("requestedSchema") or {}, _Form)
        request = ElicitationRequest(
            message=str(params.get("message", "")),
            mode=params.get("mode", "form"),
            schema=params.get("requestedSchema") or {},
            url=params.get("url", ""),
            id=params.get("elicitationId", ""),
        )
        given = await _run(handler, request)
    except (TypeError, msgspec.ValidationError) as exc:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {exc}") from None
    answer = _as_answer(given)
    if request.mode == "form" and answer["action"] == "accept":
        answer["content"] = form.with_defaults(answer.get("content") or {})
    return answer


def _as_answer(given: object) -> JsonObject:
    """Read an answer: a dict accepts with this content, True accepts, None and False decline."""
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
    content: Any = msgspec.to_builtins(given)
    return {"action": "accept", "content": content}


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


def _sampled(given: Any) -> JsonObject:
    if isinstance(given, str):
        content = {"type": "text", "text": given}
        return {"role": "assistant", "content": content, "model": "unknown"}
    return dict(given)


def _root(given: object) -> JsonObject:
    if isinstance(given, Mapping):
        return dict(given)
    text = str(given)
    return {"uri": text if "://" in text else Path(text).absolute().as_uri()}
