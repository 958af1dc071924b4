"""Builds the typed data that `read(result, into=Type)` and `server.call(…, into=Type)` return."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from ..core.content import Text
from ..core.limits import LARGE
from ..core.reply import Error, Reply
from ..core.shape import RESULT
from ..errors import INVALID_OUTPUT
from ..types.arguments import Arguments, Parameter, check_parameter
from ..types.json_text import ENCODER
from ..types.problems import InvalidArguments, InvalidJson

_NAME = "data"
"""Paths in messages start with this name."""


def decoder_for(into: Any) -> Arguments:
    """Return a type's decoder; raise TypeError for a type without a JSON form."""
    if isinstance(into, str | dict | list):
        raise TypeError(f"into={into!r} should be a type")
    try:
        return _cached_decoder(into)
    except TypeError as exc:
        # An annotation that contains an unhashable value cannot be looked up.
        if "unhashable" not in str(exc):
            raise
        return _cached_decoder.__wrapped__(into)


class TypedReader:
    """Converts a reply's data to a type; raises TypeError for a type without a JSON form."""

    def __init__(self, into: Any) -> None:
        self._into = into
        self._decoder = decoder_for(into)

    def read(self, reply: Reply[Any]) -> Reply[Any]:
        """Return the reply with typed data, or a failed reply that says what does not match."""
        if reply.error is not None:
            return reply
        if self._into is str:
            # The only text block is the data, unless the reply has other data.
            match reply.content:
                case (Text(text=text),) if not reply.has_data or reply.data_from == "text":
                    reply = msgspec.structs.replace(reply, data=text)
        if reply.data is msgspec.UNSET:
            hint = "read it without into=, or look at reply.content"
            return _failed(reply, Error(INVALID_OUTPUT, "the reply has no data", hint=hint))
        try:
            return _built(reply, reply.data, self._decoder)
        except InvalidArguments as first:
            data = reply.data
            if isinstance(data, dict) and data.keys() == {"result"}:
                with suppress(InvalidArguments):
                    built = _built(reply, data["result"], self._decoder)
                    return msgspec.structs.replace(built, shape=RESULT)
            problems = msgspec.to_builtins(first.problems)
            return _failed(reply, Error(INVALID_OUTPUT, str(first), {"problems": problems}))

    async def read_async(self, reply: Reply[Any]) -> Reply[Any]:
        """Like `read`, but builds large data in a thread, so that the event loop is not blocked."""
        try:
            is_large = len(ENCODER.encode(reply.data)) > LARGE
        except (TypeError, ValueError, RecursionError):
            is_large = False
        return await asyncio.to_thread(self.read, reply) if is_large else self.read(reply)


def _built(reply: Reply[Any], data: Any, decoder: Arguments) -> Reply[Any]:
    try:
        encoded = ENCODER.encode(data)
        typed = decoder.decode(b'{"%b":%b}' % (_NAME.encode(), encoded))[_NAME]
    except (InvalidJson, TypeError, ValueError, RecursionError) as exc:
        return _failed(reply, Error(INVALID_OUTPUT, f"{_NAME}: cannot be read: {exc}"))
    return msgspec.structs.replace(reply, data=typed, encoded=encoded)


def _failed(reply: Reply[Any], error: Error) -> Reply[Any]:
    return msgspec.structs.replace(reply, data=msgspec.UNSET, error=error)


@lru_cache(maxsize=128)
def _cached_decoder(into: Any) -> Arguments:
    parameter = Parameter(name=_NAME, annotation=into)
    check_parameter(parameter, "into")
    return Arguments([parameter])
