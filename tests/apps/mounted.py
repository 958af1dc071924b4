"""One app inside the framework that FRAMEWORK names, as `application`; for tests of servers."""

from __future__ import annotations

import os
import signal
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from answerback import App, Context
from answerback.records import JSONL

AUDIT = os.environ.get("AUDIT")
app = App("mounted", records=JSONL(AUDIT) if AUDIT else None)
tools = app.asgi(signals=os.environ.get("SIGNALS") != "0")


@app.tool
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


@app.tool
def double(x: int) -> int:
    """Double a number."""
    return 2 * x


@app.tool(inline=True)
def pid() -> int:
    """The process that answers."""
    return os.getpid()


@app.tool
def has_own_handler() -> bool:
    """Whether a handler of Answerback is the first to get SIGTERM."""
    handler = signal.getsignal(signal.SIGTERM)
    return callable(handler) and handler.__module__.startswith("answerback")


@app.tool
async def ask(ctx: Context) -> str:
    """Ask the user for a name."""
    return await ctx.elicit("Who are you?", str)


@app.tool
def wait(ctx: Context, file: str) -> None:
    """Create *file*.running, and *file* once the client has disconnected."""
    Path(file + ".running").touch()
    for _ in range(2000):
        if ctx.cancelled:
            Path(file).touch()
            return
        time.sleep(0.01)


def in_fastapi() -> Any:
    from fastapi import FastAPI

    outer = FastAPI()
    outer.mount("/tools", tools)
    return outer


def in_starlette() -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Starlette(routes=[Mount("/tools", tools)])


def in_litestar() -> Any:
    litestar = import_module("litestar")

    mount = litestar.asgi("/tools", is_mount=True, copy_scope=True)
    return litestar.Litestar([mount(tools)])


def in_django() -> Any:
    # Django has no types, so it is imported by name.
    import_module("django.conf").settings.configure(ROOT_URLCONF=())
    import_module("django").setup()
    site = import_module("django.core.asgi").get_asgi_application()

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await tools(scope, receive, send)
        elif scope["path"].startswith("/tools/"):
            await tools({**scope, "root_path": "/tools"}, receive, send)
        else:
            await site(scope, receive, send)

    return outer


application = globals()["in_" + os.environ.get("FRAMEWORK", "starlette")]()
