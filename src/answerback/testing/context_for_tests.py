"""TestContext: a Context that records what a tool sends, and answers its questions.

This is a separate module because pytest loads `testing` in every project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from ..calls.call import Call
from ..calls.context import Context, Root
from ..core.json_value import Json
from ..core.peer import Abilities, Level, Log, Peer, Progress, Question
from ..core.request_info import RequestHeaders, RequestInfo
from ..tools.elicitation import Declined


class ProgressReport(NamedTuple):
    """One `ctx.progress(…)`."""

    progress: float
    total: float | None
    message: str | None


class LogMessage(NamedTuple):
    """One `ctx.log(…)`."""

    level: Level
    data: Any


class TestContext(Context[Any]):
    """A Context for tests.

    *answers* are the answers to the tool's questions, in order. The answer to `elicit` is the
    value, an object with the form's fields, or `Declined`; to `sample`, the model's text; to
    `roots`, a list of URIs. *user* is the request's user. *headers* are the request's headers.
    *meta* is the request's `_meta`. *state* is for direct calls; `app.call` uses the app's.
    """

    # Otherwise pytest would mistake it for a test class, because of its name.
    __test__ = False

    def __init__(
        self,
        answers: Iterable[Any] = (),
        *,
        state: object = None,
        user: object = None,
        headers: Mapping[str, str] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self._peer = _RecordingPeer(answers, _RequestOfTest(user, headers, meta))
        self._state = state
        super().__init__(Call("test", peer=self._peer))

    @property
    def state(self) -> Any:
        """The state provided by the test."""
        return self._state

    @property
    def progress_reports(self) -> list[ProgressReport]:
        """The progress that the tool reported."""
        notes = self._peer.notes
        return [
            ProgressReport(each.progress, each.total, each.message)
            for each in notes
            if isinstance(each, Progress)
        ]

    @property
    def logs(self) -> list[LogMessage]:
        """The log messages that the tool sent."""
        return [LogMessage(each.level, each.data) for each in self._peer.notes if type(each) is Log]

    @property
    def questions(self) -> list[str]:
        """Each question's text; for `roots`, the method."""
        return [each.message or each.method for each in self._peer.questions]

    @property
    def answers_left(self) -> int:
        """How many answers have not been used yet."""
        return len(self._peer.answers)

    def cancel(self) -> None:
        """Make `ctx.cancelled` true from now on, as if the client were no longer waiting."""
        self._peer.cancel()


class _RequestOfTest(RequestInfo):
    """The request, with the user, headers and `_meta` provided by the test."""

    def __init__(
        self, user: object, headers: Mapping[str, str] | None, meta: Mapping[str, Any] | None
    ) -> None:
        super().__init__("memory")
        self._user = user
        self.meta = meta
        if headers is not None:
            self.headers = RequestHeaders(headers.items())

    @property
    def user(self) -> Any:
        return self._user


class _RecordingPeer(Peer):
    """A peer that records a call's notifications and questions."""

    can = Abilities(elicit=True, sample=True, roots=True)

    def __init__(self, answers: Iterable[Any], request: RequestInfo) -> None:
        super().__init__()
        self._request = request
        self.answers = list(answers)
        self.notes: list[Progress | Log] = []
        self.questions: list[Question] = []

    def notify(self, note: Progress | Log) -> None:
        self.notes.append(note)

    def describe_request(self, wire: str) -> RequestInfo:
        return self._request

    async def ask(self, question: Question) -> Json:
        self.questions.append(question)
        if not self.answers:
            raise AssertionError(
                f"there is no answer to {question.message or question.method!r}; "
                "provide one: TestContext(answers=[…])"
            )
        return _result(question, self.answers.pop(0))


def _result(question: Question, answer: Any) -> dict[str, Any]:
    """Return the MCP result for an answer."""
    if question.method == "elicitation/create":
        return _elicited(question, answer)
    if question.method == "roots/list":
        return {"roots": [{"uri": each.uri if isinstance(each, Root) else each} for each in answer]}
    if isinstance(answer, dict):
        return answer
    return {"role": "assistant", "model": "test", "content": {"type": "text", "text": answer}}


def _elicited(question: Question, answer: object) -> dict[str, Any]:
    if answer is Declined or isinstance(answer, Declined):
        return {"action": "decline"}
    plain = msgspec.to_builtins(_dumped(answer))
    if not isinstance(plain, dict):
        fields = list(question.params["requestedSchema"].get("properties", {}))
        plain = dict.fromkeys(fields[:1], plain)
    return {"action": "accept", "content": plain}


def _dumped(answer: object) -> Any:
    """Return a pydantic model's members; return any other answer unchanged."""
    dump = getattr(answer, "model_dump", None)
    return dump(by_alias=True, mode="json") if callable(dump) else answer
