"""The check of replies: undeclared data is removed, and values that cannot be sent are refused."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Any, NotRequired, TypedDict, get_args

import msgspec
import pytest
from pydantic import BaseModel, computed_field

from answerback import (
    App,
    Audio,
    Embedded,
    Image,
    Link,
    Reply,
    Text,
    ToolError,
    failure,
    success,
)
from answerback.contract import PRESETS, Dialect
from answerback.core.reply import Error
from answerback.core.shape import RESULT
from answerback.dialects import write

SECRET = "hunter2"
NAN, INFINITY = float("nan"), float("inf")
# Values that a type checker would refuse and Python accepts.
FIVE: Any = 5
NONE: Any = None
WORD: Any = "word"
ERROR: Any = ToolError("no")
NOTES: Any = {"priority": 2}


class User(TypedDict):
    name: str
    email: NotRequired[str]


@dataclass
class Account:
    name: str


@dataclass
class FullAccount(Account):
    password: str = SECRET


@dataclass
class Node:
    name: str
    children: list["Node"] = field(default_factory=list)


class WithoutText:
    def __str__(self) -> str:
        raise RuntimeError(SECRET)

    __repr__ = __str__


def call_returning(value: Any, annotation: Any = Any) -> Reply[Any]:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    app = App("test")
    app.add_tool(tool, inline=True)
    return asyncio.run(app.call("tool"))


def refusal(reply: Reply[Any]) -> str:
    assert reply.error is not None
    assert reply.error.code == "INVALID_OUTPUT"
    assert SECRET not in str(reply)
    message, _, reference = reply.error.message.partition(" (reference ")
    assert reply.error.details == {"reference": reference.removesuffix(")")}
    return message.removeprefix("Invalid output: ")


def cyclic_list() -> list[Any]:
    loop: list[Any] = []
    loop.append({"again": loop})
    return loop


def cyclic_node() -> Node:
    node = Node("a")
    node.children.append(node)
    return node


def deep_node() -> Node:
    node = Node("leaf")
    for _ in range(5000):
        node = Node("twig", [node])
    return node


@pytest.mark.parametrize(
    ("value", "annotation", "message"),
    [
        (SECRET, int, "expected int, got str"),
        (None, int, "expected int, got null"),
        (5, None, "expected null, got int"),
        ([1, SECRET], list[int], "[1]: expected int, got str"),
        ({"name": 5}, User, "name: expected str, got int"),
        ({"password": SECRET}, User, "name: missing"),
        ({"a": [1, NAN]}, dict[str, list[float]], "[key][1]: a number that is not finite"),
        (NAN, float, "a number that is not finite"),
        (-INFINITY, Any, "a number that is not finite"),
        ({"a": INFINITY}, Any, "[key]: a number that is not finite"),
        ("\ud800", str, "text with an unpaired surrogate, which UTF-8 cannot encode"),
        ({"a": "\udfff"}, Any, "[key]: text with an unpaired surrogate, which UTF-8 cannot encode"),
        (object(), Any, "object cannot be written as JSON"),
        ({"a": {1: object()}}, Any, "[key][key]: object cannot be written as JSON"),
        (cyclic_list(), Any, "[0][key]: a reference cycle: the value contains itself"),
        (cyclic_node(), Node, "children[0]: a reference cycle: the value contains itself"),
        (deep_node(), Node, "nested"),
        ((n for n in range(3)), list[int], "generator cannot be written as JSON"),
        ((n for n in range(3)), Any, "generator cannot be written as JSON"),
        (iter([1]), Any, "list_iterator cannot be written as JSON"),
        (open, Any, "builtin_function_or_method cannot be written as JSON"),
        (WithoutText(), Any, "WithoutText cannot be written as JSON"),
        ({(1, 2): 3}, Any, "a key of type tuple, which JSON does not support"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_path_and_not_shown(
    value: Any, annotation: Any, message: str
) -> None:
    assert message in refusal(call_returning(value, annotation))


def test_the_log_has_one_line_with_the_reference_of_the_reply(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = call_returning({"a": [1, SECRET]}, dict[str, list[int]]).error

    assert error is not None
    assert isinstance(error.details, dict)
    reference = error.details["reference"]
    assert (
        error.message == f"Invalid output: [key][1]: expected int, got str (reference {reference})"
    )
    (entry,) = caplog.records
    assert entry.exc_info is None
    assert entry.getMessage() == (
        f"tool 'tool' returned a value that cannot be sent, reference {reference}: "
        "[key 'a'][1]: expected int, got str"
    )


class Ledger(BaseModel):
    balances: dict[str, dict[str, int]]


def ledger_with(key: str) -> Ledger:
    return Ledger.model_construct(balances={"x": {key: "many"}})


@dataclass
class Accounts:
    balances: dict[str, int]


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        ({SECRET: "x"}, dict[str, int]),
        ({f"{SECRET}'] \" x": "x"}, dict[str, int]),
        ({SECRET: object()}, Any),
        ({SECRET: {"a": NAN}}, Any),
        ({SECRET: 1}, dict[int, int]),
        (Accounts({SECRET: "x"}), Accounts),  # type: ignore[dict-item]
        ([{SECRET: Ledger.model_construct(balances=1)}], list[dict[str, Ledger]]),
        (ledger_with(SECRET), Ledger),
    ],
)
def test_the_keys_of_a_dict_are_in_the_log_and_not_in_the_reply(
    value: Any, annotation: Any, caplog: pytest.LogCaptureFixture
) -> None:
    error = call_returning(value, annotation).error

    assert error is not None
    assert error.code == "INVALID_OUTPUT"
    assert "[key]" in error.message
    assert SECRET not in str(error)
    assert SECRET in caplog.text


class Failing(BaseModel):
    @computed_field  # type: ignore[prop-decorator]  # mypy does not know that it takes one
    @property
    def name(self) -> str:
        raise ValueError(SECRET)


@pytest.mark.parametrize("annotation", [Any, Failing, list[Failing]])
def test_an_exception_in_the_authors_model_is_logged_without_ours(
    annotation: Any, caplog: pytest.LogCaptureFixture
) -> None:
    value = [Failing()] if annotation == list[Failing] else Failing()

    assert "Failing cannot be" in refusal(call_returning(value, annotation))

    (entry,) = caplog.records
    assert entry.exc_info is not None
    assert str(entry.exc_info[1]) == SECRET
    assert "During handling" not in caplog.text


def test_an_undeclared_key_of_a_typed_dict_is_removed() -> None:
    reply = call_returning({"name": "Ann", "password": SECRET}, User)

    assert (reply.data, reply.encoded) == ({"name": "Ann"}, b'{"name":"Ann"}')


def test_undeclared_keys_inside_lists_are_removed() -> None:
    reply = call_returning([{"name": "Ann", "password": SECRET}], list[User])

    assert reply.encoded == b'[{"name":"Ann"}]'


@pytest.mark.parametrize("annotation", [Account, list[Account], dict[str, Account], Account | None])
def test_fields_that_only_a_subclass_has_are_removed(annotation: Any) -> None:
    values: dict[Any, Any] = {
        list[Account]: [FullAccount("Ann")],
        dict[str, Account]: {"a": FullAccount("Ann")},
    }

    reply = call_returning(values.get(annotation, FullAccount("Ann")), annotation)

    assert reply.ok
    assert reply.encoded is not None
    assert b"Ann" in reply.encoded
    assert SECRET not in str(reply)


def test_a_text_of_five_megabytes_is_sent_completely() -> None:
    text = "0123456789" * 500_000

    reply = call_returning(text, str)

    assert reply.encoded == b'"%b"' % text.encode()


def test_a_recursive_value_is_sent_completely() -> None:
    reply = call_returning(Node("a", [Node("b", [Node("c")])]), Node)

    assert reply.data == Node("a", [Node("b", [Node("c")])])


def test_data_is_encoded_as_its_declared_type() -> None:
    whole = call_returning(5.0, int)
    early = call_returning(datetime(2026, 1, 1, tzinfo=UTC), datetime)

    assert (whole.data, whole.encoded) == (5, b"5")
    assert early.encoded == b'"2026-01-01T00:00:00Z"'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (success(content=[FIVE]), "content[0]: expected a content block, got int"),
        (success("a", content=[Text(FIVE)]), "content[1].text: expected str, got int"),
        (success(content=[Text(FIVE)]), "content[0].text: expected str, got int"),
        (Text("\ud800"), "content[0].text: text with an unpaired surrogate"),
        (Text("a", annotations=FIVE), "content[0].annotations: expected object"),
        (Text("a", annotations=NOTES), "content[0].annotations: priority must be"),
        (Text("a", meta=FIVE), "content[0].meta: expected object | null, got int"),
        (Text("a", meta={"a": NAN}), "content[0].meta[key]: a number that is not finite"),
        (Text("a", meta={"a": object()}), "content[0].meta[key]: object cannot be written"),
        (Image(b"x", "image/png", width=WORD), "content[0].width: expected int | null, got str"),
        (Link(FIVE, "a"), "content[0].uri: expected str, got int"),
        (Link("a:b", "a", metadata={"a": {1, 2, object()}}), "content[0].metadata[key]"),
        (Embedded("a:b", text=FIVE), "content[0].text: expected str | null, got int"),
        ([Text("a"), Text(FIVE)], "content[1].text: expected str, got int"),
        (success("a", meta={"a": object()}), "meta[key]: object cannot be written as JSON"),
        (success("a", meta={"a": [NAN]}), "meta[key][0]: a number that is not finite"),
        (success("a", meta=FIVE), "meta: cannot be of type int"),
        (failure("a", meta={"a": object()}), "meta[key]: object cannot be written as JSON"),
        (Reply(content=FIVE), "content: cannot be of type int"),
        (Reply(content=NONE), "content: cannot be of type NoneType"),
        (Reply(timestamp=WORD), "timestamp: cannot be of type str"),
        (Reply(error=WORD), "error: cannot be of type str"),
        (Reply(error=ERROR), "error: cannot be of type ToolError"),
        (success("a", NAN), "a number that is not finite"),
    ],
)
def test_a_reply_that_cannot_be_sent_is_refused_with_its_path(value: Any, message: str) -> None:
    assert message in refusal(call_returning(value))


@pytest.mark.parametrize("value", [success("done"), Text("done"), Reply()])
def test_a_reply_without_the_declared_data_is_refused(value: Any) -> None:
    assert "without the data" in refusal(call_returning(value, int))


def test_blocks_are_refused_where_data_is_declared() -> None:
    assert refusal(call_returning([Text("done")], list[int])) == "[0]: expected int, got object"


def test_other_values_are_refused_where_only_blocks_are_declared() -> None:
    assert refusal(call_returning(5, Image)) == "expected content blocks, got int"
    assert refusal(call_returning([5], list[Image])) == "expected content blocks, got list"
    assert refusal(call_returning(None, list[Image])) == "expected content blocks, got NoneType"


def test_the_content_of_a_reply_may_be_a_list() -> None:
    blocks: Any = [Text("a")]

    assert call_returning(Reply(content=blocks)).content == (Text("a"),)


def test_data_beside_an_error_is_removed() -> None:
    reply = call_returning(Reply(data=SECRET, error=Error("GONE", "it is gone")), int)

    assert reply.error == Error("GONE", "it is gone")
    assert reply.data is msgspec.UNSET
    assert SECRET not in str(reply)


def raising(exc: Exception) -> Callable[[], Any]:
    def tool() -> Any:
        raise exc

    return tool


def returning(reply: Reply[Any]) -> Callable[[], Any]:
    def tool() -> Any:
        return reply

    return tool


def error_of(fn: Callable[[], Any]) -> Error:
    app = App("test")
    app.add_tool(fn, name="tool", inline=True)
    error = asyncio.run(app.call("tool")).error
    assert error is not None
    return error


@pytest.mark.parametrize("raised", [True, False])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"details": object()}, {}),
        ({"details": {"a": NAN}}, {}),
        ({"details": cyclic_list()}, {}),
        ({"details": {"a": "\ud800"}}, {}),
        ({"details": object(), "hint": "wait", "retryable": True}, {"hint": "wait"}),
        ({"hint": 5, "details": {"a": 1}}, {"details": {"a": 1}}),
        ({"details": {"x": object(), "keep": 1, (1, 2): 3, "b": [NAN]}}, {"details": {"keep": 1}}),
        ({"retryable": "yes"}, {"retryable": None}),
    ],
)
def test_members_of_an_error_that_cannot_be_sent_are_removed_and_logged(
    raised: bool,
    given: dict[str, Any],
    expected: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    fn = (
        raising(ToolError("it broke", **given))
        if raised
        else returning(failure("it broke", **given))
    )

    error = error_of(fn)

    assert (error.code, error.message) == ("UNKNOWN_ERROR", "it broke")
    assert {name: getattr(error, name) for name in expected} == expected
    assert "details" in expected or error.details is None
    assert "the error from tool 'tool' has parts that cannot be encoded" in caplog.text


@pytest.mark.parametrize(
    ("message", "expected"),
    [(5, "5"), (["it broke"], "['it broke']"), ("half \ud800", "half ?")],
)
def test_a_message_that_is_not_a_string_becomes_one(message: Any, expected: str) -> None:
    assert error_of(raising(ToolError(message))).message == expected
    assert error_of(returning(failure(message))).message == expected


@pytest.mark.parametrize("code", [5, "not upper snake", "A\r\nSet-Cookie: a=b", "É", "x" * 999])
def test_an_invalid_error_code_is_sent_with_status_500(code: Any) -> None:
    error = error_of(raising(ToolError("it broke", code=code)))

    assert error.code == str(code)
    assert error.row.status == 500
    for contract, dialect in product(PRESETS.values(), get_args(Dialect)):
        written = write(Reply(error=error), dialect, RESULT, contract)
        assert written.status == 500
        assert all("\r" not in value and value.isascii() for _, value in written.headers)


def test_details_that_can_be_sent_are_not_changed() -> None:
    details = {"when": datetime(2026, 1, 1, tzinfo=UTC), "ids": (1, 2)}

    assert error_of(raising(ToolError("it broke", details=details))).details == details


def test_a_message_whose_str_fails_is_masked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    message: Any = WithoutText()

    raised = error_of(raising(ToolError(message)))
    returned = error_of(returning(failure(message)))

    assert raised.code == returned.code == "TOOL_EXECUTION_ERROR"
    assert SECRET not in raised.message + returned.message
    assert SECRET in caplog.text


def test_an_audio_block_passes_the_check() -> None:
    assert call_returning(Audio(b"x", "audio/wav"), Audio).ok
