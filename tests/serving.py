"""Serves apps in tests with the settings that the command line gives a runtime."""

import asyncio
import shlex
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from answerback import App
from answerback.calls.runtime import Handlers, Runtime, runtime_on_loop, serving
from answerback.registry.declarations import Check, registry_of
from answerback.server.asgi.application import AsgiApp
from answerback.server.http.server_options import WebOptions
from answerback.tasks.task_store import TaskStore

FIRST_LINES = f"#!/bin/sh\n'''exec' {shlex.quote(sys.executable)} \"$0\" \"$@\"\n' '''\n"
"""Those of a program that Python runs, as installers write them: `#!` allows no space in a path."""


class ServedApp(App):
    """An App whose ASGI application has the settings that the flags of `serve` give."""

    task_store: TaskStore | None = None
    """Keeps the tasks, as `serve --tasks` does."""
    checks: Mapping[str, Check] = MappingProxyType({})
    """Further health checks, as the parts of a wire add them."""
    development = False
    """Whether the files of widgets are read anew, as `serve --debug` does."""

    def asgi(self, **options: Any) -> AsgiApp:
        runtime = runtime_on_loop(registry_of(self), task_store=self.task_store)
        runtime.checks |= self.checks
        runtime.development = self.development
        return AsgiApp(runtime, WebOptions(**options))


def runtime_of(app: App) -> Runtime:
    """The runtime that serves the app, or one on an event loop."""
    registry = registry_of(app)
    return serving(registry) or runtime_on_loop(registry)


def handlers_of(app: App) -> Handlers:
    return runtime_of(app).handlers


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(condition):
            await asyncio.sleep(0.005)
