"""ServerResponse: a response of the server, whose failures do not show the client's credentials."""

from __future__ import annotations

from ...http1.event_stream import ReceivedEvents, StreamEvent
from ...http1.http_errors import HttpFailure
from ...http1.http_pool import HttpResponse
from ..faults import ConnectionLost
from ..frames import MAX_FRAME
from .sent_credentials import SentCredentials

_MAX_REFUSAL = 64 * 1024
"""The most bytes that are read of a response that is an error."""
_MAX_QUOTED = 80


class ServerResponse:
    """A response whose body is still to be read."""

    def __init__(self, response: HttpResponse, sent: SentCredentials) -> None:
        self._response = response
        self._sent = sent
        self.status_code = response.status_code
        self.headers = response.headers
        self.url = response.url
        self.close = response.close
        self.drain = response.drain

    async def aread(self) -> bytes:
        """The whole body; raises ConnectionLost."""
        try:
            return await self._response.aread()
        except HttpFailure as exc:
            raise connection_lost(exc, self._sent) from None

    async def read_refusal(self) -> bytes:
        """The beginning of the body of a response that is an error; raises ConnectionLost."""
        try:
            return await self._response.read_up_to(_MAX_REFUSAL)
        except HttpFailure as exc:
            raise connection_lost(exc, self._sent) from None

    def events(self) -> ReceivedEvents:
        """The events of the body; reading them raises ConnectionLost."""
        return _ServerEvents(self._response, self._sent)


class _ServerEvents(ReceivedEvents):
    def __init__(self, response: HttpResponse, sent: SentCredentials) -> None:
        super().__init__(response.read_some, MAX_FRAME)
        self._sent = sent

    async def __anext__(self) -> StreamEvent:
        try:
            return await super().__anext__()
        except HttpFailure as exc:
            raise connection_lost(exc, self._sent) from None


def connection_lost(error: HttpFailure, sent: SentCredentials) -> ConnectionLost:
    """The failure of a request, without the credentials that the response may repeat."""
    text = str(error)
    if error.quoted:
        text += f": {sent.masked_text(error.quoted)[:_MAX_QUOTED]!r}"
    return ConnectionLost(text, may_have_run=error.may_have_run)
