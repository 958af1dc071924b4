"""Included apps: each lifespan runs once, and tools see the state of their own app."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest

from answerback import App, Context, Depends, Invocation, Next

PROGRAM = """
from contextlib import contextmanager
from answerback import App, Context

def make(name, **options):
    @contextmanager
    def lifespan():
        print("open", name, flush=True)
        yield name
        print("close", name, flush=True)

    app = App(name, lifespan=lifespan, **options)

    @app.tool
    def state(ctx: Context) -> str:
        return str(ctx.state)

    return app

shop = App("shop")
shop.include(make("billing"), prefix="billing_")
shop.include(make("orders"), prefix="orders_")
shop.run()
"""


def make(name: str, events: list[str], *, is_async: bool = True) -> App:
    @asynccontextmanager
    async def on_loop() -> AsyncIterator[str]:
        events.append(f"open {name}")
        yield f"state of {name}"
        events.append(f"close {name}")

    @contextmanager
    def plain() -> Iterator[str]:
        events.append(f"open {name}")
        yield f"state of {name}"
        events.append(f"close {name}")

    app = App(name, lifespan=on_loop if is_async else plain)

    @app.tool
    def state(ctx: Context) -> str:
        return str(ctx.state)

    return app


@pytest.mark.parametrize("is_async", [True, False])
def test_each_included_app_opens_and_closes_once_and_its_tools_see_its_own_state(
    is_async: bool,
) -> None:
    events: list[str] = []
    root, middle, leaf = (
        make("root", events),
        App("middle"),
        make("leaf", events, is_async=is_async),
    )
    root.include(middle, prefix="m_")
    middle.include(leaf, prefix="one_")
    middle.include(leaf, prefix="two_")

    async def states() -> list[Any]:
        async with root.running():
            names = ("state", "m_one_state", "m_two_state")
            return [(await root.call(name)).data for name in names]

    assert asyncio.run(states()) == ["state of root", "state of leaf", "state of leaf"]
    assert events == ["open leaf", "open root", "close root", "close leaf"]


def test_an_app_without_a_lifespan_runs_those_of_the_apps_that_it_includes() -> None:
    events: list[str] = []
    root = App("root")
    root.include(make("leaf", events), prefix="leaf_")

    async def state() -> Any:
        async with root.running():
            return (await root.call("leaf_state")).data

    assert asyncio.run(state()) == "state of leaf"
    assert events == ["open leaf", "close leaf"]


def test_a_lifespan_that_nothing_would_start_is_refused() -> None:
    root = App("root")
    root.tool(print_nothing)
    asyncio.run(root.call("print_nothing"))

    with pytest.raises(
        ValueError, match="'leaf' has a lifespan; include it before 'root' is served"
    ):
        root.include(make("leaf", []), prefix="leaf_")


def print_nothing() -> None:
    """Do nothing."""


def test_stdio_runs_the_lifespans_of_included_apps(tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text(PROGRAM)
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call["params"] = {"name": "billing_state", "arguments": {}}

    done = subprocess.run(
        [sys.executable, str(program), "mcp"],
        input=json.dumps(call) + "\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert json.loads(done.stdout)["result"]["structuredContent"] == {"result": "billing"}
    printed = [line for line in done.stderr.splitlines() if line.startswith(("open", "close"))]
    assert printed == ["open billing", "open orders", "close orders", "close billing"]


def name() -> str:
    return "real"


def test_a_dependency_of_an_included_tool_can_be_overridden_in_both_apps() -> None:
    leaf, root = App("leaf"), App("root")

    @leaf.tool
    def greet(who: Annotated[str, Depends(name)]) -> str:
        return who

    root.include(leaf, prefix="leaf_")

    async def greetings() -> list[Any]:
        found = [(await root.call("leaf_greet")).data]
        with root.override(name, lambda: "root"):
            found.append((await root.call("leaf_greet")).data)
        with leaf.override(name, lambda: "leaf"):
            found.append((await root.call("leaf_greet")).data)
        return found

    assert asyncio.run(greetings()) == ["real", "root", "leaf"]


def with_state(name: str, seen: list[tuple[str, Any]]) -> App:
    """An app whose middleware notes the state that it sees before and after the rest runs."""

    @contextmanager
    def lifespan() -> Iterator[str]:
        yield f"state of {name}"

    async def note(call: Invocation, next: Next) -> Any:
        seen.append((f"before {name}", call.context.state))
        result = await next(call)
        seen.append((f"after {name}", call.context.state))
        return result

    return App(name, lifespan=lifespan, middleware=[note])


@pytest.mark.parametrize("takes_context", [True, False])
def test_middleware_sees_the_state_of_its_own_app(takes_context: bool) -> None:
    seen: list[tuple[str, Any]] = []
    shop, office, billing = (with_state(name, seen) for name in ("shop", "office", "billing"))

    @billing.tool
    def pay(ctx: Context) -> str:
        return str(ctx.state)

    @billing.tool
    def plain() -> str:
        return "state of billing"

    office.include(billing)
    shop.include(office)

    reply = asyncio.run(shop.call("pay" if takes_context else "plain"))

    assert reply.data == "state of billing"
    names = ["shop", "office", "billing"]
    assert seen == [
        *((f"before {name}", f"state of {name}") for name in names),
        *((f"after {name}", f"state of {name}") for name in reversed(names)),
    ]


def test_middleware_of_an_app_without_a_lifespan_has_no_state() -> None:
    seen: list[Any] = []

    async def note(call: Invocation, next: Next) -> Any:
        seen.append(call.context.state)
        return await next(call)

    shop = App("shop", middleware=[note])
    shop.include(make("billing", []))

    reply = asyncio.run(shop.call("state"))

    assert reply.data == "state of billing"
    assert seen == [None]


def test_a_gate_sees_the_state_of_its_own_app() -> None:
    seen: list[tuple[str, Any]] = []

    def gated(name: str) -> App:
        @contextmanager
        def lifespan() -> Iterator[str]:
            yield f"state of {name}"

        def note(ctx: Context) -> None:
            seen.append((name, ctx.state))

        async def note_on_loop(ctx: Context) -> None:
            seen.append((name, ctx.state))

        return App(name, lifespan=lifespan, requires=[note, note_on_loop])

    def own(ctx: Context) -> None:
        seen.append(("own", ctx.state))

    shop, office, billing = map(gated, ("shop", "office", "billing"))

    @billing.tool(requires=[own])
    def pay() -> str:
        return "paid"

    office.include(billing)
    shop.include(office)

    reply = asyncio.run(shop.call("pay"))

    assert reply.data == "paid"
    names = [name for name in ("shop", "office", "billing") for _ in range(2)]
    assert seen == [*((name, f"state of {name}") for name in names), ("own", "state of billing")]
