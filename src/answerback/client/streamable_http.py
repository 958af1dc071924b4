"""MCP over HTTP: Streamable HTTP, and the older HTTP+SSE, whose messages share one stream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from ..core.limits import LARGE, MAX_BYTES
from ..http1.http_connection import HttpFailure, HttpResponse, ReceivedEvents
from ..protocol.jsonrpc import Id
from .faults import ConnectionLost, HttpRefused, NoAnswer, SessionLost
from .frames import Lost, Outgoing, Receiver, Transport, decode_frame
from .http_requests import HttpRequests

_SESSION = "mcp-session-id"
_RETRY_SECONDS = 1.0
"""Seconds to wait before resuming a stream, unless the server says otherwise."""
_MIN_RETRY = 0.5
"""The minimum number of seconds to wait, whatever the server says."""
_RESUMES = 5
"""How many times in a row a stream is resumed without receiving a new event."""
_MAX_RESUMES = 500
"""How many times one call's stream is resumed, even if new events arrive."""
_OPEN_SECONDS = 0.5
"""Seconds to wait for the session's stream; some servers send its headers late."""
_OVERLOADED = frozenset({429, 502, 503, 504})
"""HTTP statuses that take precedence over the error in the body: they mean "try again later"."""
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class _StreamState:
    """Where to resume an event stream."""

    def __init__(self) -> None:
        self.last_id = ""
        self.retry = _RETRY_SECONDS
        self.attempts = 0
        """How many times the stream has been resumed since its last event."""


class StreamableHttp(Transport):
    """The transport to one endpoint; each request is a POST with its own response."""

    closes_to_cancel = True
    has_headers = True

    def __init__(self, http: HttpRequests) -> None:
        self._http = http
        self._session: str | None = None
        self._version: dict[str, str] = {}
        self._listening: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()

    @property
    def receives_changes(self) -> bool:
        return self._opened.is_set()

    async def open(self, receiver: Receiver, lost: Lost) -> None:
        self._receiver = self._http.receiver(receiver)
        self._lost = lost
        self._http.open()

    async def send(self, outgoing: Outgoing) -> None:
        if outgoing.method == "initialize":
            # The first message starts a new session.
            self._session = None
            self._version = {}
        elif "MCP-Protocol-Version" in outgoing.headers:
            self._version = {"MCP-Protocol-Version": outgoing.headers["MCP-Protocol-Version"]}
        headers = {**_ACCEPT, **outgoing.headers, **self._session_header()}
        state, body = None, b""
        async with self._http.stream("POST", headers, outgoing.frame) as response:
            is_stream = response.is_event_stream
            if response.status_code < 300 and not is_stream:
                body = await response.aread()
            is_first = outgoing.method == "initialize"
            self._session = response.headers.get(_SESSION) if is_first else self._session
            if response.status_code >= 300:
                await self._take_refusal(response, outgoing, in_session=_SESSION in headers)
            elif is_stream:
                state = _StreamState()
                if await self._take_events(response, outgoing.id, state):
                    return
        if outgoing.answer is None or outgoing.answer.done():
            return
        if state is not None:
            await self._resume_until(outgoing.answer, state, outgoing)
        elif len(body) > LARGE:
            await self._receiver.receive_large(body)
        elif body.strip():
            self._receiver.receive(body)
        if not outgoing.answer.done():
            text = f"the response (HTTP status {response.status_code}) contains no result"
            raise ConnectionLost(text)

    async def listen(self) -> None:
        """Open the stream and wait for it briefly, so that nothing is missed."""
        if self._listening is None and self._session is not None:
            self._listening = asyncio.get_running_loop().create_task(self._listen())
            opened = asyncio.get_running_loop().create_task(self._opened.wait())
            await asyncio.wait(
                {opened, self._listening},
                timeout=_OPEN_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            opened.cancel()

    async def identity(self) -> str:
        return await self._http.identity()

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        if self._session is not None:
            try:
                async with asyncio.timeout(1):
                    headers = {**self._version, **self._session_header()}
                    async with self._http.stream("DELETE", headers):
                        pass
            except (NoAnswer, TimeoutError):
                pass  # The server will eventually end the session itself.
            self._session = None
        await self._http.close()

    def _session_header(self) -> Mapping[str, str]:
        return {} if self._session is None else {_SESSION: self._session}

    async def _take_refusal(
        self, response: HttpResponse, outgoing: Outgoing, *, in_session: bool
    ) -> None:
        """Deliver a JSON-RPC error as a message; raise HttpRefused for any other body."""
        if response.status_code == 404 and in_session:
            raise SessionLost("the server no longer knows the session", may_have_run=False)
        body = await self._http.refusal_body(response)
        message = decode_frame(body)
        if outgoing.id is not None and message is not None and message.error is not None:
            if response.status_code in _OVERLOADED:
                body = message.error.message.encode()
            elif message.id == outgoing.id:
                self._receiver.receive(body)
                return
            else:
                raise message.error.as_exception()
        raise self._http.refusal(response, body)

    async def _take_events(
        self, response: HttpResponse, id: Id | None, state: _StreamState
    ) -> bool:
        """Receive the events; return True if the response to request *id* was among them."""
        is_answered = False
        try:
            async for event in ReceivedEvents(response.read_some, MAX_BYTES):
                if event.id:
                    state.last_id = event.id
                    state.attempts = 0
                if event.retry is not None:
                    state.retry = max(_MIN_RETRY, event.retry / 1000)
                if event.data and event.event == "message":
                    if len(event.data) <= LARGE:
                        found = self._receiver.receive(event.data)
                    else:
                        found = await self._receiver.receive_large(event.data)
                    is_answered = is_answered or (id is not None and found == id)
                if is_answered:
                    response.drain()
                    return True
        except HttpFailure as exc:
            if not state.last_id or exc.is_too_large:
                raise
        return False

    async def _resume_until(
        self, answer: asyncio.Future[Any], state: _StreamState, outgoing: Outgoing
    ) -> None:
        """Resume the stream, unless the result arrives over another stream first."""
        resuming = asyncio.get_running_loop().create_task(self._resume(state, outgoing))
        try:
            await asyncio.wait({answer, resuming}, return_when=asyncio.FIRST_COMPLETED)
            if resuming.done():
                resuming.result()
        finally:
            resuming.cancel()

    async def _resume(self, state: _StreamState, outgoing: Outgoing) -> None:
        """Request the rest of a stream, using the id of its last event."""
        for _ in range(_MAX_RESUMES):
            if not state.last_id or state.attempts >= _RESUMES:
                break
            state.attempts += 1
            await asyncio.sleep(state.retry)
            try:
                if await self._get(state, outgoing.id):
                    return
            except HttpRefused as exc:
                text = f"the response stream cannot be resumed: {exc}"
                raise ConnectionLost(text) from None
            except NoAnswer:
                continue
        raise ConnectionLost("the response stream ended before the result")

    async def _get(self, state: _StreamState, outgoing_id: Id | None) -> bool:
        headers = {"accept": "text/event-stream", **self._version, **self._session_header()}
        if state.last_id:
            headers["last-event-id"] = state.last_id
        async with self._http.stream("GET", headers) as response:
            if response.status_code >= 300 or not response.is_event_stream:
                raise self._http.refusal(response)
            if outgoing_id is None:
                self._opened.set()
            return await self._take_events(response, outgoing_id, state)

    async def _listen(self) -> None:
        """Receive messages outside of requests; return if the server has no stream for them."""
        state = _StreamState()
        while state.attempts <= _RESUMES or self._opened.is_set():
            state.attempts += 1
            try:
                await self._get(state, None)
                state.attempts = 0
            except HttpRefused as exc:
                if exc.status == 404 and self._opened.is_set():
                    text = "the server no longer knows the session"
                    self._lost(SessionLost(text, may_have_run=False))
                return
            except NoAnswer:
                pass
            more = max(0, min(state.attempts, 10) - _RESUMES)
            await asyncio.sleep(state.retry * 2**more)


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
            raise ConnectionLost("the server's event stream has ended", may_have_run=False)
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
                    if event.event == "endpoint":
                        url = urljoin(self._http.url, event.data.decode(errors="replace"))
                        # Credentials must not be sent to another server.
                        is_same = urlsplit(url)[:2] == urlsplit(self._http.url)[:2]
                        if is_same and not self._endpoint.done():
                            self._endpoint.set_result(url)
                    elif len(event.data) <= LARGE:
                        self._receiver.receive(event.data)
                    else:
                        await self._receiver.receive_large(event.data)
            self._end(ConnectionLost("the server's event stream has ended"))
        except NoAnswer as error:
            self._end(error)
        except asyncio.CancelledError:
            self._end(ConnectionLost("the connection was closed"))
            raise

    def _end(self, error: NoAnswer) -> None:
        if not self._endpoint.done():
            self._endpoint.set_exception(error)
            self._endpoint.exception()
        else:
            self._lost(error)
