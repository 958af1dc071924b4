"""The old HTTP+SSE transport of 2024-11-05: one event stream, and a URL for messages."""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin, urlsplit

from ...core.limits import LARGE, MAX_BYTES
from ...http1.http_connection import ReceivedEvents, StreamEvent
from ..faults import ConnectionLost, NoAnswer
from ..frames import Lost, Outgoing, Receiver, Transport
from .http_requests import HttpRequests


class OldSse(Transport):
    """The transport to a server that sends all its messages over one event stream."""

    has_headers = True

    def __init__(self, http: HttpRequests) -> None:
        self._http = http
        self._stream: asyncio.Task[None] | None = None

    async def open(self, receiver: Receiver, lost: Lost) -> None:
        self._receiver = self._http.receiver(receiver)
        self._lost = lost
        self._http.open()
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._stream = asyncio.get_running_loop().create_task(self._read())
        await asyncio.shield(self._endpoint)

    async def send(self, outgoing: Outgoing) -> None:
        if self._stream is None or self._stream.done():
            raise ConnectionLost("the event stream of the server has ended", may_have_run=False)
        headers = {"content-type": "application/json", **outgoing.headers}
        url = await asyncio.shield(self._endpoint)
        async with self._http.stream("POST", headers, outgoing.frame, url) as response:
            if response.status_code >= 300:
                raise self._http.refusal(response, await self._http.refusal_body(response))
            await response.aread()

    async def identity(self) -> str:
        return await self._http.identity()

    async def close(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
            await asyncio.wait([self._stream])
            self._stream = None
        await self._http.close()

    async def _read(self) -> None:
        try:
            async with self._http.stream("GET", {"accept": "text/event-stream"}) as response:
                if response.status_code >= 300 or not response.is_event_stream:
                    raise self._http.refusal(response)
                async for event in ReceivedEvents(response.read_some, MAX_BYTES):
                    await self._take(event)
            self._end(ConnectionLost("the event stream of the server has ended"))
        except NoAnswer as error:
            self._end(error)
        except asyncio.CancelledError:
            self._end(ConnectionLost("the connection was closed"))
            raise

    async def _take(self, event: StreamEvent) -> None:
        if event.event != "endpoint":
            if len(event.data) <= LARGE:
                self._receiver.receive(event.data)
            else:
                await self._receiver.receive_large(event.data)
            return
        url = urljoin(self._http.url, event.data.decode(errors="replace"))
        # Credentials must not be sent to another server.
        if urlsplit(url)[:2] == urlsplit(self._http.url)[:2] and not self._endpoint.done():
            self._endpoint.set_result(url)

    def _end(self, error: NoAnswer) -> None:
        if not self._endpoint.done():
            self._endpoint.set_exception(error)
            self._endpoint.exception()
        else:
            self._lost(error)
