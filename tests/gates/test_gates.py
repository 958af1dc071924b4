"""Gates: what they are given, in which order they run, and how they refuse a call."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any
from uuid import UUID

import pytest
from tests.serving import handlers_of

from answerback import App, Context, Forbidden, Limits, NotFound, ToolError, failure
from answerback.calls.call import Call
from answerback.core.authentication import User
from answerback.gates import Refusal, linked, login, scope, subscription
from answerback.testing import TestContext

CUSTOMER = "5f0c954e-7a3b-4f1e-9a53-3ad0a3a7a0f1"
ANNA = User(subject="anna", issuer="https://id.example.com", scopes=frozenset({"a", "b"}))


def call(app: App, name: str, user: Any = None, **arguments: Any) -> Any:
    return asyncio.run(app.call(name, ctx=TestContext(user=user), **arguments))


def app_with(*gates: Callable[..., Any], **options: Any) -> App:
    app = App("shop", **options)

    @app.tool(requires=list(gates))
    def orders(customer: UUID, limit: int = 5) -> list[int]:
        return [limit]

    return app


def always(ctx: Context) -> None:
    """Let everyone pass."""


def test_a_call_passes_a_gate_that_returns_nothing_and_one_that_returns_true() -> None:
    reply = call(app_with(always, lambda ctx: True), "orders", customer=CUSTOMER)

    assert reply.data == [5]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_gate_refuses_by_the_error_that_it_raises(is_async: bool) -> None:
    def refuse(ctx: Context) -> None:
        raise NotFound("no such customer", hint="look again")

    async def refuse_async(ctx: Context) -> None:
        await asyncio.sleep(0)
        refuse(ctx)

    reply = call(app_with(refuse_async if is_async else refuse), "orders", customer=CUSTOMER)

    assert (reply.error.code, reply.error.message) == ("NOT_FOUND", "no such customer")
    assert reply.error.hint == "look again"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (False, "FORBIDDEN"),
        (Forbidden("no"), "FORBIDDEN"),
        (ToolError("no"), "FORBIDDEN"),
        (ToolError("no", "CLOSED"), "CLOSED"),
        (failure("no"), "FORBIDDEN"),
        (failure("no", "RATE_LIMITED"), "RATE_LIMITED"),
        (Refusal("no"), "FORBIDDEN"),
        (Refusal("no", "SUBSCRIPTION_REQUIRED"), "SUBSCRIPTION_REQUIRED"),
    ],
)
def test_a_gate_refuses_by_the_value_that_it_returns(value: Any, code: str) -> None:
    reply = call(app_with(lambda ctx: value), "orders", customer=CUSTOMER)

    assert reply.error.code == code


@pytest.mark.parametrize("value", ["yes", 1, 0, "", [], {}, object(), User(subject="x")])
def test_an_odd_value_of_a_gate_refuses_the_call_and_is_logged(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        reply = call(app_with(lambda ctx: value), "orders", customer=CUSTOMER)

    assert reply.error.code == "TOOL_EXECUTION_ERROR"
    assert reply.error.details["reference"] in caplog.text
    assert "return None to let the call pass" in caplog.text


@pytest.mark.parametrize("error", [ValueError("password 123"), SystemExit(0), AssertionError()])
def test_an_exception_in_a_gate_refuses_the_call_and_is_masked(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []
    app = App("shop")

    def broken(ctx: Context) -> None:
        raise error

    @app.tool(requires=[broken])
    def pay() -> None:
        ran.append(1)

    with caplog.at_level(logging.ERROR):
        reply = call(app, "pay")

    assert reply.error.code == "TOOL_EXECUTION_ERROR"
    assert "password" not in str(reply.to("mcp"))
    assert reply.error.details["reference"] in caplog.text
    assert ran == []


def test_a_gate_with_the_context_alone_runs_before_the_arguments_are_decoded() -> None:
    reply = call(app_with(login()), "orders", customer="not a UUID")

    assert reply.error.code == "LOGIN_REQUIRED"


def test_a_gate_that_names_parameters_gets_the_decoded_values_and_the_defaults() -> None:
    seen: list[Any] = []

    async def owns(ctx: Context, customer: UUID, limit: int) -> None:
        seen.append((customer, limit))

    reply = call(app_with(owns), "orders", customer=CUSTOMER)

    assert reply.data == [5]
    assert seen == [(UUID(CUSTOMER), 5)]


def test_wrong_arguments_are_refused_before_a_gate_that_names_parameters() -> None:
    def owns(ctx: Context, customer: UUID) -> bool:
        return False

    reply = call(app_with(owns), "orders", customer="not a UUID")

    assert reply.error.code == "INVALID_ARGUMENTS"


def test_gates_run_in_the_order_in_which_they_are_given() -> None:
    ran: list[str] = []

    def gate(name: str) -> Callable[..., Any]:
        return lambda ctx: ran.append(name)

    def late(ctx: Context, customer: UUID) -> None:
        ran.append("late")

    call(app_with(gate("a"), late, gate("b"), gate("c")), "orders", customer=CUSTOMER)

    assert ran == ["a", "b", "c", "late"]


def test_the_gates_after_one_that_refuses_do_not_run() -> None:
    ran: list[int] = []

    reply = call(
        app_with(lambda ctx: False, lambda ctx: ran.append(1)), "orders", customer=CUSTOMER
    )

    assert reply.error.code == "FORBIDDEN"
    assert ran == []


def test_the_gates_of_an_app_run_first_then_those_of_the_app_it_includes_then_the_tools() -> None:
    ran: list[str] = []

    def gate(name: str) -> Callable[..., Any]:
        return lambda ctx: ran.append(name)

    outer = App("outer", requires=[gate("outer")])
    inner = App("inner", requires=[gate("inner")])

    @inner.tool(requires=[gate("tool")])
    def add(x: int) -> int:
        return x

    outer.include(inner, prefix="in_")
    reply = call(outer, "in_add", x=1)

    assert reply.data == 1
    assert ran == ["outer", "inner", "tool"]


def test_gates_of_an_app_hold_for_tools_that_are_registered_later_and_in_included_apps() -> None:
    outer = App("outer", requires=[login()])
    inner = App("inner")
    outer.include(inner)

    @inner.tool
    def add(x: int) -> int:
        return x

    assert call(outer, "add", x=1).error.code == "LOGIN_REQUIRED"
    assert call(outer, "add", ANNA, x=1).data == 1
    assert call(inner, "add", x=1).data == 1


def test_all_scopes_are_one_challenge_at_the_place_of_the_first() -> None:
    ran: list[str] = []
    app = app_with(scope("a"), lambda ctx: ran.append("between"), scope("x", "a"), scope("y"))
    asked = Call("orders", b"{}", user=ANNA)

    reply = asyncio.run(handlers_of(app).tools(asked))

    assert reply.error is not None  # type: ignore[union-attr]  # a reply, not a question
    assert reply.error.code == "SCOPE_REQUIRED"  # type: ignore[union-attr]  # as above
    assert asked.challenge is not None
    assert asked.challenge.scopes == ("a", "x", "y")
    assert asked.challenge.status == 403
    assert ran == []


def test_a_caller_without_a_login_is_asked_for_all_scopes_at_once() -> None:
    asked = Call("orders", b"{}")

    asyncio.run(handlers_of(app_with(login(), scope("a"), scope("b"))).tools(asked))

    assert asked.challenge is not None
    assert (asked.challenge.status, asked.challenge.scopes) == (401, ("a", "b"))


def test_a_user_with_all_scopes_passes() -> None:
    assert call(app_with(scope("a"), scope("b")), "orders", ANNA, customer=CUSTOMER).data == [5]


@pytest.mark.parametrize("is_async", [False, True])
def test_subscription_and_linked_ask_their_check_and_imply_a_login(is_async: bool) -> None:
    def has_plan(ctx: Context) -> bool:
        return bool(ctx.user.subject == "anna")

    async def has_plan_async(ctx: Context) -> bool:
        await asyncio.sleep(0)
        return has_plan(ctx)

    check = has_plan_async if is_async else has_plan
    for make, code in ((subscription, "SUBSCRIPTION_REQUIRED"), (linked, "LINK_REQUIRED")):
        app = app_with(make("pro", check=check))

        assert call(app, "orders", customer=CUSTOMER).error.code == "LOGIN_REQUIRED"
        assert call(app, "orders", User(subject="b"), customer=CUSTOMER).error.code == code
        assert call(app, "orders", ANNA, customer=CUSTOMER).data == [5]


def test_a_check_that_returns_no_boolean_refuses_the_call() -> None:
    app = app_with(subscription("pro", check=lambda ctx: "yes"))

    reply = call(app, "orders", ANNA, customer=CUSTOMER)

    assert reply.error.code == "TOOL_EXECUTION_ERROR"


def test_an_async_gate_that_takes_too_long_refuses_the_call() -> None:
    async def hang(ctx: Context) -> None:
        await asyncio.Event().wait()

    reply = call(app_with(hang, limits=Limits(gates=0.05)), "orders", customer=CUSTOMER)

    assert reply.error.code == "TIMED_OUT"
    assert "gate" in reply.error.message


def test_an_async_gate_that_takes_too_long_and_ignores_its_cancellation_refuses_the_call() -> None:
    async def hang(ctx: Context) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    reply = call(app_with(hang, limits=Limits(gates=0.05)), "orders", customer=CUSTOMER)

    assert reply.error.code == "TIMED_OUT"


def test_a_plain_gate_that_takes_too_long_refuses_the_call() -> None:
    released = threading.Event()

    def hang(ctx: Context) -> None:
        released.wait(60)

    reply = call(app_with(hang, limits=Limits(gates=0.05)), "orders", customer=CUSTOMER)
    released.set()

    assert reply.error.code == "TIMED_OUT"


def test_a_plain_gate_runs_in_a_thread_beside_the_event_loop() -> None:
    threads: list[int] = []

    call(app_with(lambda ctx: threads.append(threading.get_ident())), "orders", customer=CUSTOMER)

    assert threads != [threading.get_ident()]


@pytest.mark.parametrize("method", ["elicit", "sample", "roots"])
def test_a_gate_cannot_ask_the_client(method: str, caplog: pytest.LogCaptureFixture) -> None:
    async def ask(ctx: Context) -> None:
        await getattr(ctx, method)("May I?", bool)

    reply = call(app_with(ask), "orders", customer=CUSTOMER)

    assert reply.error.code == "TOOL_EXECUTION_ERROR"
    assert "a gate cannot ask the client" in caplog.text


def owns_custmer(ctx: Context, custmer: UUID) -> None: ...
def owns_text(ctx: Context, customer: str) -> None: ...
def owns_union(ctx: Context, customer: UUID | None) -> None: ...
def no_context(customer: UUID) -> None: ...
def no_context_or_type(customer) -> None: ...  # type: ignore[no-untyped-def]  # the case
def takes_user(user) -> None: ...  # type: ignore[no-untyped-def]  # the case
def nothing() -> None: ...
def many(ctx: Context, *args: int) -> None: ...


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (owns_custmer, "not an argument of tool 'orders'; did you mean 'customer'?"),
        (owns_text, "takes 'customer' as str, and tool 'orders' as UUID"),
        (no_context, "the first parameter of gate 'no_context' must be ctx"),
        (no_context_or_type, "the first parameter of gate 'no_context_or_type' must be ctx"),
        (takes_user, "the first parameter of gate 'takes_user' must be ctx"),
        (nothing, "the first parameter of gate 'nothing' must be ctx"),
        (many, "gate 'many' takes *args"),
        (login, "write login(…)"),
        ("accounts:read", "write scope('accounts:read')"),
        (7, "write functions: def owner_only(ctx)"),
        (User, "write functions"),
    ],
)
def test_a_wrong_gate_is_refused_at_registration(gate: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        app_with(gate)

    assert message in str(caught.value)


def test_a_gate_may_take_a_wider_type_than_the_tool() -> None:
    app = App("shop")

    @app.tool(requires=[owns_union])
    def orders(customer: Annotated[UUID, "whose orders"]) -> str:
        return str(customer)

    assert call(app, "orders", customer=CUSTOMER).data == CUSTOMER


@pytest.mark.parametrize("make", [subscription, linked])
def test_a_gate_without_a_check_says_what_to_write(make: Any) -> None:
    with pytest.raises(TypeError, match="needs check=, a function that takes ctx and returns True"):
        make("pro")


@pytest.mark.parametrize(
    ("gate", "written"),
    [(always, "always"), (login(), "login()"), (scope("a", "b"), "scope('a', 'b')")],
)
def test_requires_that_is_no_list_says_what_to_write(gate: Any, written: str) -> None:
    with pytest.raises(TypeError) as caught:
        App("shop", requires=gate)

    assert str(caught.value) == f"requires is a list: requires=[{written}]"


def test_a_bad_scope_is_refused() -> None:
    with pytest.raises(TypeError, match="names without spaces"):
        scope("accounts:read accounts:write")


def test_a_gate_of_an_app_that_names_a_parameter_is_refused_for_a_tool_without_it() -> None:
    app = App("shop", requires=[owns_union])

    with pytest.raises(TypeError, match="is not an argument of tool 'add'"):

        @app.tool
        def add(x: int) -> int:
            return x


def test_the_error_of_a_gate_never_breaks_the_output_schema_of_a_typed_tool() -> None:
    written = call(app_with(login()), "orders", customer=CUSTOMER).to("mcp")

    assert written["isError"] is True
    assert "structuredContent" not in written
    assert written["_meta"]["answerback/refusal"]["code"] == "LOGIN_REQUIRED"
