"""Call: one invocation, from any wire; and the types of the call path."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from ..core.peer import NO_PEER, NeedsInput, Peer, RequestSource
from ..core.reply import Reply, failure
from ..core.shape import RESULT, Shape
from ..errors import INPUT_REQUIRED
from ..tools.current_call import CURRENT
from ..tools.tool import Tool
from .context import Context

if TYPE_CHECKING:
    from ..core.authentication import Challenge
    from ..core.list_page import StoredPart
    from ..core.reply import Error
    from .runtime import Runtime


class Attempts(Protocol):
    """The attempts of a call whose tool has `limit=`, `breaker=` or `retry=`: a PolicyRun."""

    attempts: int
    opened: bool

    @property
    def breaker(self) -> str:
        """The breaker's current state; empty if there is no breaker."""

    def shown_for(self, exc: BaseException) -> Error | None:
        """Return the error that callers see if the service failed; None for other exceptions."""


class Call(msgspec.Struct, eq=False):
    """One invocation; a wire makes it from the bytes it received."""

    name: str
    arguments: bytes = b"{}"
    peer: Peer = NO_PEER
    wire: str = "memory"
    cancelled: bool = False
    """Set by the wire when the client is no longer waiting for the outcome."""
    caller: str = ""
    """The client's address, if the wire knows it."""
    is_disconnected: Callable[[], bool] | None = None
    """Asks the connection whether the client has disconnected; None if it cannot tell."""
    tool: Tool | None = None
    """The called tool. The pipeline sets it; None if there is no such tool."""
    request: RequestSource | None = None
    """The HTTP request over REST or CGI, for `ctx.request`; over MCP, the peer has it."""
    user: object = None
    """The authenticated user; None if nothing authenticates the call."""
    challenge: Challenge | None = None
    """Set if a gate refused the call, and the client can log in or ask for more scopes."""
    shape: Shape = RESULT
    """How the reply's data is wrapped. The pipeline sets it for a successful reply."""
    stage: Literal["whole", "admit", "run"] = "whole"
    """A task passes the gates in one stage, when it is created, and runs in a later one."""
    is_counted: bool = False
    """Whether the tool's rate limits already counted the call when its task was created."""
    kept_answers: dict[str, Any] | None = None
    """A dict that collects the answers to `Ask` questions, for a task that runs later."""
    runtime: Runtime | None = None
    """The runtime that runs the call. The pipeline sets it."""
    part: StoredPart | None = None
    """The part of a stored list to return, if the call continues one."""
    item_sizes: Sequence[int] = ()
    """The size in bytes of each item read from that part."""
    policy_run: Attempts | None = None
    """The attempts so far, if the tool has `limit=`, `breaker=` or `retry=`; None otherwise."""

    @property
    def owner(self) -> str:
        """A digest of the user that pages and replies are stored for; empty if there is no user."""
        # Imported here, so that calls without a budget or pages do not pay for it.
        from ..core.authentication import owner_of

        return owner_of(Context(self).user)


def get_context() -> Context[Any]:
    """Return the running call's Context, for functions that have no parameter for it.

    Raises RuntimeError outside a call, and in a thread that you started yourself.
    """
    current = CURRENT.get()
    if not isinstance(current, Call):
        raise RuntimeError(
            "get_context() needs a running call; call it in a tool, resource or prompt, or in a "
            "function called from one. A thread that you start yourself has no access to the call: "
            "start it with contextvars.copy_context().run, or with asyncio.to_thread"
        )
    return Context(current)


Outcome: TypeAlias = "Reply[Any] | NeedsInput"
Handler: TypeAlias = Callable[[Call], Coroutine[Any, Any, Outcome]]


def reply_or_refusal(outcome: Outcome) -> Reply[Any]:
    """Return the reply. For a client that cannot be asked, a question becomes an error."""
    if isinstance(outcome, Reply):
        return outcome
    questions = outcome.questions.values()
    # A model reads the message: a bare question would invite it to answer.
    capabilities = list(dict.fromkeys(each.capability for each in questions))
    missing = ", ".join(capabilities) or "answers"
    message = f"This call needs something the client does not offer: {missing}"
    if texts := [each.message for each in questions if each.message]:
        message += f". It asks: {' '.join(texts)}"
    return failure(
        message,
        code=INPUT_REQUIRED,
        details={
            "questions": [{"method": each.method, "params": each.params} for each in questions]
        },
        hint="; ".join(_HINTS[each] for each in capabilities) or None,
    )


_HINTS = {
    "elicitation": "it asks the user: call it from a terminal, or from an MCP client that can ask",
    "sampling": "it asks a language model, which an MCP client with sampling provides",
    "roots": "it asks for the directories it may work in, which an MCP client with roots lists",
}
