"""Reads a reply from an HTTP response: JSON, problems, event streams, images, other bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..core.content import Embedded
from ..core.reply import Received, Reply
from ..dialects import problem, rest
from ..dialects.common import kind_for_status
from ..dialects.status_and_headers import ERROR_CODE, PROBLEM, HttpReply
from ..dialects.verdicts import is_json_rpc, received_dialect
from ..error_codes import UNKNOWN_ERROR
from ..errors import MalformedReply
from ..http1.event_stream import EventDecoder
from .sources import NotJson, load_json

Read = Callable[[Any], tuple[Reply[Any], tuple[Any, ...]]]
EVENT_STREAM = "text/event-stream"
_MAX_LOCATION = 200


def read_response(
    response: HttpReply, read_json: Read, max_values: int
) -> tuple[Reply[Any], tuple[Any, ...]]:
    """Read a response; *read_json* reads its JSON. Raises MalformedReply."""
    essence = response.media_type.partition(";")[0].strip().lower()
    is_failure = response.status >= 400 or response.header(ERROR_CODE) is not None
    if essence == PROBLEM:
        return problem.read(response), ()
    if essence == EVENT_STREAM and response.status < 400:
        return read_json(_last_response(response.body, max_values))
    if 300 <= response.status < 400:
        raise MalformedReply(_redirected(response))
    found = _json_of(response, essence, max_values)
    if found is not msgspec.UNSET and response.header(rest.FORM) is None:
        is_reply = is_json_rpc(found) or received_dialect(found) in ("mcp", "envelope", "problem")
        if is_reply or not is_failure:
            reply, findings = read_json(found)
            if not is_failure:
                return reply, findings
            if not reply.ok:
                return _with_code(reply, response), findings
    try:
        reply = rest.read(response)
    except MalformedReply:
        if essence == "application/json" or essence.endswith("+json"):
            raise
        uri = response.header("Content-Location") or "about:blank"
        return Reply(content=(Embedded(uri, blob=response.body, mime=essence or None),)), ()
    place = Received(None, "body") if reply.has_data else None
    return msgspec.structs.replace(reply, received=place), ()


def _with_code(reply: Reply[Any], response: HttpReply) -> Reply[Any]:
    """Return a failure with the code from the header or the status, unless the body has a code.

    A server's custom code gets the response's status.
    """
    error, stated = reply.error, rest.read(response).error
    if error is None or stated is None:
        return reply
    code = stated.code if error.code == UNKNOWN_ERROR else error.code
    kind = error.kind or kind_for_status(code, response.status)
    hint = error.hint or stated.hint
    changed = msgspec.structs.replace(error, code=code, kind=kind, hint=hint)
    return msgspec.structs.replace(reply, error=changed)


def _json_of(response: HttpReply, essence: str, max_values: int) -> Any:
    """Return the decoded body if it is a JSON object or array, else UNSET."""
    is_json = essence in ("", "application/json") or essence.endswith("+json")
    if not is_json or response.body.lstrip()[:1] not in (b"{", b"["):
        return msgspec.UNSET
    try:
        return load_json(response.body.decode(), max_values)
    except (NotJson, UnicodeDecodeError) as exc:
        if response.status >= 400:
            return msgspec.UNSET
        raise NotJson(f"the body of the response is not JSON: {exc}") from None


def _redirected(response: HttpReply) -> str:
    location = response.header("Location")
    where = "" if location is None else f"; it redirects to {location[:_MAX_LOCATION]!r}"
    return f"the server answered {response.status} and no reply{where}"


def _last_response(body: bytes, max_values: int) -> Any:
    found = response_in_events(body.decode("utf-8", "replace"), max_values)
    if found is None:
        raise MalformedReply("the stream of events ended without a response")
    return found


def response_in_events(stream: str, max_values: int) -> Any:
    """Return the JSON-RPC response in an event stream, or None if there is none.

    Notifications may precede it.
    """
    found: Any = None
    events = stream.encode("utf-8", "replace") + b"\n\n"
    for event in EventDecoder(limit=len(events)).feed(events):
        try:
            message = load_json(event.data.decode(), max_values)
        except NotJson:
            continue
        if isinstance(message, dict) and not {"result", "error"}.isdisjoint(message):
            found = message
    return found
