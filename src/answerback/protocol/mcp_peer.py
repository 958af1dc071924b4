"""McpPeer: one MCP request in flight, and the client waiting for its result."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ..core.peer import (
    Abilities,
    Level,
    Log,
    NeedsInput,
    Peer,
    Progress,
    Question,
    RequestSource,
    find_answer,
)
from ..core.versions import Version
from .jsonrpc import Id, RpcError, notification_frame
from .session import ClientCapabilities, Session, reaches

if TYPE_CHECKING:
    from ..core.authentication import User
    from ..core.json_value import Json, JsonObject
    from ..core.request_info import RequestInfo
    from .session_id import SessionId


_INFINITE = float("inf")


class HttpMessage(RequestSource, Protocol):
    """The part of an HTTP request that the protocol needs."""

    @property
    def text(self) -> bytes:
        """The body: a message or a batch."""

    def describe_request(self, wire: str) -> RequestInfo: ...


class McpPeer(Peer):
    """The peer for the call that a request makes.

    Each wire has a subclass that can send frames before the result. This class itself drops
    notifications and cannot ask the client; it is for wires that respond once.
    """

    # The code that creates a peer sets these three.
    id: Id
    version: Version
    client: ClientCapabilities
    # The others usually keep the class's defaults, because every call creates a peer.
    caller = ""
    """The client's address."""
    level: Level | None = None
    """The minimum level of log messages to send; None means that none are sent."""
    progress_token: Id | None = None
    answers: Mapping[str, Any] = MappingProxyType({})
    """The user's answers sent with the request, by question key."""
    error: RpcError | None = None
    """The error response to the request, if any."""
    text: bytes = b""
    """The request's message; over HTTP it is in the HTTP request."""
    http: HttpMessage | None = None
    """The HTTP request that carried the message; None on other wires."""
    can_refuse_by_status = False
    """Whether the request can still be refused with an HTTP status."""
    session: Session | SessionId | None = None
    """The request's session, in the stateful era."""
    _questions = 0
    _last_progress = -_INFINITE

    def send(self, frame: bytes) -> None:
        """Send a notification. Never blocks for long. May be called from any thread."""

    def describe_request(self, wire: str) -> RequestInfo:
        """Return the request data for `ctx.request`."""
        from .mcp_request_info import McpRequestInfo

        return McpRequestInfo(wire, self)

    @property
    def user(self) -> User | None:
        """The user authenticated by the app's `auth=`."""
        return None if self.http is None else self.http.user

    @property
    def user_key(self) -> bytes:
        """A digest of the user; empty if there is no user."""
        return b"" if self.user is None else self.user.key

    @property
    def session_key(self) -> str:
        return "" if self.session is None else self.session.nonce.hex()

    async def send_request(self, method: str, params: Json) -> msgspec.Raw:
        """Send a request to the client and wait for its result; stateful versions only."""
        raise RuntimeError("the client cannot be asked on this wire")

    @property
    def protocol(self) -> str:
        return self.version.name

    @property
    def can(self) -> Abilities:
        client = self.client
        return Abilities(elicit=client.form, sample=client.sampling, roots=client.roots)

    def notify(self, note: Progress | Log) -> None:
        if self.cancelled:
            return  # The protocol forbids notifications about a cancelled request.
        params: JsonObject
        if isinstance(note, Log):
            if self.level is not None and reaches(note.level, self.level):
                params = {"level": note.level, "data": note.data}
                if note.logger is not None:
                    params["logger"] = note.logger
                self.send(notification_frame("notifications/message", params))
        # The protocol requires increasing progress; other values are dropped.
        elif self.progress_token is not None and self._last_progress < note.progress < _INFINITE:
            self._last_progress = note.progress
            params = {"progressToken": self.progress_token, "progress": note.progress}
            if note.total is not None:
                params["total"] = note.total
            if note.message is not None and self.version.progress_messages:
                params["message"] = note.message
            self.send(notification_frame("notifications/progress", params))

    async def ask(self, question: Question) -> Json:
        """Send a request in the stateful era; look up the answer in the stateless era."""
        if self.version.stateless:
            self._questions += 1
            return find_answer(question, self._questions, self.answers)
        # Only some versions have multiple-choice fields.
        fields = question.params.get("requestedSchema", {}).get("properties", {})
        has_choices = any(field.get("type") == "array" for field in fields.values())
        is_known = self.version.choices or not has_choices
        if not (is_known and self.client.can_answer(question)):
            raise NeedsInput({"question": question})
        return msgspec.json.decode(await self.send_request(question.method, question.params))
