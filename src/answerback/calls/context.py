"""Context: a running tool's view of its call and of its client.

Progress and log messages never fail a call, whatever they contain. Values that cannot be sent are
changed here, so that every wire sends the same values:

- Progress that is not a finite number is dropped; a total that is not finite is omitted.
- An unknown level becomes "error".
- A value that JSON cannot represent is sent as its `repr`, or as its class name.
- Unpaired surrogates become question marks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast, overload

import msgspec

from ..core.author_errors import Unawaited
from ..core.peer import (
    LEVELS,
    NO_PEER,
    Abilities,
    Level,
    Log,
    NeedsInput,
    Peer,
    Progress,
    Question,
)
from ..tools.current_call import CURRENT, CallContext

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    # Type variable defaults are newer than Python 3.11, and only type checkers need them.
    from typing_extensions import TypeVar as TypeVarWithDefault

    from ..core.request_info import RequestInfo
    from ..registry.declarations import Registry
    from .call import Call
    from .runtime import Runtime

    StateT = TypeVarWithDefault("StateT", default=Any)
else:
    StateT = TypeVar("StateT")


class Root(msgspec.Struct, frozen=True):
    """A folder or URI that the client lets the tool work in."""

    uri: str
    """The folder's URI, such as file:///home/alice/notes."""
    name: str | None = None
    """The folder's display name."""


class Sample(msgspec.Struct, frozen=True):
    """A message from the client's model; `text` is empty if the message is not text."""

    text: str
    """The text of the message."""
    content: Any
    """The content, in MCP's format."""
    model: str = ""
    """The model's name."""
    stop_reason: str | None = None
    """Why the model stopped."""


def current_runtime() -> Runtime | None:
    """Return the current call's runtime, or the server's runtime between calls."""
    current: Call | Runtime | None = CURRENT.get()
    return None if current is None else current.runtime


class _Sent:
    """The result of `ctx.log` and `ctx.progress`: awaiting it is optional."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


SENT = _Sent()


def _must_await(method: F) -> F:
    """Wrap *method* so that using its coroutine as if it were the result raises an error."""
    advice = (
        f"ctx.{method.__name__}(…) is not awaited; write await ctx.{method.__name__}(…), which "
        "needs an async def"
    )
    if method.__name__ == "elicit":
        advice += "; in a plain def, let a parameter ask: Annotated[bool, Ask('Sure?')]"

    @wraps(method)
    def start(*args: object, **options: object) -> Unawaited[Any]:
        return Unawaited(method(*args, **options), advice)

    return cast("F", start)


class Context(CallContext, Generic[StateT]):
    """The call's context, injected into a parameter with this annotation; not part of the schema.

    `Context[State]` declares the type of `state`, which the app's lifespan yielded.
    """

    __slots__ = ()
    _call: Call

    def __init__(self, call: Call) -> None:
        self._call = call

    # Hidden from type checkers, so that they still catch a wrong name.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            from ..tools.other_frameworks import missing_member

            raise missing_member("Context", name, dir(Context))

    @property
    def tool(self) -> str:
        """The name of the tool or prompt, or the resource's URI."""
        return self._call.name

    @property
    def wire(self) -> str:
        """The wire that the call came over: "mcp", "rest", "cgi", "call" or "memory"."""
        return self._call.wire

    @property
    def state(self) -> StateT:
        """The value yielded by the lifespan of the tool's app; None without a lifespan."""
        # The last app on the path is the one that the tool was registered with.
        tool = self._call.tool
        return cast("StateT", _state_of(tool.path[-1]) if tool and tool.path else None)

    @property
    def request(self) -> RequestInfo:
        """The request: headers, client, session, address. Missing members are None.

        The request itself is None inside a task, which outlives its request.
        """
        call = self._call
        # Declared as never None, because most tools never run as tasks.
        return cast("RequestInfo", (call.request or call.peer).describe_request(call.wire))

    @property
    def user(self) -> Any:
        """The user authenticated by the server or its middleware; None if there is none."""
        user = self._call.user
        if user is not None:
            return user
        request: RequestInfo | None = self.request
        return None if request is None else request.user

    @property
    def cancelled(self) -> bool:
        """Whether the client has stopped waiting; long-running tools should check this and stop."""
        call = self._call
        if call.cancelled or call.peer.cancelled:
            return True
        return call.is_disconnected is not None and call.is_disconnected()

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Report the tool's progress, with or without `await`. May be called from any thread."""
        done = _finite(progress)
        if done is not None:
            self._call.peer.notify(Progress(done, _finite(total), _text_or_none(message)))
        return SENT

    def log(
        self, data: object, level: Level = "info", *, logger: str | None = None
    ) -> Awaitable[None]:
        """Send the client a log message, with or without `await`. May be called from any thread.

        *logger* is a name that the client shows next to the message.
        """
        known: Level = level if level in LEVELS else "error"
        name = _text_or_none(logger or self._call.name)
        self._call.peer.notify(Log(known, _json_value(data), name))
        return SENT

    @property
    def can(self) -> Abilities:
        """The kinds of questions that the client can answer."""
        return self._call.peer.can

    @overload
    async def elicit(self, message: str, form: type[T], *, key: str | None = None) -> T: ...
    @overload
    async def elicit(
        self, message: str, form: dict[str, Any], *, key: str | None = None
    ) -> dict[str, Any]: ...
    @_must_await
    async def elicit(
        self, message: str, form: object = None, *, key: str | None = None, **unknown: object
    ) -> Any:
        """Ask the user; raise Declined if there is no answer.

        *form* is the answer's type, or the JSON Schema of your own form.
        In MCP 2026-07-28, and inside a task, the function runs again from its start once there is
        an answer, so the code before the question runs twice. *key* identifies the answer in that
        second run; by default the question's position and text do.
        """
        from ..core.clocks import clocks_paused
        from ..tools.elicitation import Form, check_question

        check_question(form, unknown)
        asked = Form(message, form, key=key)
        with clocks_paused():
            return await asked.ask(self._call.peer)

    @_must_await
    async def sample(
        self,
        prompt: str,
        *,
        max_tokens: int = 1000,
        system: str | None = None,
        key: str | None = None,
        **more: object,
    ) -> Sample:
        """Ask the client's model for a message.

        *max_tokens* is the maximum length of the message, in tokens. *system* is the system prompt.
        *key* names the question, as in `elicit`. *more* holds additional members of the request.
        """
        params: dict[str, Any] = {
            "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
            "maxTokens": max_tokens,
        }
        params |= more if system is None else {"systemPrompt": system, **more}
        result = await self._ask(Question("sampling/createMessage", params, key))
        content = result.get("content")
        text = content.get("text", "") if isinstance(content, dict) else ""
        return Sample(text, content, result.get("model", ""), result.get("stopReason"))

    @_must_await
    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Return the folders and URIs that the client lets the tool work in.

        *key* names the question, as in `elicit`.
        """
        result = await self._ask(Question("roots/list", {}, key))
        return msgspec.convert(result.get("roots", []), list[Root])

    async def _ask(self, question: Question) -> Any:
        from ..core.clocks import clocks_paused

        with clocks_paused():
            return await self._call.peer.ask(question)

    def close_stream(self) -> None:
        """Close the response stream if the client can resume it; otherwise do nothing."""
        self._call.peer.close_stream()

    @_must_await
    async def together(self, *questions: Awaitable[Any]) -> tuple[Any, ...]:
        """Ask several questions at once: `await ctx.together(ctx.elicit(…), ctx.roots())`."""
        answers: list[Any] = []
        open_questions: dict[str, Question] = {}
        for question in questions:
            try:
                answers.append(await question)
            except NeedsInput as later:
                open_questions |= later.questions
        if open_questions:
            raise NeedsInput(open_questions)
        return tuple(answers)


class ContextOfApp(Context[Any]):
    """The context for an including app's middleware, with that app's `state`."""

    __slots__ = ("_app",)

    def __init__(self, call: Call, app: Registry) -> None:
        super().__init__(call)
        self._app = app

    @property
    def state(self) -> Any:
        return _state_of(self._app)


def _state_of(app: Registry) -> Any:
    return None if app.lifespan is None else app.lifespan.state


def take_caller(arguments: dict[str, Any]) -> tuple[Peer, Any]:
    """Remove the Context from the arguments of an in-memory call; return its peer and its user."""
    for name, value in arguments.items():
        if isinstance(value, Context):
            user = value.user
            del arguments[name]
            return value._call.peer, user
    return NO_PEER, None


_MAX_FLOAT = 1.7976931348623157e308


def _finite(value: Any) -> float | None:
    """Return the value as a number that JSON can represent, or None."""
    try:
        number = value if type(value) in (int, float) else float(value)
    except Exception:  # noqa: BLE001 -- the author's class may raise anything
        return None
    return number if -_MAX_FLOAT <= number <= _MAX_FLOAT else None


def _text_or_none(value: object) -> str | None:
    if value is None:
        return None
    return _encodable(value) if isinstance(value, str) else _safe_repr(value)


def _json_value(value: object) -> Any:
    if isinstance(value, str):
        return _encodable(value)
    try:
        return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_safe_repr))
    except Exception:  # noqa: BLE001 -- the author's class may raise anything
        return _safe_repr(value)


def _safe_repr(value: object) -> str:
    try:
        return _encodable(repr(value))
    except Exception:  # noqa: BLE001 -- the author's class may raise anything
        return f"<{type(value).__name__}>"


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
